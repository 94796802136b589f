"""Ops of triangles, diagonals and row exchanges of matrices."""

from typing import Any

import numpy as np
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.tensor.basic import as_tensor_variable
from pytensor.tensor.type import lvector, tensor


class Elements(Op):
    """Elements of a vector at many places, in a quarter of the time of an index array.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> x, places = pt.vector("x"), pt.lvector("places")
    >>> Elements()(x, places).eval({x: [1.0, 2.0, 3.0], places: [2, 0, 2]}, mode="ONNX")
    array([3., 1., 3.])
    """

    __props__ = ()

    def make_node(self, x: Any, places: Any) -> Apply:
        """Return the node for a vector and the places."""
        x, places = as_tensor_variable(x), as_tensor_variable(places)
        return Apply(self, [x, places], [tensor(dtype=x.type.dtype, shape=places.type.shape)])

    def infer_shape(self, node: Apply, shapes: list[tuple]) -> list[tuple]:
        """Return the shape of the places."""
        return [shapes[1]]

    def perform(self, node: Apply, inputs: Any, outputs: Any) -> None:
        """Compute in NumPy."""
        outputs[0][0] = inputs[0][inputs[1]]


class Window(Op):
    """The rows and columns of a matrix from two starts to two ends.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> x, start, end = pt.matrix("x"), pt.lvector("start"), pt.lvector("end")
    >>> window = Window()(x, start, end)
    >>> window.eval({x: [[1.0, 2.0], [3.0, 4.0]], start: [0, 1], end: [2, 2]}, mode="ONNX")
    array([[2.],
           [4.]])
    """

    __props__ = ()

    def make_node(self, x: Any, start: Any, end: Any) -> Apply:
        """Return the node for a matrix and the first and last rows and columns."""
        x, start, end = (as_tensor_variable(operand) for operand in (x, start, end))
        return Apply(self, [x, start, end], [tensor(dtype=x.type.dtype, shape=(None, None))])

    def perform(self, node: Apply, inputs: Any, outputs: Any) -> None:
        """Compute in NumPy."""
        x, start, end = inputs
        outputs[0][0] = x[start[0] : end[0], start[1] : end[1]]


class PivotPosition(Op):
    """Position of the first number of the largest magnitude along an axis.

    It is LAPACK's ``idamax``. Beside NaN it is any position, unlike that of an `argmax`, so that
    it takes two operators where that takes seven.

    Parameters
    ----------
    axis
        Axis that is searched, and that the result does not have.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> x = pt.matrix("x")
    >>> PivotPosition(axis=0)(x).eval({x: [[1.0, 2.0], [-3.0, -2.0]]}, mode="ONNX")
    array([1, 0])
    """

    __props__ = ("axis",)

    def __init__(self, axis: int) -> None:
        self.axis = axis

    def make_node(self, x: Any) -> Apply:
        """Return the node for an array."""
        x = as_tensor_variable(x)
        shape = x.type.shape[: self.axis] + x.type.shape[self.axis + 1 :]
        return Apply(self, [x], [tensor(dtype="int64", shape=shape)])

    def infer_shape(self, node: Apply, shapes: list[tuple]) -> list[tuple]:
        """Return the shape without the axis."""
        return [shapes[0][: self.axis] + shapes[0][self.axis + 1 :]]

    def perform(self, node: Apply, inputs: Any, outputs: Any) -> None:
        """Compute in NumPy."""
        outputs[0][0] = np.asarray(np.argmax(np.abs(inputs[0]), axis=self.axis))


class NextPivot(Op):
    """The next pivot among candidate rows, and the candidates that are left.

    The results are the position of the first candidate whose element has the largest magnitude, as
    that of `PivotPosition`; the candidate; and the others, in the order that LAPACK leaves: the
    first one takes the place of the pivot.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> column, candidates = pt.vector("column"), pt.lvector("candidates")
    >>> position, pivot, left = NextPivot()(column, candidates)
    >>> left.eval({column: [1.0, 0.0, -3.0, 2.0], candidates: [3, 0, 2]}, mode="ONNX")
    array([0, 3])
    """

    __props__ = ()

    def make_node(self, column: Any, candidates: Any) -> Apply:
        """Return the node for a column and the indices of its candidates."""
        column, candidates = as_tensor_variable(column), as_tensor_variable(candidates)
        one = tensor(dtype="int64", shape=(1,))
        return Apply(self, [column, candidates], [one, one.type(), lvector()])

    def infer_shape(self, node: Apply, shapes: list[tuple]) -> list[tuple]:
        """Return the shapes of single elements, and of one candidate less."""
        return [(1,), (1,), (shapes[1][0] - 1,)]

    def perform(self, node: Apply, inputs: Any, outputs: Any) -> None:
        """Compute in NumPy."""
        column, candidates = inputs
        position = np.argmax(np.abs(column[candidates]), keepdims=True)
        left = candidates.copy()
        left[position] = candidates[0]
        for output, result in zip(outputs, (position, candidates[position], left[1:]), strict=True):
            output[0] = result


class Triangle(Op):
    """The elements of matrices on one side of a diagonal, and zeros elsewhere.

    It is NumPy's ``tril`` or ``triu`` in one operator. The elements left out may be NaN.

    Parameters
    ----------
    lower
        Whether the elements below the diagonal are kept, or those above it.
    diagonal
        Number of the diagonal that is the last one kept, counted from the main one upwards.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> x = pt.matrix("x")
    >>> Triangle(lower=True, diagonal=-1)(x).eval({x: [[1.0, 2.0], [3.0, 4.0]]}, mode="ONNX")
    array([[0., 0.],
           [3., 0.]])
    """

    __props__ = ("lower", "diagonal")

    def __init__(self, *, lower: bool, diagonal: int = 0) -> None:
        self.lower = lower
        self.diagonal = diagonal

    def make_node(self, x: Any) -> Apply:
        """Return the node for matrices."""
        x = as_tensor_variable(x)
        return Apply(self, [x], [x.type()])

    def infer_shape(self, node: Apply, shapes: list[tuple]) -> list[tuple]:
        """Return the shape of the matrices."""
        return [shapes[0]]

    def perform(self, node: Apply, inputs: Any, outputs: Any) -> None:
        """Compute in NumPy."""
        keep = np.tril if self.lower else np.triu
        outputs[0][0] = keep(inputs[0], self.diagonal)
