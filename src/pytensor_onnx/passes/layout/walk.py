"""Traverse a graph with Transposes represented as permutations of bases."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from pytensor_onnx.graph.builder import has_fallback
from pytensor_onnx.graph.traversal import all_nodes, bodies_of
from pytensor_onnx.operators.dims import dims_of
from pytensor_onnx.passes.layout.layout_rules import Moved, Perm, inverse, move
from pytensor_onnx.passes.matching import is_constant, is_operator


class Walk:
    """Visitor that follows bases and permutations through a graph, in the order of computation."""

    def __init__(self, model: ir.Model) -> None:
        self.graph = model.graph
        self.perms: dict[ir.Value, Perm] = {}
        self.transposed: dict[ir.Value, set[Perm]] = {}
        for node in self.graph:
            operand = node.inputs[0] if is_transpose(node) else None
            if operand is not None:
                self.transposed.setdefault(operand, set()).add(perm_of(node))

    def run(self) -> None:
        """Visit all nodes and outputs."""
        for node in list(self.graph):
            if is_transpose(node) and self.takes(node):
                self._transpose(node)
                continue
            perms = [None if v is None else self.perms.get(v) for v in node.inputs]
            moved = move(node, perms) if any(perms) and not node.domain else None
            if has_fallback(node) and not all(perms):
                moved = None
            if moved is not None and self._can_give(node, moved):
                self.moved(node, moved)
                self.perms |= {
                    result: perm
                    for result, perm in zip(node.outputs, moved.perms, strict=True)
                    if perm is not None
                }
                continue
            read = [*node.inputs, *(v for inner in nodes_within(node) for v in inner.inputs)]
            for value in dict.fromkeys(read):
                if value is not None and value in self.perms:
                    self.needed(value, node)
            if is_transpose(node):
                self.left(node)
        for result in list(self.graph.outputs):
            if result in self.perms:
                self.needed(result, None)

    def _transpose(self, node: ir.Node) -> None:
        operand, result = node.inputs[0], node.outputs[0]
        assert operand is not None
        perm = perm_of(node)
        before = self.perms.get(operand)
        total = perm if before is None else tuple(before[p] for p in perm)
        if total != tuple(range(len(total))):
            self.perms[result] = total
        self.transposed_again(node)

    def _can_give(self, node: ir.Node, moved: Moved) -> bool:
        return all(
            value is None or perm is None or self._can_adapt(value, perm, moved.broadcasts)
            for value, perm in zip(node.inputs, moved.wanted, strict=True)
        )

    def _can_adapt(self, value: ir.Value, perm: Perm, broadcasts: bool) -> bool:
        """Return whether a base for a permutation exists or is cheap to compute."""
        own = self.perms.get(value)
        if own == perm:
            return True
        if own is None and (is_constant(value) or inverse(perm) in self.transposed.get(value, ())):
            return True
        wide = wide_axes(value, len(perm)) if broadcasts else None
        if wide is None:
            return False
        order = wide if own is None else [own[a - len(perm) + len(own)] for a in wide]
        return order_of(order) == order_of([perm[a] for a in wide])

    def takes(self, node: ir.Node) -> bool:
        """Return whether a Transpose may be moved."""
        return True

    def transposed_again(self, node: ir.Node) -> None:
        """Visit a Transpose that is represented as a permutation."""

    def left(self, node: ir.Node) -> None:
        """Visit a Transpose that stays."""

    def moved(self, node: ir.Node, moved: Moved) -> None:
        """Visit a node that works on bases."""

    def needed(self, value: ir.Value, node: ir.Node | None) -> None:
        """Visit a use of a value with its original axes, by a node or (None) by the graph."""


def is_transpose(node: ir.Node) -> bool:
    """Return whether a node is a Transpose of three axes or more."""
    return is_operator(node, "Transpose") and len(node.attributes.get_ints("perm", ())) > 2


def perm_of(node: ir.Node) -> Perm:
    """Return the permutation of a Transpose."""
    return tuple(node.attributes["perm"].as_ints())


def wide_axes(value: ir.Value, rank: int) -> list[int] | None:
    """Return the axes of a value whose size is not one, counted in a larger rank."""
    dims = dims_of(value)
    if dims is None or len(dims) > rank:
        return None
    return [i + rank - len(dims) for i, d in enumerate(dims) if d != 1]


def order_of(places: list[int]) -> list[int]:
    """Return the positions that sort a list of numbers."""
    return sorted(range(len(places)), key=places.__getitem__)


def nodes_within(node: ir.Node) -> Iterator[ir.Node]:
    """Yield the nodes of the subgraphs of a node."""
    for body in bodies_of(node):
        yield from all_nodes(body)
