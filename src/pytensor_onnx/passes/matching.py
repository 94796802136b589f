"""Producers and constants around a node."""

from collections.abc import Collection, Container, Sequence
from typing import Any, TypeGuard

import numpy as np
import onnx_ir as ir

from pytensor_onnx.digests import content_key
from pytensor_onnx.graph.scope import ModelScope


def required(value: ir.Value | None) -> ir.Value:
    """Return an operand that the operator always has."""
    if value is None:
        raise TypeError("an operand is missing")
    return value


def is_operator(node: ir.Node | None, *op_types: str) -> TypeGuard[ir.Node]:
    """Return whether a node is one of some standard operators."""
    return node is not None and node.op_type in op_types and not node.domain


def producer_of(value: ir.Value | None, *op_types: str) -> ir.Node | None:
    """Return the node that produces a value, if it is one of some standard operators.

    Examples
    --------
    >>> from pytensor_onnx.graph.builder import Builder, ModelScope
    >>> build = Builder(ModelScope(21))
    >>> y = build.Relu(ir.val("x", dtype=ir.DataType.FLOAT, shape=("n",)))
    >>> producer_of(y, "Relu", "Clip").op_type, producer_of(y, "Exp")
    ('Relu', None)
    """
    node = None if value is None else value.producer()
    return node if is_operator(node, *op_types) else None


def sole_producer(
    value: ir.Value | None, *op_types: str, ignored: Collection[ir.Node] = ()
) -> ir.Node | None:
    """Return the producer of a value that only one node of the same graph uses.

    Parameters
    ----------
    value
        Operand of the node.
    op_types
        Operators, one of which the producer must be.
    ignored
        Users that do not count, each with one use.
    """
    node = producer_of(value, *op_types)
    if node is None or value is None or value.is_graph_output():
        return None
    if len(value.uses()) != 1 + len(ignored):
        return None
    (user,) = (user for user, _ in value.uses() if user not in ignored)
    return node if user.graph is node.graph else None


def is_constant(value: ir.Value | None) -> TypeGuard[ir.Value]:
    """Return whether a value is a constant; an input with a default is none."""
    return value is not None and value.const_value is not None and not value.is_graph_input()


def constant_of(value: ir.Value | None) -> np.ndarray | None:
    """Return the array of a constant, None for other values."""
    constant = value.const_value if is_constant(value) else None
    return None if constant is None else constant.numpy()


def attributes_of(node: ir.Node) -> dict[str, Any]:
    """Return the values of the attributes of a node by name."""
    return {name: attribute.value for name, attribute in node.attributes.items()}


def store_constants(graph: ir.Graph, scope: ModelScope) -> None:
    """Store exactly the constants that the nodes of a graph use."""
    for name, value in list(graph.initializers.items()):
        if not (value.uses() or value.is_graph_input() or value.is_graph_output()):
            del graph.initializers[name]
    for value in scope.initializers.values():
        if value.uses() and value.name not in graph.initializers:
            graph.register_initializer(value)


def reshape_constant(value: ir.Value, shape: Sequence[int], scope: ModelScope) -> None:
    """Store a constant in another shape, under its name; its users must accept the shape."""
    assert value.const_value is not None
    array = value.const_value.numpy()
    content = content_key(array)
    value.const_value = ir.tensor(array.reshape(shape), name=value.name)
    value.shape = ir.Shape(shape)
    del scope.initializers[array.shape, content]
    scope.initializers[tuple(shape), content] = value


def inherit_name(old: ir.Value | None, new: ir.Value, users: Container[ir.Node]) -> None:
    """Give a new constant the name of an old one that has no other users than the given nodes."""
    is_new = new.const_value is not None and not new.uses() and new is not old
    if is_new and old is not None and all(user in users for user, _ in old.uses()):
        new.name, old.name = old.name, new.name
