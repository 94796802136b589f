"""Read sizes from the inputs that a part of a model keeps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from pytensor_onnx.graph.dims import Dim, dims_of

type Places = dict[Dim, tuple[ir.Value, int]]


def read_sizes_of(graph: ir.Graph, kept: Sequence[bool]) -> bool:
    """Read the sizes of what depends on other inputs from the kept ones, by the names of axes.

    Parameters
    ----------
    graph
        The graph, in which axes of equal names have equal sizes.
    kept
        For each input, whether the graph keeps it.

    Returns
    -------
    bool
        Whether any node changed.
    """
    named: Places = {
        dim: (value, axis)
        for value, is_kept in zip(graph.inputs, kept, strict=True)
        for axis, dim in enumerate((dims_of(value) or ()) if is_kept else ())
        if isinstance(dim, str)
    }
    dropped = {v for v, is_kept in zip(graph.inputs, kept, strict=True) if not is_kept}
    nodes = []
    for node in ir.traversal.RecursiveGraphIterator(graph):
        if not dropped.isdisjoint(node.inputs):
            if node.op_type == "Shape" and not node.outputs[0].is_graph_output():
                nodes.append(node)
            else:
                dropped.update(node.outputs)
    n_changed = sum(_read_again(node, named) for node in nodes)
    return n_changed > 0


def _read_again(node: ir.Node, named: Places) -> bool:
    """Replace the shape of an input by sizes of others, if these have all of them."""
    (shape,) = node.outputs
    start, end = node.attributes.get("start"), node.attributes.get("end")
    dims = (dims_of(node.inputs[0]) or ())[
        start.as_int() if start else 0 : end.as_int() if end else None
    ]
    if node.graph is None or not dims or any(isinstance(d, str) and d not in named for d in dims):
        return False
    parts = [_size(dim, named) for dim in dims]
    nodes = parts if len(parts) == 1 else [*parts, _concatenation(parts)]
    for i, new in enumerate(nodes):
        new.outputs[0].name = f"{shape.name}_of_kept_{i}"
    node.graph.insert_before(node, nodes)
    ir.convenience.replace_all_uses_with(shape, nodes[-1].outputs[0])
    node.graph.remove(node, safe=True)
    return True


def _size(dim: Dim, named: Places) -> ir.Node:
    """Return a node for a size, as a vector of one."""
    if isinstance(dim, int):
        return _of_one(ir.node("Constant", [], {"value": ir.tensor(np.array([dim]))}))
    value, axis = named[dim]
    return _of_one(ir.node("Shape", [value], {"start": axis, "end": axis + 1}))


def _concatenation(parts: Sequence[ir.Node]) -> ir.Node:
    node = ir.node("Concat", [part.outputs[0] for part in parts], {"axis": 0})
    return _of_one(node, len(parts))


def _of_one(node: ir.Node, length: int = 1) -> ir.Node:
    node.outputs[0].dtype = ir.DataType.INT64
    node.outputs[0].shape = ir.Shape([length])
    return node
