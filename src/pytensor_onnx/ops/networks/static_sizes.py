"""Read sizes of arrays (N, C, *S) as ints if they are static."""

from __future__ import annotations

from collections.abc import Sequence

from pytensor.graph.basic import Variable
from pytensor.tensor.variable import TensorVariable

type Size = int | TensorVariable
type Sizes = Sequence[Size]


def size_of(x: Variable, axis: int) -> Size:
    """Return the size of an axis, an int if it is static."""
    static = x.type.shape[axis]
    return x.shape[axis] if static is None else static


def sizes_of(x: Variable, first: int = 2) -> list[Size]:
    """Return the sizes of the axes from a first one on, by default the spatial ones.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> sizes_of(pt.tensor(shape=(None, 3, 5, 7))), sizes_of(pt.tensor(shape=(4, 2)), first=0)
    ([5, 7], [4, 2])
    """
    return [size_of(x, axis) for axis in range(first, x.type.ndim)]


def window_count(size: Size, room: Size, stride: int) -> Size:
    """Return ``(size + room) // stride + 1``, without operations that change nothing.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> n = pt.lscalar("n")
    >>> window_count(n, -1, 1) is n, window_count(5, -3, 2)
    (True, 2)
    """
    if stride > 1:
        return (size + room) // stride + 1
    more = room + 1
    return size if isinstance(more, int) and more == 0 else size + more
