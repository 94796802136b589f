"""Sizes and indices among the integers of a model, found by their producers and uses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import onnx_ir as ir

from pytensor_onnx.graph.bounds import MOVING, Bounds
from pytensor_onnx.graph.dims import dims_of
from pytensor_onnx.graph.traversal import all_nodes
from pytensor_onnx.passes.matching import constant_of, is_constant

COMPARING = frozenset(("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"))
CHOOSING = MOVING | {"Concat", "Where"}
"""Operators whose results are elements of their operands."""

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

_FIRST_ONLY = MOVING | {"Cast", "CumSum", "ReduceSum"}
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
