"""Attach fallbacks to nodes: other operators for targets that cannot run them.

A fallback belongs to one node and is emitted inline; it is no definition of an Op, which is a
function of the model.
"""

from collections.abc import Callable, Sequence

import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder

Fallback = Callable[..., ir.Value | Sequence[ir.Value]]

_KEY = "fallback"


def carry_fallback(node: ir.Node | None, fallback: Fallback) -> None:
    """Attach a function to a node that emits it in operators of every target.

    Parameters
    ----------
    node
        Node of an operator.
    fallback
        Receives a builder and the operands of the node, and returns its results.
    """
    if node is None:
        raise TypeError("only a node can carry a fallback")
    node.meta[_KEY] = fallback


def has_fallback(node: ir.Node) -> bool:
    """Return whether a node has a fallback."""
    return _KEY in node.meta


def fallback_of(node: ir.Node) -> Fallback | None:
    """Return the fallback of a node, None without one."""
    fallback: Fallback | None = node.meta.get(_KEY)
    return fallback


def convert_fallback(build: Builder, node: ir.Node) -> list[ir.Value]:
    """Emit the fallback of a node."""
    results = node.meta[_KEY](build, *node.inputs)
    return [results] if isinstance(results, ir.Value) else list(results)
