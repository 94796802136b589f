"""Store the constants of a model: constants in use, in other shapes, under known names."""

from collections.abc import Container, Sequence

import onnx_ir as ir

from pytensor_onnx.digests import content_key
from pytensor_onnx.graph.scope import ModelScope


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
