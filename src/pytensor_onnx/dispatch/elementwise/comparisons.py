"""Comparisons of numbers."""

import onnx_ir as ir
from pytensor.graph.basic import Apply
from pytensor.scalar import basic as ps

from pytensor_onnx.dispatch.elementwise.scalar_operators import COMPARISONS
from pytensor_onnx.dispatch.registry.basic import onnx_funcify
from pytensor_onnx.graph.builder import Builder


@onnx_funcify.register(ps.LogicalComparison)
def lower_comparison(
    op: ps.LogicalComparison, node: Apply, build: Builder, x: ir.Value, y: ir.Value
) -> ir.Value:
    """Compare in the common dtype of both operands; uint64 and signed integers exactly."""
    if _mixes_uint64_and_signed(node):
        return _compare_with_uint64(op, node, build, x, y)
    dtype = ps.upcast(*(variable.type.dtype for variable in node.inputs))
    x, y = build.cast(x, dtype), build.cast(y, dtype)
    if dtype == "bool" and not isinstance(op, ps.EQ | ps.NEQ):
        x, y = build.cast(x, "uint8"), build.cast(y, "uint8")
    return _compare(op, build, x, y)


def _compare(op: ps.LogicalComparison, build: Builder, x: ir.Value, y: ir.Value) -> ir.Value:
    if isinstance(op, ps.NEQ):
        return build.Not(build.Equal(x, y))
    return build.op(COMPARISONS[type(op)], x, y)


def _mixes_uint64_and_signed(node: Apply) -> bool:
    dtypes = {variable.type.dtype for variable in node.inputs}
    return "uint64" in dtypes and any(dtype.startswith("int") for dtype in dtypes)


def _compare_with_uint64(
    op: ps.LogicalComparison, node: Apply, build: Builder, x: ir.Value, y: ir.Value
) -> ir.Value:
    """Compare as uint64 unless the signed operand is negative, since no dtype holds both."""
    signed = y if node.inputs[0].type.dtype == "uint64" else x
    order = op.impl(1, -1) if signed is y else op.impl(-1, 1)
    is_negative = build.Less(signed, 0)
    compared = _compare(op, build, build.cast(x, "uint64"), build.cast(y, "uint64"))
    if order:
        return build.Or(is_negative, compared)
    return build.And(build.Not(is_negative), compared)
