"""Lower parts of arrays."""

import onnx_ir as ir
from pytensor.graph.basic import Apply

from pytensor_onnx.dispatch.registry.basic import onnx_funcify
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.ops.linalg.matrix_part_ops import Elements, Window


@onnx_funcify.register(Elements)
def lower_elements(
    op: Elements, node: Apply, build: Builder, x: ir.Value, places: ir.Value
) -> ir.Value:
    """Return the elements by GatherElements."""
    return build.GatherElements(x, places, axis=0)


@onnx_funcify.register(Window)
def lower_window(
    op: Window, node: Apply, build: Builder, x: ir.Value, start: ir.Value, end: ir.Value
) -> ir.Value:
    """Return the rows and columns by Slice."""
    return build.Slice(x, start, end)
