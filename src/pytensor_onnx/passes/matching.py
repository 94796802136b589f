"""Look at the nodes around a node: producers, sole uses, constants and attributes."""

from collections.abc import Collection
from typing import Any, TypeGuard

import numpy as np
import onnx_ir as ir


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
