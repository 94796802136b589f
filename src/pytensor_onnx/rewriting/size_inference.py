"""Sizes that PyTensor infers, as arrays whatever the Op gives."""

from typing import Any

from pytensor.compile.mode import optdb
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import GraphRewriter
from pytensor.tensor.basic import as_tensor_variable
from pytensor.tensor.rewriting.shape import ShapeFeature


class SizesAsArrays(ShapeFeature):
    """Infers sizes as PyTensor does, but none as a number that is no array.

    PyTensor infers the number one for axes that are broadcast. In the sizes of a function it takes
    the place of an array, and rewrites fail on what they take for a sum of arrays.
    """

    def _coerce_shape_element(self, element: Any, node: Apply) -> Variable:
        return as_tensor_variable(super()._coerce_shape_element(element, node))


class InferSizesAsArrays(GraphRewriter):
    """Infers sizes as arrays in all rewrites."""

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        """Be the first to infer sizes, to whom the rewriters of PyTensor leave it."""
        fgraph.attach_feature(SizesAsArrays())

    def apply(self, fgraph: FunctionGraph) -> None:
        """Change nothing."""


# Before the first rewriter that needs sizes.
optdb.register("onnx_infer_sizes_as_arrays", InferSizesAsArrays(), "onnx", position=-0.032)
