"""Mark nodes with properties for the legaliser that the nodes do not show."""

import onnx_ir as ir

_GUARDED = "guarded"
_CHECKED = "sizes are checked"
_ABSOLUTE = "absolute error is good enough"


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


def accept_absolute_error(value: ir.Value) -> None:
    """Mark the node of a value, for which only the absolute error matters."""
    _node_of(value).meta[_ABSOLUTE] = True


def is_absolute_error_accepted(node: ir.Node) -> bool:
    """Return whether only the absolute error of a node matters."""
    return _ABSOLUTE in node.meta


def _node_of(value: ir.Value) -> ir.Node:
    node = value.producer()
    if node is None:
        raise TypeError("only the result of a node can be marked")
    return node
