"""Compute indices in int32 where the accelerator of a target lacks int64.

A node is narrowed where its numbers fit into int32 by their bounds, or where they are used as
indices only: sums and products are equal modulo 2**32, and an index beyond int32 is out of bounds
in any array. Integers that a model is given have no bounds: they are clipped, which keeps their
order beside sizes, and an index out of bounds stays out of bounds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import numpy as np
import onnx_ir as ir

from pytensor_onnx.changes import Change
from pytensor_onnx.graph.bounds import INT32, Bounds
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.names import Names, name_values, names_in
from pytensor_onnx.graph.scope import ModelScope, live_nodes
from pytensor_onnx.graph.traversal import all_nodes
from pytensor_onnx.passes.legaliser.missing_kernels import main_dtype
from pytensor_onnx.passes.matching import constant_of, is_constant, required
from pytensor_onnx.passes.model_pass import model_pass
from pytensor_onnx.passes.narrowing.uses import (
    COMPARING,
    EXACT,
    MODULAR,
    MONOTONE,
    Uses,
    positions,
    takes_int32,
)
from pytensor_onnx.passes.node_walk import GraphLike, NodeWalk, Results
from pytensor_onnx.passes.stored_constants import store_constants
from pytensor_onnx.targets import Profile

_INT32, _INT64 = ir.DataType.INT32, ir.DataType.INT64


@model_pass(
    family="structure",
    purpose="speed",
    identity="f(int64 i) = f(int32 i)",
    requires="a target with an accelerator, and sizes below 2^31",
    measured="benchmarks/NOTES.md, Passes and targets",
)
def narrow_indices(model: ir.Model, scope: ModelScope, profile: Profile) -> list[Change]:
    """Replace int64 by int32 in nodes of a model that then run on the accelerator of a target.

    Parameters
    ----------
    model
        Model to change in place.
    scope
        Names and constants of the model.
    profile
        Target, which may have an accelerator.

    Returns
    -------
    list of Change
        A change with the number of nodes, if there are any.
    """
    choice = _Choice(profile, scope.opset_version, Uses.in_model(model))
    count = _narrow_in(model.graph, choice, scope, scope.names)
    for function in model.functions.values():
        count += _narrow_in(function, choice, scope, names_in(function))
    store_constants(model.graph, scope)
    return [Change(f"indices in int32 in place of int64: {count} nodes")] if count else []


def _narrow_in(owner: GraphLike, choice: _Choice, scope: ModelScope, names: Names) -> int:
    nodes = [node for group in _groups(owner, choice) if choice.gains(group) for node in group]
    remainders = {node for node in nodes if choice.is_remainder(node)}
    if nodes:
        _Writer(scope, owner, names, choice.bounds).narrow(nodes)

    def replace(build: Builder, node: ir.Node) -> Results | None:
        """Replace a remainder of numbers from zero on by a division, a product, a difference."""
        if node not in remainders:
            return None
        x, divisor = map(required, node.inputs)
        result: ir.Value = build.Sub(x, build.Mul(build.Div(x, divisor), divisor))
        return result

    if remainders:
        NodeWalk(owner, scope, replace, ("Mod",)).run()
    return len(nodes)


def _groups(owner: GraphLike, choice: _Choice) -> Iterator[list[ir.Node]]:
    """Yield groups of the nodes that can be narrowed: nodes of a group exchange int64 values."""
    nodes = [node for node in all_nodes(owner) if choice.is_possible(node)]
    linked = {node: node for node in nodes}

    def root(node: ir.Node) -> ir.Node:
        while linked[node] is not node:
            node = linked[node]
        return node

    for node in nodes:
        for value in _operands(node):
            producer = value.producer()
            if producer is not None and producer in linked:
                linked[root(node)] = root(producer)
    groups = defaultdict(list)
    for node in nodes:
        groups[root(node)].append(node)
    yield from groups.values()


def _operands(node: ir.Node) -> list[ir.Value]:
    return [required(node.inputs[i]) for i in positions(node)]


class _Choice:
    """Tells which nodes can be narrowed, and which groups of them should be."""

    def __init__(self, profile: Profile, opset_version: int, uses: Uses) -> None:
        self.profile = profile
        self.opset_version = opset_version
        self.uses = uses
        self.bounds = uses.bounds

    def is_possible(self, node: ir.Node) -> bool:
        """Return whether a node may compute in int32."""
        if node.domain or node.op_type not in COMPARING | MONOTONE | MODULAR | EXACT:
            return False
        operands, result = _operands(node), node.outputs[0]
        makes_int64 = result.dtype == _INT64
        if not (operands or makes_int64) or self.uses.is_size(result):
            return False
        if not self.profile.supports(node.op_type, _INT32, self.opset_version, node.attributes):
            return False
        fitting = list(map(self.bounds.fit, operands))
        if node.op_type in COMPARING:
            return any(fitting)
        if not makes_int64:
            return all(fitting)
        if (node.op_type in MODULAR and self.uses.is_index(result)) or (
            node.op_type in MONOTONE and self.uses.is_ordered(result)
        ):
            return all(self.bounds.fit(x) for x in operands if is_constant(x))
        if node.op_type == "Range":
            # An array up to a limit beyond int32 does not fit into memory.
            fitting[1:2] = []
        return self.bounds.fit(result) and (all(fitting) or node.op_type in ("Max", "Min"))

    def gains(self, group: list[ir.Node]) -> bool:
        """Return whether fewer nodes are left to the processor after a group is narrowed."""
        inside = set(group)
        before = sum(not self._runs(node, _INT64) for node in group)
        after = sum(not self._runs(node, _INT32) for node in group)
        edges = {x for node in group for x in _operands(node) if x.producer() not in inside}
        edges = {x for x in edges if not self.uses.is_size(x)}
        return after + sum(1 if self.bounds.fit(x) else 2 for x in edges) < before

    def is_remainder(self, node: ir.Node) -> bool:
        """Return whether a Mod is a remainder, and the accelerator has none but can divide."""
        if node.op_type != "Mod" or node.outputs[0].dtype != _INT64:
            return False
        (low, _), (divisor, _) = map(self.bounds.of, node.inputs)
        has_it, *divides = (
            self.profile.accelerates(name, _INT32, self.opset_version)
            for name in ("Mod", "Div", "Mul", "Sub")
        )
        return low >= 0 and divisor >= 1 and not has_it and all(divides)

    def _runs(self, node: ir.Node, dtype: ir.DataType) -> bool:
        if dtype == _INT32 and self.is_remainder(node):
            return True
        main = main_dtype(node, self.opset_version)
        dtype = dtype if main in (None, _INT64) else main
        return self.profile.accelerates(node.op_type, dtype, self.opset_version, node.attributes)


class _Writer:
    """Changes the dtype of nodes, with casts to and from the nodes around them."""

    def __init__(self, scope: ModelScope, owner: GraphLike, names: Names, bounds: Bounds) -> None:
        self.builder = partial(Builder, scope, in_function=isinstance(owner, ir.Function))
        self.names = names
        self.bounds = bounds
        self._narrow: dict[ir.Value, ir.Value] = {}

    def narrow(self, nodes: list[ir.Node]) -> None:
        """Replace int64 by int32 in nodes."""
        inside = {node: positions(node) for node in nodes}
        for node, operands in inside.items():
            for i in operands:
                x = required(node.inputs[i])
                if x.producer() not in inside:
                    node.replace_input_with(i, self._narrowed(x))
        for node in inside:
            result = node.outputs[0]
            if result.dtype == _INT64:
                if node.op_type == "Cast":
                    node.attributes["to"] = ir.AttrInt64("to", int(_INT32))
                result.type = ir.TensorType(_INT32)
                self._widen(result, inside)

    def _widen(self, value: ir.Value, inside: Mapping[ir.Node, list[int]]) -> None:
        """Insert a cast to int64 for the nodes and graph outputs that need it."""
        wide = [
            use
            for use in value.uses()
            if use.idx not in inside.get(use.node, []) and not takes_int32(use.node, use.idx)
        ]
        graph = value.graph if value.is_graph_output() else None
        if not wide and graph is None:
            return
        cast = self._inserted(value, lambda build: build.cast(value, _INT64))
        for use in wide:
            use.node.replace_input_with(use.idx, cast)
        if graph is not None:
            value.name, cast.name = cast.name, value.name
            graph.outputs[:] = [cast if v is value else v for v in graph.outputs]

    def _narrowed(self, value: ir.Value) -> ir.Value:
        if value not in self._narrow:
            self._narrow[value] = self._inserted(value, lambda build: self._cast(build, value))
        return self._narrow[value]

    def _cast(self, build: Builder, value: ir.Value) -> ir.Value:
        array = constant_of(value)
        if array is not None:
            return build.constant(np.clip(array, *INT32).astype("int32"))
        if not self.bounds.fit(value):
            value = build.Clip(value, *map(np.int64, INT32))
        return build.cast(value, _INT32)

    def _inserted(self, value: ir.Value, form: Callable[[Builder], ir.Value]) -> ir.Value:
        """Insert the nodes of a form behind the node of a value."""
        build = self.builder()
        result = form(build)
        nodes = live_nodes(build.nodes, [result])
        name_values(nodes, self.names)
        producer = value.producer()
        graph = value.graph if producer is None else producer.graph
        if graph is not None and producer is not None:
            graph.insert_after(producer, nodes)
        elif graph is not None and nodes:
            graph.insert_before(graph[0], nodes)
        return result
