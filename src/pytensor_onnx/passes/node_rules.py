"""Replace single nodes by others, with the tools that all passes share."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeGuard

import numpy as np
import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.names import Names, name_values, rename_in_subgraphs
from pytensor_onnx.graph.origins import note_replacement
from pytensor_onnx.graph.scope import ModelScope, live_nodes
from pytensor_onnx.large_constants import content_key

GraphLike = ir.Graph | ir.Function

Form = Callable[[Builder, ir.Node], ir.Value | list[ir.Value]]
"""Emits the replacement of a node."""


def replace_node(
    owner: GraphLike, node: ir.Node, builder: Builder, results: Sequence[ir.Value], names: Names
) -> list[ir.Node]:
    """Replace one node by the nodes of a builder.

    See `put_before` for the parameters and the result.
    """
    new_nodes = put_before(owner, node, builder, results, names)
    owner.remove(node, safe=True)
    return new_nodes


def put_before(
    owner: GraphLike, node: ir.Node, builder: Builder, results: Sequence[ir.Value], names: Names
) -> list[ir.Node]:
    """Let the nodes of a builder compute the results of a node, which stays without a use.

    The caller removes all such nodes at once: each removal looks at all outputs of the graph.

    Parameters
    ----------
    owner
        Graph or function that holds the node.
    node
        Node to replace.
    builder
        Holds the new nodes; only nodes that the results need stay.
    results
        Replacements of the outputs of the node. They take over its shapes, and its names
        where these are the user's.
    names
        Names taken in the model, or in the function.

    Returns
    -------
    list of onnx_ir.Node
        The new nodes that are left.
    """
    own = {id(v) for new in builder.nodes for v in new.outputs}
    results = [r if id(r) in own else builder.Identity(r) for r in results]
    for old, new in zip(node.outputs, results, strict=True):
        if old.is_graph_output() or "pytensor.variable" in node.metadata_props:
            new.name = old.name
        note_replacement(old, new)
        if old.shape is not None:
            new.shape = old.shape
        if new.type is None:
            new.type = old.type
        old.name = None
    ir.convenience.replace_all_uses_with(node.outputs, results, replace_graph_outputs=True)
    new_nodes = live_nodes(builder.nodes, results)
    if names is not builder.scope.names:
        # Subgraphs have names that are unique in the model, but not in the function.
        rename_in_subgraphs(new_nodes, names)
    name_values(new_nodes, names)
    owner.insert_before(node, new_nodes)
    return new_nodes


def exchange_names(pairs: Iterable[tuple[ir.Value, ir.Value]]) -> None:
    """Give new constants the names of the old ones that have no use left."""
    for old, new in pairs:
        if not old.uses():
            new.name, old.name = old.name, new.name


def given(value: ir.Value | None) -> ir.Value:
    """Return an operand that the operator always has."""
    if value is None:
        raise TypeError("an operand is missing")
    return value


def is_constant(value: ir.Value | None) -> TypeGuard[ir.Value]:
    """Return whether a value is a constant; an input with a default is none."""
    return value is not None and value.const_value is not None and not value.is_graph_input()


def constant_of(value: ir.Value | None) -> np.ndarray | None:
    """Return the array of a constant, None for other values."""
    if value is None or value.const_value is None or value.is_graph_input():
        return None
    return value.const_value.numpy()


def int_attribute(node: ir.Node, name: str, default: int) -> int:
    """Return an integer attribute of a node, or its default."""
    attribute = node.attributes.get(name)
    return default if attribute is None else attribute.as_int()


def sole_producer(value: ir.Value | None, op_type: str) -> ir.Node | None:
    """Return the node of an operator that produces a value, if the value has one use."""
    node = value.producer() if value is not None else None
    if value is None or node is None or node.op_type != op_type or node.domain:
        return None
    return node if len(value.uses()) == 1 and not value.is_graph_output() else None


def reshape_constant(value: ir.Value, shape: Sequence[int], scope: ModelScope) -> None:
    """Store a constant in another shape, under its name; its users must accept the shape."""
    assert value.const_value is not None
    array = value.const_value.numpy()
    content = content_key(array)
    value.const_value = ir.tensor(array.reshape(shape), name=value.name)
    value.shape = ir.Shape(shape)
    del scope.initializers[array.shape, content]
    scope.initializers[tuple(shape), content] = value


def store_constants(graph: ir.Graph, scope: ModelScope) -> None:
    """Store exactly the constants that the nodes of a graph use."""
    for name, value in list(graph.initializers.items()):
        if not (value.uses() or value.is_graph_input() or value.is_graph_output()):
            del graph.initializers[name]
    for value in scope.initializers.values():
        if value.uses() and value.name not in graph.initializers:
            graph.register_initializer(value)


def remove_unused(graph: ir.Graph) -> None:
    """Remove unused nodes and constants of a graph."""
    unused: set[ir.Node] = set()
    for node in reversed(list(graph)):
        users = (user for value in node.outputs for user in value.consumers())
        if unused.issuperset(users) and not any(v.is_graph_output() for v in node.outputs):
            unused.add(node)
    graph.remove(unused, safe=True)
    for value in list(graph.initializers.values()):
        if not (value.uses() or value.is_graph_input() or value.is_graph_output()):
            del graph.initializers[str(value.name)]
