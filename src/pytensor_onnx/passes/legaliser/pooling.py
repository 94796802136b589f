"""Max pooling that propagates NaN and minus infinity, and of windows that runtimes count."""

from collections.abc import Callable

import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.dims import dims_of
from pytensor_onnx.graph.inference import dtype_of
from pytensor_onnx.graph.node_flags import is_bare, mark_checked, mark_guarded
from pytensor_onnx.passes.legaliser.known_numbers import is_finite
from pytensor_onnx.passes.matching import attributes_of, required
from pytensor_onnx.passes.node_walk import emit_alike

Pooling = Callable[[Builder, ir.Value], ir.Value]


def keep_non_finite(build: Builder, node: ir.Node) -> list[ir.Value]:
    """Pool with propagation of NaN and minus infinity."""
    return GUARDED[node.op_type](build, node)


def may_be_non_finite(node: ir.Node) -> bool:
    """Return whether a pool is not guarded yet, and an element may be NaN or infinite."""
    return is_bare(node) and not is_finite(node.inputs[0])


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


def counts_too_many(node: ir.Node) -> bool:
    """Return whether ceil mode counts a window behind the array, by the standard before opset 22.

    Runtimes leave it out, and are told sizes that their results do not have.
    """
    return _floored_pads(node) is not None


def in_floor_mode(build: Builder, node: ir.Node) -> list[ir.Value]:
    """Pool windows without ceil mode, by the padding that gives the same ones."""
    attributes = {**attributes_of(node), "ceil_mode": 0, "pads": _floored_pads(node)}
    results = build.op("MaxPool", node.inputs[0], outputs=len(node.outputs), **attributes)
    return [results] if isinstance(results, ir.Value) else list(results)


def _floored_pads(node: ir.Node) -> list[int] | None:
    """Return padding without ceil mode, None if ceil mode is right or there is no such padding."""
    get, sizes = node.attributes.get_ints, (dims_of(node.inputs[0]) or ())[2:]
    is_ceiled = node.attributes.get_int("ceil_mode", 0)
    if not is_ceiled or "auto_pad" in node.attributes or not sizes:
        return None
    rank = len(sizes)
    windows, strides, gaps = get("kernel_shape"), get("strides"), get("dilations")
    pads = list(get("pads") or [0] * 2 * rank)
    is_wrong = False
    for axis, size in enumerate(sizes):
        if not isinstance(size, int) or windows is None:
            return None
        step = strides[axis] if strides else 1
        reach = (windows[axis] - 1) * (gaps[axis] if gaps else 1) + 1
        counted = -(-(size + pads[axis] + pads[rank + axis] - reach) // step) + 1
        count = min(counted, (size + pads[axis] - 1) // step + 1)
        is_wrong = is_wrong or count < counted
        pads[rank + axis] = max(0, (count - 1) * step + reach - size - pads[axis])
        if pads[rank + axis] >= windows[axis]:
            return None
    return pads if is_wrong else None


GUARDED = {"MaxPool": max_pool, "GlobalMaxPool": global_max_pool}
"""Forms by operator."""
