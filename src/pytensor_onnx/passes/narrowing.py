"""Indices in int32 where bounds prove that they fit."""

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
from pytensor_onnx.graph.traversal import all_nodes, nodes_of_model
from pytensor_onnx.operators.dims import dims_of
from pytensor_onnx.operators.entries import MOVING, WITH_BODIES, operators_with
from pytensor_onnx.operators.facts import FIRST
from pytensor_onnx.passes.legaliser.missing_kernels import main_dtype
from pytensor_onnx.passes.matching import constant_of, is_constant, required, store_constants
from pytensor_onnx.passes.model_pass import model_pass
from pytensor_onnx.passes.node_walk import GraphLike, NodeWalk, Results
from pytensor_onnx.targets import Profile

# Compute indices in int32 where the accelerator of a target lacks int64.
#
# A node is narrowed where its numbers fit into int32 by their bounds, or where they are used as
# indices only: sums and products are equal modulo 2**32, and an index beyond int32 is out of bounds
# in any array. Integers that a model is given have no bounds: they are clipped, which keeps their
# order beside sizes, and an index out of bounds stays out of bounds.

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


COMPARING = frozenset(("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"))
CHOOSING = MOVING - {"Split"}
"""Operators whose only result has elements of the operands."""

MONOTONE = CHOOSING | {"Max", "Min"}
"""Operators that give clipped results of clipped operands."""

MODULAR = CHOOSING | {"Add", "Mul", "Neg", "Sub"}
"""Operators whose results modulo 2**32 follow from their operands modulo 2**32."""

EXACT = frozenset(("Cast", "CumSum", "Div", "Mod", "Range", "ReduceSum"))
"""Operators that need their operands as they are."""

_OF_SIZES = (COMPARING | MONOTONE | MODULAR | {"Cast", "Div", "Mod"}) - {"Expand", "Tile"}
"""Operators whose results are few numbers where their operands are."""

_FEW = 64
"""Elements of the largest constant that counts as sizes."""

_INDICES = {
    "Gather": 1,
    "GatherElements": 1,
    "GatherND": 1,
    "ScatterElements": 1,
    "ScatterND": 1,
}
"""Operand that selects elements, by operator."""

_WIDE_INDICES = frozenset(("GatherND", "ScatterND"))
"""Operators whose indices are int64 by the standard."""

_FIRST_ONLY = {"Cast", "CumSum", "ReduceSum"} | operators_with(lambda o: o.moves == FIRST)
"""Operators that compute with their first operand; others are axes, shapes and indices."""


class Uses:
    """Properties of the int64 values of a model, each found once."""

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self._indices: dict[ir.Value, bool] = {}
        self._ordered: dict[ir.Value, bool] = {}
        self._sizes: dict[ir.Value, bool] = {}

    @classmethod
    def in_model(cls, model: ir.Model) -> Uses:
        """Return the properties of values in a model, whose functions may be given sizes."""
        uses = cls(Bounds())
        functions = {f.identifier(): f for f in model.functions.values()}
        given: dict[ir.Value, list[bool]] = defaultdict(list)
        # The model lists a function after the functions that it calls.
        owners: list[ir.Graph | ir.Function] = [model.graph, *reversed(functions.values())]
        for owner in owners:
            if isinstance(owner, ir.Function):
                uses._sizes |= {x: bool(given[x]) and all(given[x]) for x in owner.inputs}
            nodes = list(all_nodes(owner))
            for node in nodes:
                uses._look_back(node)
                called = functions.get(node.op_identifier())
                if called is not None:
                    for x, inner in zip(node.inputs, called.inputs, strict=False):
                        given[inner].append(x is not None and uses.is_size(x))
            for node in reversed(nodes):
                uses._look_ahead(node)
        return uses

    def _look_back(self, node: ir.Node) -> None:
        """Find properties that follow from operands, in an order that keeps searches short."""
        for value in node.outputs:
            self.is_size(value)
            if value.dtype == ir.DataType.INT64:
                self.bounds.of(value)

    def _look_ahead(self, node: ir.Node) -> None:
        """Find properties that follow from uses, in an order that keeps searches short."""
        for value in node.outputs:
            if value.dtype == ir.DataType.INT64:
                self.is_index(value)
                self.is_ordered(value)

    def is_size(self, value: ir.Value) -> bool:
        """Return whether a value is computed of sizes, single integers and constants only.

        Runtimes compute these on the processor, which decides how large arrays are.
        """
        if value not in self._sizes:
            node = value.producer()
            if node is None or node.op_type == "Constant":
                self._sizes[value] = _is_few(value) or _is_integer(value)
            else:
                self._sizes[value] = not node.domain and self._makes_sizes(node)
        return self._sizes[value]

    def _makes_sizes(self, node: ir.Node) -> bool:
        if node.op_type in ("Shape", "Size"):
            return True
        return node.op_type in _OF_SIZES and all(x is None or self.is_size(x) for x in node.inputs)

    def is_index(self, value: ir.Value) -> bool:
        """Return whether all uses of a value select elements, or compute the indices that do."""
        if value not in self._indices:
            self._indices[value] = _holds_for_all_uses(value, self._selects)
        return self._indices[value]

    def _selects(self, node: ir.Node, position: int) -> bool:
        if node.domain:
            return False
        if node.op_type in ("Shape", "Size") or position == _INDICES.get(node.op_type):
            return True
        return (
            node.op_type in MODULAR
            and self._is_operand(node, position)
            and self.is_index(node.outputs[0])
        )

    def _is_operand(self, node: ir.Node, position: int) -> bool:
        """Return whether a node computes with an operand, and its constants fit into int32."""
        operands = positions(node)
        constants = filter(is_constant, (node.inputs[i] for i in operands))
        return position in operands and all(map(self.bounds.fit, constants))

    def is_ordered(self, value: ir.Value) -> bool:
        """Return whether all uses of a value select elements, or compare it with small numbers."""
        if value not in self._ordered:
            self._ordered[value] = _holds_for_all_uses(value, self._orders)
        return self._ordered[value]

    def _orders(self, node: ir.Node, position: int) -> bool:
        if self._selects(node, position):
            return True
        if node.domain or not self._is_operand(node, position):
            return False
        if node.op_type in COMPARING:
            return self.bounds.fit(node.inputs[1 - position])
        return node.op_type in MONOTONE and self.is_ordered(node.outputs[0])


def _holds_for_all_uses(value: ir.Value, holds: Callable[[ir.Node, int], bool]) -> bool:
    """Return whether a value is used by nodes alone, and a property holds for each operand."""
    uses = value.uses()
    return (
        len(uses) > 0
        and not value.is_graph_output()
        and all(holds(use.node, use.idx) for use in uses)
    )


def positions(node: ir.Node) -> list[int]:
    """Return the positions of the int64 operands that a node computes with."""
    return [
        i
        for i, x in enumerate(node.inputs)
        if x is not None
        and x.dtype == ir.DataType.INT64
        and (i == 0 or node.op_type not in _FIRST_ONLY)
    ]


def takes_int32(node: ir.Node, position: int) -> bool:
    """Return whether an operand that selects elements may be int32."""
    is_wide = node.domain or node.op_type in _WIDE_INDICES
    return not is_wide and position == _INDICES.get(node.op_type)


def _is_integer(value: ir.Value) -> bool:
    return value.dtype == ir.DataType.INT64 and dims_of(value) == ()


def _is_few(value: ir.Value) -> bool:
    array = constant_of(value)
    return array is not None and array.size <= _FEW


def describe_placement(model: ir.Model, profile: Profile) -> list[Change]:
    """Return a line on the nodes that the accelerator of a target does not run, if it has one.

    Nodes of bodies and functions count once. Those without a kernel run all the same, on the
    processor, with copies of the arrays before and after. Sizes are not counted: the processor
    computes them in any case.
    """
    opset_version = model.graph.opset_imports[""]
    uses = Uses.in_model(model)
    standard = [
        node
        for node in nodes_of_model(model)
        if node.domain == "" and not (node.outputs and uses.is_size(node.outputs[0]))
    ]
    left = [node for node in standard if not _is_accelerated(node, profile, opset_version)]
    if not left:
        return [Change(f"all {len(standard)} nodes run on the accelerator")]
    kinds = ", ".join(sorted({_described(node, opset_version) for node in left}))
    return [Change(f"{len(left)} of {len(standard)} nodes are left to the processor: {kinds}")]


def _is_accelerated(node: ir.Node, profile: Profile, opset_version: int) -> bool:
    if node.op_type in WITH_BODIES:
        return False
    dtype = main_dtype(node, opset_version)
    return dtype is None or profile.accelerates(node.op_type, dtype, opset_version, node.attributes)


def _described(node: ir.Node, opset_version: int) -> str:
    dtype = main_dtype(node, opset_version)
    return node.op_type if dtype is None else f"{node.op_type} of {dtype.numpy()}"
