"""Choices between arrays that broadcast when the graph runs."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.tensor.type import tensor
from pytensor.tensor.variable import TensorVariable


class ChooseFrom(Op):
    """``numpy.choose`` of arrays, with the rank and the shape of NumPy's result.

    PyTensor's Op has the rank and the shape of the numbers, whatever the arrays have, and that of
    one array of choices refuses to tell a shape where sizes of one turn out to broadcast.

    Several arrays are the choices, or one whose first axis has them.

    Attributes
    ----------
    mode
        Result for a number that is no choice: an error ("raise"), the remainder ("wrap") or the
        nearest choice ("clip").
    is_stacked
        Whether the first axis of a single array has the choices.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> ChooseFrom("raise")(pt.lvector(), pt.zeros((2, 1)), pt.zeros((1, 3))).type.shape
    (2, 3)
    """

    __props__ = ("mode", "is_stacked")

    def __init__(self, mode: Literal["raise", "wrap", "clip"], *, is_stacked: bool = False) -> None:
        self.mode: Literal["raise", "wrap", "clip"] = mode
        self.is_stacked = is_stacked

    def make_node(self, numbers: TensorVariable, *arrays: TensorVariable) -> Apply:
        """Return the application, with the sizes that are known of the broadcast result."""
        shapes = [x.type.shape for x in arrays]
        if self.is_stacked:
            shapes = [shape[1:] for shape in shapes]
        shape = broadcast_static([numbers.type.shape, *shapes])
        return Apply(self, [numbers, *arrays], [tensor(dtype=arrays[0].type.dtype, shape=shape)])

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        """Choose by NumPy."""
        numbers, *arrays = inputs
        choices = arrays[0] if self.is_stacked else arrays
        output_storage[0][0] = np.asarray(np.choose(numbers, choices, mode=self.mode))


def broadcast_static(shapes: Sequence[Sequence[int | None]]) -> tuple[int | None, ...]:
    """Return the known sizes of arrays that are broadcast when the graph runs.

    Examples
    --------
    >>> broadcast_static([(None, 1), (4, 1, 1), (None, 3)])
    (4, None, 3)
    """
    rank = max(map(len, shapes))
    columns = zip(*([*(1,) * (rank - len(shape)), *shape] for shape in shapes), strict=True)
    return tuple(_broadcast_size(sizes) for sizes in columns)


def _broadcast_size(sizes: Sequence[int | None]) -> int | None:
    known = [size for size in sizes if size != 1]
    return next((size for size in known if size is not None), None) if known else 1
