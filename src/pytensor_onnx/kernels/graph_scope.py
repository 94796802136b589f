"""The scope of a graph, and the operators of the native library."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, cached_property
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from pytensor_onnx import native
from pytensor_onnx.operators.inference import defaults_of


class Scope:
    """The values that a node of a graph can name.

    Parameters
    ----------
    graph
        A graph whose types are inferred.
    outer
        The scope of the node that has the graph as a body.
    """

    def __init__(self, graph: onnx.GraphProto, outer: Scope | None = None) -> None:
        self.graph = graph
        self.outer = outer
        self.inputs = {x.name for x in graph.input}
        self.results = {x.name for x in graph.output}
        self._types = {
            x.name: x.type.tensor_type
            for x in (*graph.input, *graph.value_info, *graph.output)
            if x.type.WhichOneof("value") == "tensor_type"
        }
        self._initializers = {x.name: x for x in graph.initializer if x.name not in self.inputs}
        self.producers = {name: node for node in graph.node for name in node.output if name}

    @cached_property
    def root(self) -> Scope:
        """The scope of the model's graph."""
        return self.outer.root if self.outer else self

    def owner(self, name: str) -> Scope | None:
        """Return the scope that defines a value, None if none does."""
        defines = name in self.producers or name in self._initializers or name in self.inputs
        return self if defines else self.outer.owner(name) if self.outer else None

    def dtype(self, name: str) -> int:
        """Return the type of a value, 0 if it is unknown."""
        owner = self.owner(name)
        if owner is None:
            return 0
        if name in owner._initializers:
            return int(owner._initializers[name].data_type)
        return int(owner._types[name].elem_type) if name in owner._types else 0

    def shape(self, name: str) -> list[int | None] | None:
        """Return the sizes of a value, None for those unknown."""
        owner = self.owner(name)
        if owner is not None and name in owner._initializers:
            return list(owner._initializers[name].dims)
        found = owner._types.get(name) if owner else None
        if found is None or not found.HasField("shape"):
            return None
        return [d.dim_value if d.HasField("dim_value") else None for d in found.shape.dim]

    def type(self, name: str) -> onnx.TypeProto.Tensor | None:
        """Return the type and shape of a value."""
        owner = self.owner(name)
        return owner._types.get(name) if owner else None

    def producer(self, name: str) -> tuple[onnx.NodeProto, Scope] | None:
        """Return the node that computes a value, with its scope."""
        owner = self.owner(name)
        if owner is None or name not in owner.producers:
            return None
        return owner.producers[name], owner

    def constant(self, name: str) -> np.ndarray | None:
        """Return the data of a constant, None for other values."""
        owner = self.owner(name)
        if owner is None:
            return None
        if name in owner._initializers:
            return numpy_helper.to_array(owner._initializers[name])
        node = owner.producers.get(name)
        return constant_of(node) if node is not None and node.op_type == "Constant" else None

    def constant_size(self, name: str) -> int | None:
        """Return the number of elements of a constant, None for other values."""
        owner = self.owner(name)
        if owner is not None and name in owner._initializers:
            return int(np.prod(owner._initializers[name].dims))
        found = self.constant(name)
        return None if found is None else found.size


def constant_of(node: onnx.NodeProto) -> np.ndarray | None:
    """Return the data of a Constant node, None for text and sparse data."""
    [attribute] = node.attribute
    value = onnx.helper.get_attribute_value(attribute)
    match attribute.name:
        case "value":
            return numpy_helper.to_array(value)
        case "value_int" | "value_ints":
            return np.asarray(value, "int64")
        case "value_float" | "value_floats":
            return np.asarray(value, "float32")
    return None


def constants_of(graph: onnx.GraphProto) -> dict[str, np.ndarray]:
    """Return the arrays of initializers and of Constant nodes, defaults of inputs left out."""
    inputs = {x.name for x in graph.input}
    stored = {x.name: numpy_helper.to_array(x) for x in graph.initializer if x.name not in inputs}
    made = {n.output[0]: constant_of(n) for n in graph.node if n.op_type == "Constant"}
    return stored | {name: x for name, x in made.items() if x is not None}


def attributes_of(node: onnx.NodeProto) -> dict[str, Any]:
    """Return the attributes of a node by name, with the defaults of the standard."""
    given = {x.name: onnx.helper.get_attribute_value(x) for x in node.attribute}
    texts = {name: x.decode() for name, x in given.items() if isinstance(x, bytes)}
    return {**defaults_of(node.op_type), **given, **texts}


def bodies(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """Yield the graphs within a node."""
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            yield attribute.g


def captured(node: onnx.NodeProto) -> list[str]:
    """Return the values from outside that the bodies of a node use."""
    names: dict[str, None] = {}
    for body in bodies(node):
        own = {x.name for x in (*body.input, *body.initializer)}
        own |= {name for inner in body.node for name in inner.output}
        used = [name for inner in body.node for name in (*inner.input, *captured(inner)) if name]
        used += [x.name for x in body.output]
        names |= dict.fromkeys(name for name in used if name not in own)
    return list(names)


@cache
def operator_numbers() -> dict[str, int]:
    """Return the number of each operator of a tape, by name."""
    name_of = native.handle().pytensor_onnx_operator
    names: dict[str, int] = {}
    while name := name_of(len(names)):
        names[name.decode()] = len(names)
    return names


@cache
def covers(operator: str, dtype: int) -> bool:
    """Return whether an operator of a tape has a kernel for a type, as ONNX numbers it."""
    return bool(native.handle().pytensor_onnx_covers(operator_numbers()[operator], dtype))
