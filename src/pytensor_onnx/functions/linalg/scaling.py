"""Scales by which matrices are brought near one, so that no square over- or underflows."""

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.complex.complex_arithmetic import Parts
from pytensor_onnx.functions.linalg.matrix_batches import flat, not_empty
from pytensor_onnx.functions.linalg.matrix_blocks import poison, zero
from pytensor_onnx.functions.shape import zeros

_EXPONENTS = {"float32": 120, "float64": 1000}


def power_of_two(a: TensorVariable, axis: int | tuple[int, ...]) -> TensorVariable:
    """Return a power of two near the reciprocal of the largest element along axes.

    It is one where all elements are zero, or one of them is not finite.

    Examples
    --------
    >>> x = pt.matrix("x")
    >>> power_of_two(x, axis=0).eval({x: np.array([[3.0, 0.0], [-4.0, 0.0]])}, mode="ONNX")
    array([[0.25, 1.  ]])
    """
    dtype = a.type.dtype
    one = np.ones((), dtype)
    axes = (axis,) if isinstance(axis, int) else axis
    largest = pt.abs(a)
    for i in axes:
        shape = [1 if i == j else largest.shape[j] for j in range(a.type.ndim)]
        largest = pt.concatenate([largest, zeros(shape, dtype)], axis=i).max(axis=i, keepdims=True)
    usable = pt.gt(largest, zero(dtype)) & pt.lt(largest, np.full((), np.inf, dtype))
    largest = pt.switch(usable, largest, one)
    exponent = -pt.floor(pt.log2(largest))
    limit = np.full((), _EXPONENTS[dtype], dtype)
    return np.full((), 2, dtype) ** pt.clip(exponent, -limit, limit)


def finite(a: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """Return zero for each finite matrix and else NaN, and the matrices, zero where not finite.

    The loops of iterations end then, and NaN is added to their results.
    """
    is_finite = pt.isfinite(a).all(axis=(1, 2), keepdims=True)
    return poison(is_finite, a.type.dtype), pt.switch(is_finite, a, zero(a.type.dtype))


def scaled_parts(
    parts: Parts, n: TensorVariable
) -> tuple[Parts, TensorVariable, TensorVariable, TensorVariable]:
    """Return complex matrices in one batch of float64, brought near one and not empty.

    Parameters
    ----------
    parts
        Real and imaginary parts of square matrices.
    n
        Number of their rows.

    Returns
    -------
    tuple
        The parts, the number of rows, at least one, the scale, and zero for each finite matrix and
        else NaN.
    """
    valid_real, real = finite(flat(parts.real).astype("float64"))
    valid_imag, imag = finite(flat(parts.imag).astype("float64"))
    scale = power_of_two(pt.concatenate([real, imag], axis=2), axis=(1, 2))
    (real, size), (imag, _) = not_empty(real * scale, n), not_empty(imag * scale, n)
    return Parts(real, imag), size, scale, valid_real + valid_imag
