"""Mark nodes with properties for the legaliser that the nodes do not show."""

from collections.abc import Iterator

import onnx_ir as ir

_GUARDED = "guarded"
_CHECKED = "sizes are checked"
_RARE = "the else branch is rare"
_ABSOLUTE = "absolute error is good enough"
_IMPORTED = "as in the imported model"


def mark_guarded(value: ir.Value) -> None:
    """Mark the node of a value as part of a decomposition that corrects it."""
    _node_of(value).meta[_GUARDED] = True


def is_bare(node: ir.Node) -> bool:
    """Return whether a node is no part of a decomposition that corrects it."""
    return _GUARDED not in node.meta


def mark_checked(value: ir.Value) -> ir.Node:
    """Mark the pool or convolution of a value, whose windows fit or have been checked."""
    node = _node_of(value)
    node.meta[_CHECKED] = True
    return node


def is_checked(node: ir.Node) -> bool:
    """Return whether the windows of a pool or convolution fit, or have been checked."""
    return _CHECKED in node.meta


def mark_rare(value: ir.Value) -> None:
    """Mark the If of a value, whose else branch serves NaN and empty arrays only."""
    _node_of(value).meta[_RARE] = True


def usual_nodes(graph: ir.Graph) -> Iterator[ir.Node]:
    """Yield the nodes of a graph and of its subgraphs, except branches that are rare.

    Parameters
    ----------
    graph
        Graph as conversion makes it; one that was read from a file has no marks.
    """
    for node in graph:
        yield node
        for name, attribute in node.attributes.items():
            is_rare = _RARE in node.meta and name == "else_branch"
            if attribute.type == ir.AttributeType.GRAPH and not is_rare:
                yield from usual_nodes(attribute.as_graph())


def accept_absolute_error(value: ir.Value) -> None:
    """Mark the node of a value, for which only the absolute error matters."""
    _node_of(value).meta[_ABSOLUTE] = True


def is_absolute_error_accepted(node: ir.Node) -> bool:
    """Return whether only the absolute error of a node matters."""
    return _ABSOLUTE in node.meta


def mark_imported(value: ir.Value) -> None:
    """Mark the node of a value, which is that of an imported model."""
    _node_of(value).meta[_IMPORTED] = True


def is_imported(node: ir.Node) -> bool:
    """Return whether a node is that of an imported model."""
    return _IMPORTED in node.meta


def _node_of(value: ir.Value) -> ir.Node:
    node = value.producer()
    if node is None:
        raise TypeError("only the result of a node can be marked")
    return node
