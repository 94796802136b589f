"""Write layers of ONNX as nodes that tapes run, where a tape runs the whole model."""

from __future__ import annotations

from collections.abc import Callable

import onnx

from pytensor_onnx.kernels.graph_scope import Scope, bodies
from pytensor_onnx.kernels.written_recurrences import write_recurrence
from pytensor_onnx.kernels.written_windows import write_windows

_WRITERS: dict[str, Callable[[onnx.NodeProto, Scope], list[onnx.NodeProto] | None]] = {
    "AveragePool": write_windows,
    "Conv": write_windows,
    "GRU": write_recurrence,
    "LSTM": write_recurrence,
    "MaxPool": write_windows,
}


def write_layers(graph: onnx.GraphProto, outer: Scope | None = None) -> bool:
    """Replace the layers of a graph and of its bodies; return whether there were any."""
    scope, made, found = Scope(graph, outer), list[onnx.NodeProto](), False
    for node in graph.node:
        for body in bodies(node):
            found |= write_layers(body, scope)
        writer = _WRITERS.get(node.op_type) if node.domain in ("", "ai.onnx") else None
        written = writer(node, scope) if writer else None
        found |= written is not None
        made += [node] if written is None else written
    if found:
        kept = [onnx.NodeProto.FromString(node.SerializeToString()) for node in made]
        del graph.node[:]
        graph.node.extend(kept)
    return found
