"""The choice of an algorithm for a Fourier transform, by its size."""

import pytensor.tensor as pt
from pytensor.conditional import ifelse
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.signal.fourier.chirp import by_convolution, of_unknown_size
from pytensor_onnx.functions.signal.fourier.found_stages import is_product
from pytensor_onnx.functions.signal.fourier.stages import LARGEST, by_stages, stage_sizes
from pytensor_onnx.ops.signal.fourier_ops import (
    FourierTransform,
    StagedTransform,
    StandardTransform,
)

# Beyond, ONNX Runtime takes longer than products with matrices.
_LARGEST_STANDARD = 2**14


@define(FourierTransform, "(n,2)->(n,2)")
def transform(pairs: TensorVariable, *, size: int | None, inverse: bool) -> TensorVariable:
    """Return the transform by the operator of ONNX, by stages, or by a convolution.

    The operator of ONNX Runtime loses three digits at sizes that are no power of two.

    Examples
    --------
    >>> pairs = pt.constant([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]])
    >>> transform(pairs, size=3, inverse=False).eval().round(6)[0]
    array([6., 0.])
    """
    sign = 1 if inverse else -1
    if size is None:
        n = pairs.shape[-2]
        is_standard = pt.eq(pt.bitwise_and(n, n - 1), 0) & (n <= _LARGEST_STANDARD)
        staged = StagedTransform(inverse=inverse)(pairs)
        others = ifelse(is_product(n), staged, of_unknown_size(pairs, sign))
        return ifelse(is_standard, StandardTransform(inverse=inverse)(pairs), others)
    if LARGEST < size <= _LARGEST_STANDARD and size & (size - 1) == 0:
        return StandardTransform(size, inverse)(pairs)
    sizes = [size] if size <= 2 * LARGEST else stage_sizes(size)
    if sizes is not None:
        return by_stages(pairs, sizes, sign)
    return by_convolution(pairs, size, sign)
