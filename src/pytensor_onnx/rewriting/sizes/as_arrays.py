"""Make PyTensor infer sizes as arrays only."""

from typing import Any

from pytensor.graph.basic import Apply, Variable
from pytensor.tensor.basic import as_tensor_variable
from pytensor.tensor.rewriting.shape import ShapeFeature


class SizesAsArrays(ShapeFeature):
    """Shape inference of PyTensor whose sizes are always arrays.

    PyTensor infers the Python number one for broadcast axes. In the sizes of a function, rewrites
    fail on it where they expect a sum of arrays.
    """

    def _coerce_shape_element(self, element: Any, node: Apply) -> Variable:
        return as_tensor_variable(super()._coerce_shape_element(element, node))
