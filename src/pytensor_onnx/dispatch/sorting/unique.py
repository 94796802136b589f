"""Lower unique elements and slices."""

import onnx_ir as ir
from pytensor.graph.basic import Apply
from pytensor.tensor.extra_ops import Unique

from pytensor_onnx.dispatch.registry.basic import onnx_funcify
from pytensor_onnx.graph.builder import Builder


@onnx_funcify.register(Unique)
def lower_unique(op: Unique, node: Apply, build: Builder, x: ir.Value) -> list[ir.Value]:
    """Return the unique elements, or slices along an axis, in ascending order."""
    wanted = [0]
    wanted += [1] if op.return_index else []
    wanted += [2] if op.return_inverse else []
    wanted += [3] if op.return_counts else []
    axis = {} if op.axis is None else {"axis": op.axis}
    results = build.Unique(x, outputs=wanted[-1] + 1, **axis)
    results = [results] if isinstance(results, ir.Value) else results
    return [results[i] for i in wanted]
