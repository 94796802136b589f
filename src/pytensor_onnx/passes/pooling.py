"""Maximum pooling that keeps NaN and minus infinity, which the kernels of a runtime lose."""

from collections.abc import Callable

import onnx_ir as ir

from pytensor_onnx.builder import Builder
from pytensor_onnx.inference import dims_of, dtype_of
from pytensor_onnx.passes.exact import mark_guarded
from pytensor_onnx.passes.short_axes import mark_checked

Pooling = Callable[[Builder, ir.Value], ir.Value]


def max_pool(onnx: Builder, node: ir.Node) -> list[ir.Value]:
    """Pool, and once more with care where the values have no finite sum.

    NaN is then found by pooling its places. Minus infinity is right in the kernel that also tells
    the indices.
    """
    attributes = {k: v.value for k, v in node.attributes.items()}

    def pool_with_care(inner: Builder, x: ir.Value) -> ir.Value:
        largest, _ = inner.op("MaxPool", x, outputs=2, **attributes)
        mark_guarded(largest.producer())
        is_nan = inner.MaxPool(inner.cast(inner.IsNaN(x), "uint8"), **attributes)
        for pooled in (largest, is_nan):
            mark_checked(pooled)
        return inner.Where(inner.cast(is_nan, "bool"), float("nan"), largest)

    return _guard(onnx, node, pool_with_care)


def global_max_pool(onnx: Builder, node: ir.Node) -> list[ir.Value]:
    """Pool, and reduce with care where the values have no finite sum."""
    axes = range(2, len(dims_of(node.inputs[0]) or ()))

    def reduce(inner: Builder, x: ir.Value) -> ir.Value:
        return inner.ReduceMax(x, inner.ints(list(axes)), keepdims=1)

    return _guard(onnx, node, reduce)


def _guard(onnx: Builder, node: ir.Node, pool_with_care: Pooling) -> list[ir.Value]:
    x, attributes = node.inputs[0], {k: v.value for k, v in node.attributes.items()}
    if x is None:
        raise TypeError(f"{node.op_type} without an operand")
    results = onnx.op(node.op_type, x, outputs=len(node.outputs), **attributes)
    pooled, *indices = [results] if isinstance(results, ir.Value) else results
    mark_guarded(pooled.producer())
    mark_checked(pooled)

    def keep(inner: Builder, x: ir.Value, pooled: ir.Value) -> ir.Value:
        total = inner.Abs(inner.ReduceSum(x, keepdims=0))
        kept, careful = inner.subgraph(), inner.subgraph()
        return inner.if_else(
            inner.Less(total, float("inf")),
            kept.graph([], [kept.Identity(pooled)]),
            careful.graph([], [pool_with_care(careful, x)]),
        )[0]

    rank = len(dims_of(x) or ())
    key = (node.op_type, dtype_of(x), rank, str(attributes))
    name = f"KeepNonFiniteIn{node.op_type}"
    return [onnx.call(name, keep, x, pooled, variant=str(dtype_of(x).numpy()), key=key), *indices]


GUARDED = {"MaxPool": max_pool, "GlobalMaxPool": global_max_pool}
"""Forms by operator."""
