"""Operands and metadata of the nodes that work on other orders of axes."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.dims import dims_of
from pytensor_onnx.graph.fallbacks import carry_fallback, fallback_of
from pytensor_onnx.graph.sizes import constant_ints
from pytensor_onnx.passes.layout.moved import Moved, Perm, inverse
from pytensor_onnx.passes.matching import constant_of, producer_of, required


def keep_meta(node: ir.Node, new: ir.Node | None, moved: Moved) -> None:
    """Copy metadata and the definition of a node to the node that works on bases."""
    if new is None or new.op_type != node.op_type:
        return
    fallback = fallback_of(node)
    for key, value in node.meta.items():
        new.meta.setdefault(key, value)
    if fallback is not None:
        perms = [list(perm) for perm in moved.wanted if perm is not None]
        backs = [None if perm is None else list(inverse(perm)) for perm in moved.perms]

        def turned(build: Builder, *operands: ir.Value) -> list[ir.Value]:
            own = [build.Transpose(x, perm=p) for x, p in zip(operands, perms, strict=True)]
            results = fallback(build, *own)
            results = [results] if isinstance(results, ir.Value) else list(results)
            return [
                result if back is None else build.Transpose(result, perm=back)
                for result, back in zip(results, backs, strict=True)
            ]

        carry_fallback(new, turned)


def transposed_constant(build: Builder, value: ir.Value, back: Perm) -> ir.Value:
    """Return a constant with its axes in another order, without leading axes of size one."""
    array = constant_of(value)
    if array is None or array.size == 1:
        return value
    turned = array.reshape((1,) * (len(back) - array.ndim) + array.shape).transpose(back)
    kept = 0 if array.ndim == len(back) else next(i for i, n in enumerate(turned.shape) if n != 1)
    turned = np.ascontiguousarray(turned.reshape(turned.shape[kept:]))
    return build.constant(turned)


def with_axes(build: Builder, value: ir.Value, places: list[int], rank: int) -> ir.Value:
    """Reshape a value so that its axes larger than one are at the given positions."""
    if not places:
        return value
    node = producer_of(value, "Unsqueeze")
    if node is not None and constant_ints(node.inputs[1]):
        value = required(node.inputs[0])
    ones = [i for i, d in enumerate(dims_of(value) or ()) if d == 1]
    if ones:
        value = build.Squeeze(value, build.ints(ones))
    # ONNX broadcasts operands of fewer axes, so no leading axis is needed.
    added = [i - min(places) for i in range(min(places), rank) if i not in places]
    return build.Unsqueeze(value, build.ints(added)) if added else value
