"""Zeros before and after the elements of an axis."""

import pytensor.tensor as pt
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


def _zeros(x: TensorVariable, count: Count, axis: int) -> TensorVariable | None:
    if isinstance(count, int) and count == 0:
        return None
    shape: list[Count] = [x.shape[i] for i in range(x.type.ndim)]
    shape[axis] = count
    return pt.zeros(shape, x.type.dtype)
