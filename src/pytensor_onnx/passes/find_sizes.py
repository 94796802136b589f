"""Find the sizes within a model that follow from known ones."""

import onnx_ir as ir

from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.graph.traversal import all_nodes
from pytensor_onnx.passes.model_pass import model_pass


@model_pass(
    family="structure",
    purpose="conversion",
    identity="sizes of f(x) follow from those of x",
    requires="a file for all runtimes, functions written out",
    ensures="known sizes of values within the model",
    measured="docs/reference/targets.md",
)
def find_sizes(model: ir.Model, scope: ModelScope) -> int:
    """Let ONNX's shape inference find sizes, which functions that are written out lack.

    Returns
    -------
    int
        How many values have more known sizes than before.
    """
    from onnx_ir.passes.common import ShapeInferencePass

    outer = {value: value.shape for value in (*model.graph.inputs, *model.graph.outputs)}
    values = [value for node in all_nodes(model.graph) for value in node.outputs]
    before = list(map(_known, values))
    ShapeInferencePass(check_type=False, strict_mode=False, data_prop=True)(model)
    for value, shape in outer.items():
        value.shape = shape
    return sum(_known(v) > count for v, count in zip(values, before, strict=True))


def _known(value: ir.Value) -> int:
    """Return how much is known of the sizes of a value: its rank, and the axes of known size."""
    if value.shape is None:
        return 0
    return 1 + sum(isinstance(size, int) for size in value.shape)
