"""Lower sorting, always stable and with NaN last."""

import onnx_ir as ir
from pytensor.graph.basic import Apply
from pytensor.tensor.sort import ArgSortOp, SortOp

from pytensor_onnx.dispatch.registry.basic import onnx_funcify
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.inference import dtype_of


@onnx_funcify.register(SortOp)
def lower_sort(op: SortOp, node: Apply, build: Builder, x: ir.Value) -> ir.Value:
    """Return all elements in ascending order."""
    return build.cast(_ascending(build, x, op.axis)[0], dtype_of(x))


@onnx_funcify.register(ArgSortOp)
def lower_argsort(op: ArgSortOp, node: Apply, build: Builder, x: ir.Value) -> ir.Value:
    """Return the positions of all elements in ascending order, stable for equal elements."""
    return _ascending(build, x, op.axis)[1]


def _ascending(build: Builder, x: ir.Value, axis: int) -> list[ir.Value]:
    if x.dtype == ir.DataType.BOOL:
        x = build.cast(x, "uint8")
    results = build.TopK(x, build.sizes(x, axis, axis + 1), axis=axis, largest=0, outputs=2)
    for result in results:
        result.shape = x.shape
    return results
