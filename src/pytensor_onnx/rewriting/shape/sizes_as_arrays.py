"""Make PyTensor infer sizes as arrays only, and numbers where an operand has a number."""

from typing import Any

from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.raise_op import Assert
from pytensor.tensor.basic import as_tensor_variable
from pytensor.tensor.rewriting.shape import ShapeFeature

from pytensor_onnx.rewriting.engine.predicates import made_by
from pytensor_onnx.rewriting.shape.integer_conversions import keeps_integer


class SizesAsArrays(ShapeFeature):
    """Shape inference of PyTensor whose sizes are always arrays.

    PyTensor infers the Python number one for broadcast axes. In the sizes of a function, rewrites
    fail on it where they expect a sum of arrays.

    Where one operand of an operation has a size that is a number, PyTensor infers an assertion that
    the others have the same. The operation itself checks this, and its static shape has the number.
    """

    def _coerce_shape_element(self, element: Any, node: Apply) -> Variable:
        return as_tensor_variable(super()._coerce_shape_element(_asserted(element), node))


def _asserted(size: Any) -> Any:
    """Return a number about which a size asserts something, or the size itself."""
    inner = size
    while isinstance(inner, Variable) and (made_by(inner, Assert) or keeps_integer(inner.owner)):
        inner = inner.owner.inputs[0]
    return inner.data.item() if inner is not size and isinstance(inner, Constant) else size
