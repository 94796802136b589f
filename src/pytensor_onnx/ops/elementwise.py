"""Choices between arrays that broadcast when the graph runs, and bits read in another dtype."""

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


class BitsAs(Op):
    """The numbers whose bits are those of an array, in another dtype of the same width.

    Parameters
    ----------
    dtype
        The dtype of the result.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> BitsAs("int32")(pt.constant([1.0, -0.0], dtype="float32")).eval()
    array([ 1065353216, -2147483648], dtype=int32)
    """

    __props__ = ("dtype",)

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype

    def make_node(self, x: TensorVariable) -> Apply:
        """Return the application.

        Raises
        ------
        TypeError
            If numbers of the two dtypes have other numbers of bits.
        """
        if np.dtype(self.dtype).itemsize != np.dtype(x.type.dtype).itemsize:
            raise TypeError(f"numbers of {x.type.dtype} have not as many bits as {self.dtype}")
        return Apply(self, [x], [tensor(dtype=self.dtype, shape=x.type.shape)])

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        """Read the bits by NumPy."""
        (x,) = inputs
        output_storage[0][0] = np.ascontiguousarray(x).reshape(x.shape).view(self.dtype).copy()

    def infer_shape(self, node: Apply, shapes: Any) -> list[Any]:
        """Return the shape of the operand."""
        return list(shapes)

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Return that no gradient goes through bits."""
        return [[False]]


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
