"""Scales by which matrices are brought near one, so that no square over- or underflows."""

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.padding import zeros

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
    zero, one = np.zeros((), dtype), np.ones((), dtype)
    axes = (axis,) if isinstance(axis, int) else axis
    largest = pt.abs(a)
    for i in axes:
        shape = [1 if i == j else largest.shape[j] for j in range(a.type.ndim)]
        largest = pt.concatenate([largest, zeros(shape, dtype)], axis=i).max(axis=i, keepdims=True)
    usable = pt.gt(largest, zero) & pt.lt(largest, np.full((), np.inf, dtype))
    largest = pt.switch(usable, largest, one)
    exponent = -pt.floor(pt.log2(largest))
    limit = np.full((), _EXPONENTS[dtype], dtype)
    return np.full((), 2, dtype) ** pt.clip(exponent, -limit, limit)


def finite(a: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """Return zero for each finite matrix and else NaN, and the matrices, zero where not finite.

    The loops of iterations end then, and NaN is added to their results.
    """
    is_finite = pt.isfinite(a).all(axis=(1, 2), keepdims=True)
    return pt.switch(is_finite, 0.0, np.nan), pt.switch(is_finite, a, 0.0)
