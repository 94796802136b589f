"""Full convolutions: products of matrices for many numbers, else sums over the shorter array."""

import pytensor.tensor as pt
from pytensor.conditional import ifelse
from pytensor.scalar.basic import upcast
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.registry import define, own_signature
from pytensor_onnx.functions.shape import between_zeros
from pytensor_onnx.functions.signal.toeplitz_products import by_products
from pytensor_onnx.ops.signal.convolution_ops import FullConvolution

_MOST_TAPS = 24
"""Most numbers that are added one by one: below, products of matrices take longer."""


@define(FullConvolution, own_signature)
def convolve(x: TensorVariable, y: TensorVariable, *, axes: int) -> TensorVariable:
    """Return the full convolution over the last axes.

    In products of matrices an infinity meets padding zeros, so that arrays that are not finite are
    convolved number by number, and infinities reach the same results as in NumPy.

    Examples
    --------
    >>> x, y = pt.vector("x"), pt.vector("y")
    >>> convolve(x, y, axes=1).eval({x: [1, 2, 3], y: [1, 10]}, mode="FAST_COMPILE")
    array([ 1., 12., 23., 30.])
    """
    dtype = upcast(x.type.dtype, y.type.dtype)
    # The runtime multiplies matrices of int64; the cast back wraps as narrow integers do.
    wide = dtype if dtype.startswith("float") else "int64"
    x, y = (pt.cast(v, wide) if axes == 2 else pt.cast(v, wide)[..., None, :] for v in (x, y))
    longer, shorter = ifelse(_numbers(x) < _numbers(y), [y, x], [x, y])
    is_long = _numbers(shorter) > _MOST_TAPS
    if wide == dtype:
        is_long &= pt.all([pt.all(pt.isfinite(v)) for v in (x, y)])
    result = ifelse(is_long, by_products(longer, shorter), _by_taps(longer, shorter))
    return pt.cast(result if axes == 2 else result[..., 0, :], dtype)


def _numbers(x: TensorVariable) -> TensorVariable:
    return x.shape[-2] * x.shape[-1]


def _by_taps(x: TensorVariable, y: TensorVariable) -> TensorVariable:
    """Return the sum of copies of the first array, one for each number of the second."""
    lead = [x.shape[axis] for axis in range(x.type.ndim - 2)]
    (height, width), (rows, columns) = ((v.shape[-2], v.shape[-1]) for v in (x, y))
    taps = y.reshape((*lead, rows * columns))
    start = pt.zeros((*lead, height + rows - 1, width + columns - 1), x.type.dtype)

    def step(
        index: TensorVariable,
        total: TensorVariable,
        x: TensorVariable,
        taps: TensorVariable,
        rows: TensorVariable,
        columns: TensorVariable,
    ) -> list[TensorVariable]:
        term = x * taps[..., index][..., None, None]
        row, column = index // columns, index % columns
        term = between_zeros(term, column, columns - 1 - column, -1)
        return [total + between_zeros(term, row, rows - 1 - row, -2)]

    steps = pt.arange(rows * columns)
    constants = [x, taps, rows, columns]
    return iterate(step, [start], constants, sequences=[steps], n_steps=rows * columns)[0]
