"""Definitions that nodes carry: what to put in their place where a target cannot run them."""

from collections.abc import Callable, Sequence

import onnx_ir as ir

from pytensor_onnx.builder import Builder

Definition = Callable[..., ir.Value | Sequence[ir.Value]]

_KEY = "definition"


def carry_definition(node: ir.Node | None, definition: Definition) -> None:
    """Let a node carry a function that emits the same in operators that every target has.

    Parameters
    ----------
    node
        Node of an operator.
    definition
        Receives a builder and the operands of the node, and returns its results.
    """
    if node is None:
        raise TypeError("only a node can carry a definition")
    node.meta[_KEY] = definition


def has_definition(node: ir.Node) -> bool:
    """Return whether a node carries a definition."""
    return _KEY in node.meta


def definition_of(node: ir.Node) -> Definition | None:
    """Return the definition that a node carries, None if it carries none."""
    definition: Definition | None = node.meta.get(_KEY)
    return definition


def convert_definition(onnx: Builder, node: ir.Node) -> list[ir.Value]:
    """Emit what defines a node."""
    results = node.meta[_KEY](onnx, *node.inputs)
    return [results] if isinstance(results, ir.Value) else list(results)
