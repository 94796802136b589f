"""Replace attention layers of pytensor-ml by `nn.attention` with heads merged in the last axis."""

from collections.abc import Sequence

import pytensor.tensor as pt
from pytensor.compile.builders import SymbolicOp
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.rules import rewrites_nodes

LAYER_CLASS = ("pytensor_ml.layers.attention", "AttentionLayer")


@rewrites_nodes(
    [SymbolicOp],
    family="networks",
    purpose="size",
    identity="attention layer of pytensor-ml = nn.attention(q, k, v)",
    requires="inputs have no other uses",
    measured="benchmarks/NOTES.md, Attention",
)
def attend_as_one(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Replace the layer by the operation, which does not repeat keys and may be one operator.

    The layer takes heads before the length, so models transpose its inputs and its result; the
    operation takes the untransposed arrays. The layer is left alone if its inputs have other uses,
    such as its gradient, which shares intermediate results.
    """
    if (type(node.op).__module__, type(node.op).__qualname__) != LAYER_CLASS:
        return None
    q, k, v, *masks = node.inputs
    heads, fewer = q.type.shape[-3], k.type.shape[-3]
    sizes = q.type.shape[-1], v.type.shape[-1]
    if q.type.ndim != 4 or None in (heads, fewer, *sizes) or v.type.shape[-3] != fewer:
        return None
    if any(mask.type.dtype != q.type.dtype or mask.type.ndim > 4 for mask in masks):
        return None
    scores = (*q.type.shape[:3], k.type.shape[2])
    if len({x.type.shape[0] == 1 for x in (q, k, v)}) > 1 or any(
        _is_repeated(scores, mask) for mask in masks
    ):
        return None
    if any(len(fgraph.clients[x]) > 1 for x in (q, k, v)):
        return None
    from pytensor_onnx.ops.networks.attention_ops import Attention

    attention = Attention(
        q_num_heads=heads,
        kv_num_heads=fewer,
        scale=node.op.scale,
        is_causal=bool(node.op.is_causal),
        ends_together=True,
        softcap=0.0,
        has_mask=bool(masks),
        has_past=False,
    )
    merged = attention(*(_merged(x) for x in (q, k, v)), *masks)
    result = pt.split_dims(merged, shape=(heads, sizes[1]), axis=2).dimshuffle(0, 2, 1, 3)
    result.name = node.outputs[0].name
    return [result]


def _is_repeated(scores: Sequence[int | None], mask: Variable) -> bool:
    """Return whether a mask has several elements along an axis on which the scores have one."""
    sizes = zip(scores[::-1], mask.type.shape[::-1], strict=False)
    return any(size == 1 and other != 1 for size, other in sizes)


def _merged(x: TensorVariable) -> TensorVariable:
    """Merge (batch, heads, length, size) into (batch, length, heads * size)."""
    return pt.join_dims(x.dimshuffle(0, 2, 1, 3), start_axis=2, n_axes=2)
