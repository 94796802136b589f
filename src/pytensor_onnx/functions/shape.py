"""Zeros, and zeros before and after the elements of an axis."""

from collections.abc import Sequence

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply
from pytensor.tensor.basic import alloc, get_scalar_constant_value
from pytensor.tensor.variable import TensorVariable

type Count = int | TensorVariable


def between_zeros(x: TensorVariable, before: Count, after: Count, axis: int) -> TensorVariable:
    """Return an array with zeros before and after it along an axis; a count may be the number 0.

    Examples
    --------
    >>> between_zeros(pt.constant([1.0, 2.0]), 0, 1, axis=0).eval()
    array([1., 2., 0.])
    """
    parts = [_zeros(x, before, axis), x, _zeros(x, after, axis)]
    return pt.concatenate([part for part in parts if part is not None], axis=axis)


def zeros(shape: Sequence[Count], dtype: str = "float64") -> TensorVariable:
    """Return zeros whose static sizes are the constants among the sizes.

    `pt.zeros` rewrites a copy of the whole graph that the sizes are computed from, which took a
    third of the time to make the definitions of linear algebra.

    Examples
    --------
    >>> x = pt.tensor3("x", shape=(None, 2, None))
    >>> zeros((x.shape[0], x.shape[1], 1)).type.shape
    (None, 2, 1)
    """
    sizes = [pt.as_tensor(size, dtype="int64") for size in shape]
    known = [get_scalar_constant_value(n, max_recur=3, raise_not_constant=False) for n in sizes]
    static = [None if isinstance(n, TensorVariable) else int(n) for n in known]
    filled = pt.tensor(dtype=dtype, shape=static)
    return Apply(alloc, [pt.constant(np.zeros((), dtype)), *sizes], [filled]).outputs[0]


def _zeros(x: TensorVariable, count: Count, axis: int) -> TensorVariable | None:
    if isinstance(count, int) and count == 0:
        return None
    shape: list[Count] = [x.shape[i] for i in range(x.type.ndim)]
    shape[axis] = count
    return zeros(shape, x.type.dtype)
