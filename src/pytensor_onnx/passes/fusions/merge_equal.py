"""Merge nodes that compute the same result from the same values.

PyTensor merges equal nodes before the conversion. Some sizes are known to be equal only afterwards,
and with them the masks and positions that are computed from them. Decompositions of the legaliser
may repeat nodes, too.
"""

from collections.abc import Container, Hashable, Iterable, Mapping

import onnx_ir as ir

from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.graph.sizes import CHECKED, sizes_in
from pytensor_onnx.passes.model_pass import model_pass

_RANDOM = frozenset(
    (
        *("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"),
        *("Bernoulli", "Multinomial", "Dropout"),
    )
)


@model_pass(
    family="structure",
    purpose="size",
    identity="f(x), f(x) = f(x)",
    requires="no random operator, no sizes that a check compares",
    measured="benchmarks/NOTES.md, Rules that stay, with their gain",
)
def merge_equal(model: ir.Model, scope: ModelScope) -> int:
    """Replace the results of a node by the results of the first equal node of the same graph.

    Do so in subgraphs and functions, too: ONNX Runtime would, and then go over the whole graph once
    more. Nodes with subgraphs and equal outputs of a graph are kept. So are the sizes that a check
    compares, which are equal only if the check passes.
    """
    outer = [model.graph, *(function.graph for function in model.functions.values())]
    graphs = [inner for graph in outer for inner in (graph, *graph.subgraphs())]
    checking = _behind_checks(graphs)
    return sum(_merge_equal(graph, checking) for graph in graphs)


def _merge_equal(graph: ir.Graph, checking: Container[ir.Node]) -> int:
    first: dict[Hashable, ir.Node] = {}
    merged: list[ir.Node] = []
    for node in graph:
        key = _key(node, by_sizes=node not in checking)
        if key is None:
            continue
        kept = first.setdefault(key, node)
        pairs = list(zip(node.outputs, kept.outputs, strict=True))
        if kept is node or any(a.is_graph_output() and b.is_graph_output() for a, b in pairs):
            continue
        for old, new in pairs:
            if old.is_graph_output():
                new.name, new.shape, old.name = old.name, old.shape, None
            ir.convenience.replace_all_uses_with(old, new, replace_graph_outputs=True)
        merged.append(node)
    graph.remove(merged, safe=True)
    return len(merged)


def _behind_checks(graphs: Iterable[ir.Graph]) -> set[ir.Node]:
    """Return the nodes that compute the conditions of checks."""
    nodes = (node for graph in graphs for node in graph)
    checks = (node for node in nodes if any(CHECKED in value.meta for value in node.outputs))
    left = [node.inputs[0] for node in checks]
    found: set[ir.Node] = set()
    while left:
        value = left.pop()
        node = None if value is None else value.producer()
        if node is not None and node not in found:
            found.add(node)
            left.extend(node.inputs)
    return found


def _key(node: ir.Node, *, by_sizes: bool) -> Hashable | None:
    """Return a key that is equal for nodes with equal results, None if unknown."""
    attributes = _attributes(node.attributes)
    if attributes is None or (not node.domain and node.op_type in _RANDOM):
        return None
    is_shape = node.op_type == "Shape" and not node.domain
    sizes = sizes_in(node.outputs[0]) if is_shape and by_sizes else None
    if sizes is not None and None not in sizes:
        return "Shape", sizes
    operands = tuple(None if value is None else id(value) for value in node.inputs)
    # A name without letters is an output that is left out.
    given = tuple(value.name != "" for value in node.outputs)
    return node.domain, node.op_type, node.overload, operands, attributes, given


def _attributes(attributes: Mapping[str, ir.Attr]) -> Hashable | None:
    entries = []
    for name, attribute in sorted(attributes.items()):
        value = attribute.value
        if attribute.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS):
            return None
        if isinstance(value, ir.TensorProtocol):
            value = (value.dtype, tuple(value.shape), value.tobytes())
        entries.append((name, attribute.ref_attr_name, value))
    return tuple(entries)
