"""Walk over the nodes of a graph and of the bodies in it."""

from collections.abc import Iterator, Sequence

import onnx_ir as ir

_WITH_BODIES = frozenset({"If", "Loop", "Scan", "SequenceMap"})
"""The standard operators that have graphs among their attributes."""


def all_nodes(owner: ir.Graph | ir.Function) -> Iterator[ir.Node]:
    """Yield the nodes of a graph or function in order, each before the nodes of its bodies.

    The walk of onnx_ir, which looks for graphs in the attributes of each node, takes three times
    as long.

    Examples
    --------
    >>> text = "(bool c, float x) => (float y) {y = If(c) <then_branch = a () => (float z) "
    >>> text += "{z = Neg(x)}, else_branch = b () => (float z) {z = Abs(x)}>}"
    >>> model = ir.from_onnx_text(f'<ir_version: 10, opset_import: ["": 21]> m {text}')
    >>> [node.op_type for node in all_nodes(model.graph)]
    ['If', 'Neg', 'Abs']
    """
    for node in owner:
        yield node
        for body in bodies_of(node):
            yield from all_nodes(body)


def nodes_of_model(model: ir.Model) -> Iterator[ir.Node]:
    """Yield the nodes of the graph of a model, of its functions, and of the bodies in both."""
    yield from all_nodes(model.graph)
    for function in model.functions.values():
        yield from all_nodes(function)


def bodies_of(node: ir.Node) -> Sequence[ir.Graph]:
    """Return the graphs among the attributes of a node."""
    if node.op_type not in _WITH_BODIES or node.domain:
        return ()
    attributes = node.attributes.values()
    return [a.as_graph() for a in attributes if a.type == ir.AttributeType.GRAPH]
