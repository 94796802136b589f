"""Max pooling that propagates NaN and minus infinity, which a runtime's kernels lose."""

from collections.abc import Callable

import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.dims import dims_of
from pytensor_onnx.graph.inference import dtype_of
from pytensor_onnx.graph.node_flags import mark_checked, mark_guarded
from pytensor_onnx.passes.matching import attributes_of, required
from pytensor_onnx.passes.node_walk import emit_alike

Pooling = Callable[[Builder, ir.Value], ir.Value]


def keep_non_finite(build: Builder, node: ir.Node) -> list[ir.Value]:
    """Pool with propagation of NaN and minus infinity."""
    return GUARDED[node.op_type](build, node)


def max_pool(build: Builder, node: ir.Node) -> list[ir.Value]:
    """Pool, and recompute the result if the sum of the values is not finite.

    NaN is then found by pooling a mask. The kernel with indices as second output is right for minus
    infinity.
    """
    attributes = attributes_of(node)

    def pool_with_care(inner: Builder, x: ir.Value) -> ir.Value:
        largest, _ = inner.op("MaxPool", x, outputs=2, **attributes)
        mark_guarded(largest)
        is_nan = inner.MaxPool(inner.cast(inner.IsNaN(x), "uint8"), **attributes)
        for pooled in (largest, is_nan):
            mark_checked(pooled)
        return inner.Where(inner.cast(is_nan, "bool"), float("nan"), largest)

    return _guard(build, node, pool_with_care)


def global_max_pool(build: Builder, node: ir.Node) -> list[ir.Value]:
    """Pool, and reduce exactly if the sum of the values is not finite."""
    axes = range(2, len(dims_of(node.inputs[0]) or ()))

    def reduce(inner: Builder, x: ir.Value) -> ir.Value:
        return inner.ReduceMax(x, inner.ints(list(axes)), keepdims=1)

    return _guard(build, node, reduce)


def _guard(build: Builder, node: ir.Node, pool_with_care: Pooling) -> list[ir.Value]:
    x = required(node.inputs[0])
    pooled, *indices = emit_alike(build, node, [x])
    mark_guarded(pooled)
    mark_checked(pooled)

    def keep(inner: Builder, x: ir.Value, pooled: ir.Value) -> ir.Value:
        total = inner.Abs(inner.ReduceSum(x, keepdims=0))
        is_finite = inner.Less(total, float("inf"))
        (kept,) = inner.cond(is_finite, lambda _: pooled, lambda other: pool_with_care(other, x))
        return kept

    rank = len(dims_of(x) or ())
    key = (node.op_type, dtype_of(x), rank, str(attributes_of(node)))
    name = f"KeepNonFiniteIn{node.op_type}"
    return [build.call(name, keep, x, pooled, variant=str(dtype_of(x).numpy()), key=key), *indices]


GUARDED = {"MaxPool": max_pool, "GlobalMaxPool": global_max_pool}
"""Forms by operator."""
