"""Transposes move past the operators that can work on another order of axes, and cancel.

A layer that works channels first, in a network that is written channels last, stands between two
Transposes. Between two such layers are operators that do not mind the order of axes. The pass takes
every value that a Transpose makes as a *base* and a permutation, lets operators work on the bases,
and transposes only where an operator needs the axes as they were, or an output does. Two
permutations in a row become one, or none.
"""

from __future__ import annotations

from math import prod

import numpy as np
import onnx_ir as ir

from pytensor_onnx.builder import Builder
from pytensor_onnx.dims import constant_ints, dims_of
from pytensor_onnx.passes.definitions import carry_definition, definition_of
from pytensor_onnx.passes.layout_moved import Moved, Perm, inverse
from pytensor_onnx.passes.layout_walk import (
    Walk,
    is_constant,
    is_transpose,
    nodes_within,
    perm_of,
    wide_axes,
)
from pytensor_onnx.passes.rewriting import remove_unused
from pytensor_onnx.scope import ModelScope, name_values

UNKNOWN_SIZE = 8
CHANNELS_FIRST = frozenset(
    {
        "AveragePool",
        "BatchNormalization",
        "Conv",
        "ConvTranspose",
        "DepthToSpace",
        "GlobalAveragePool",
        "GlobalMaxPool",
        "GroupNormalization",
        "InstanceNormalization",
        "LpPool",
        "MaxPool",
        "Resize",
        "SpaceToDepth",
    }
)


def move_transposes(model: ir.Model, scope: ModelScope) -> int:
    """Move Transposes of three axes and more, where that leaves fewer or smaller ones.

    What hangs together by operators that are moved is moved as a whole or not at all. It is left
    as it is if more would be transposed, or as much and no layer that works channels first gains.
    """
    if not any(map(is_transpose, model.graph)):
        return 0
    plan = _Groups(model)
    plan.run()
    moved = plan.worthwhile()
    if moved:
        _Mover(model, scope, moved).run()
    return len(moved)


class _Groups(Walk):
    """Finds which Transposes hang together, and what moving them would cost and save."""

    def __init__(self, model: ir.Model) -> None:
        self._roots: dict[ir.Value, ir.Value] = {}
        self._nodes: dict[ir.Value, ir.Node] = {}
        self._gains: list[ir.Value] = []
        self._costs: list[tuple[ir.Value, int]] = []
        self._paid: set[ir.Value] = set()
        super().__init__(model)

    def transposed_again(self, node: ir.Node) -> None:
        operand, result = node.inputs[0], node.outputs[0]
        assert operand is not None
        self._nodes[result] = node
        self._costs.append((result, -_size(result)))
        if operand in self._roots:
            self._join(result, operand)
        producer = operand.producer()
        if producer is not None and producer.op_type in CHANNELS_FIRST:
            self._gains.append(result)
        self._root(result)

    def moved(self, node: ir.Node, moved: Moved) -> None:
        known = [v for v in node.inputs if v is not None and v in self._roots and v in self.perms]
        for value in [*known, *node.outputs]:
            self._join(value, known[0])

    def needed(self, value: ir.Value, node: ir.Node | None) -> None:
        if value not in self._paid:
            self._paid.add(value)
            self._costs.append((value, _size(value)))

    def worthwhile(self) -> set[ir.Node]:
        """Return the Transposes of the groups that are better moved."""
        balance: dict[ir.Value, int] = {}
        for value, cost in self._costs:
            root = self._root(value)
            balance[root] = balance.get(root, 0) + cost
        gains = {self._root(value) for value in self._gains}
        good = {r for r, cost in balance.items() if cost < 0 or (cost == 0 and r in gains)}
        return {node for value, node in self._nodes.items() if self._root(value) in good}

    def _root(self, value: ir.Value) -> ir.Value:
        self._roots.setdefault(value, value)
        while self._roots[value] is not value:
            self._roots[value] = self._roots[self._roots[value]]
            value = self._roots[value]
        return value

    def _join(self, first: ir.Value, second: ir.Value) -> None:
        self._roots[self._root(first)] = self._root(second)


class _Mover(Walk):
    """Rewrites a graph so that operators work on bases."""

    def __init__(self, model: ir.Model, scope: ModelScope, transposes: set[ir.Node]) -> None:
        self._scope = scope
        self._transposes = transposes
        self._bases: dict[ir.Value, ir.Value] = {}
        self._made: dict[tuple[ir.Value, Perm], ir.Value] = {}
        self._renamed: list[tuple[ir.Value, ir.Value]] = []
        self._stored: list[tuple[ir.Value, ir.Value]] = []
        super().__init__(model)

    def takes(self, node: ir.Node) -> bool:
        return node in self._transposes

    def run(self) -> None:
        super().run()
        remove_unused(self.graph)
        kept = {value for node in self.graph for value in node.outputs}
        inner = kept - set(self.graph.outputs)
        for old, new in self._renamed:
            if old.name is not None and old not in kept and new in inner:
                new.name, old.name = old.name, None
                node = new.producer()
                assert node is not None
                node.name = new.name
        for old, new in self._stored:
            if not old.uses() and new.name not in self.graph.initializers:
                new.name = old.name
        for value in self._scope.initializers.values():
            if value.uses() and value.name not in self.graph.initializers:
                self.graph.register_initializer(value)

    def transposed_again(self, node: ir.Node) -> None:
        operand, result = node.inputs[0], node.outputs[0]
        assert operand is not None
        base = self._bases.get(operand, operand)
        if result in self.perms:
            self._bases[result] = base
            producer = base.producer()
            if producer is not None and "pytensor.variable" not in producer.metadata_props:
                self._renamed.append((result, base))
        else:
            self._replace(result, base, node)

    def left(self, node: ir.Node) -> None:
        if node.inputs[0] is not None:
            self._made[node.inputs[0], perm_of(node)] = node.outputs[0]

    def moved(self, node: ir.Node, moved: Moved) -> None:
        onnx = Builder(self._scope)
        onnx.provenance = dict(node.metadata_props)
        operands = [
            value if value is None or perm is None else self._base(onnx, value, perm)
            for value, perm in zip(node.inputs, moved.wanted, strict=True)
        ]
        emitted = moved.emit(onnx, operands)
        self._stored += moved.stored
        results = [emitted] if isinstance(emitted, ir.Value) else list(emitted)
        new_node = results[0].producer()
        _keep_meta(node, new_node, moved)
        for old, new, perm in zip(node.outputs, results, moved.perms, strict=True):
            dims = dims_of(old)
            if dims is not None and new.producer() is not None:
                new.shape = ir.Shape(dims if perm is None else [dims[i] for i in inverse(perm)])
            if new.name is None:
                new.name = self._scope.names.unique(str(old.name))
                self._renamed.append((old, new))
        self._insert(onnx, node)
        for old, new, perm in zip(node.outputs, results, moved.perms, strict=True):
            if perm is None:
                self._replace(old, new, node)
            else:
                self._bases[old] = new

    def needed(self, value: ir.Value, node: ir.Node | None) -> None:
        base, perm = self._bases[value], self.perms[value]
        if (base, perm) not in self._made:
            onnx = Builder(self._scope)
            producer = value.producer()
            onnx.provenance = dict(producer.metadata_props) if producer is not None else {}
            made = self._turned(onnx, base, perm)
            made.shape = value.shape
            made.name, value.name = value.name, None
            self._insert(onnx, node)
        made = self._made[base, perm]
        if node is None:
            for i, output in enumerate(self.graph.outputs):
                if output is value:
                    self.graph.outputs[i] = made
            return
        for user in (node, *nodes_within(node)):
            for position, operand in enumerate(user.inputs):
                if operand is value:
                    user.replace_input_with(position, made)

    def _turned(self, onnx: Builder, base: ir.Value, perm: Perm) -> ir.Value:
        """Return a transposition, which is made only once."""
        if (base, perm) not in self._made:
            self._made[base, perm] = onnx.Transpose(base, perm=list(perm))
        return self._made[base, perm]

    def _base(self, onnx: Builder, value: ir.Value, perm: Perm) -> ir.Value:
        """Return a value whose transposition by a permutation is, or is broadcast as, a value."""
        own, back = self.perms.get(value), inverse(perm)
        if own == perm:
            return self._bases[value]
        if own is None and is_constant(value):
            turned = _turned_constant(onnx, value, back)
            self._stored.append((value, turned))
            return turned
        if own is None and back in self.transposed.get(value, ()):
            return self._turned(onnx, value, back)
        wide = wide_axes(value, len(perm))
        assert wide is not None
        return _with_axes(onnx, self._bases.get(value, value), [perm[a] for a in wide], len(perm))

    def _replace(self, old: ir.Value, new: ir.Value, node: ir.Node) -> None:
        """Let all users of a value read another; the graph returns it under the same name."""
        if old.is_graph_output():
            if new.producer() is None or new.is_graph_output():
                onnx = Builder(self._scope)
                new = onnx.Identity(new)
                new.shape = old.shape
                self._insert(onnx, node)
            new.name, old.name = old.name, None
        ir.convenience.replace_all_uses_with(old, new, replace_graph_outputs=True)

    def _insert(self, onnx: Builder, node: ir.Node | None) -> None:
        nodes = list(onnx.nodes)
        name_values(nodes, self._scope.names)
        if node is None:
            self.graph.extend(nodes)
        else:
            self.graph.insert_before(node, nodes)


def _size(value: ir.Value) -> int:
    """Return how many elements a value has, an unknown size taken as a small one."""
    return prod(d if isinstance(d, int) else UNKNOWN_SIZE for d in dims_of(value) or ())


def _keep_meta(node: ir.Node, new: ir.Node | None, moved: Moved) -> None:
    """Let a node that works on bases carry what the one in its place did."""
    if new is None or new.op_type != node.op_type:
        return
    definition = definition_of(node)
    for key, value in node.meta.items():
        new.meta.setdefault(key, value)
    if definition is not None:
        perms = [list(perm) for perm in moved.wanted if perm is not None]
        backs = [None if perm is None else list(inverse(perm)) for perm in moved.perms]

        def define(onnx: Builder, *operands: ir.Value) -> list[ir.Value]:
            own = [onnx.Transpose(x, perm=p) for x, p in zip(operands, perms, strict=True)]
            results = definition(onnx, *own)
            results = [results] if isinstance(results, ir.Value) else list(results)
            return [
                result if back is None else onnx.Transpose(result, perm=back)
                for result, back in zip(results, backs, strict=True)
            ]

        carry_definition(new, define)


def _turned_constant(onnx: Builder, value: ir.Value, back: Perm) -> ir.Value:
    assert value.const_value is not None
    array = value.const_value.numpy()
    if array.size == 1:
        return value
    turned = array.reshape((1,) * (len(back) - array.ndim) + array.shape).transpose(back)
    kept = 0 if array.ndim == len(back) else next(i for i, n in enumerate(turned.shape) if n != 1)
    turned = np.ascontiguousarray(turned.reshape(turned.shape[kept:]))
    return onnx.constant(turned)


def _with_axes(onnx: Builder, value: ir.Value, places: list[int], rank: int) -> ir.Value:
    """Put the axes that are not of size one in their places, those of size one between them."""
    if not places:
        return value
    node = value.producer()
    if node is not None and node.op_type == "Unsqueeze" and constant_ints(node.inputs[1]):
        value = node.inputs[0] or value
    ones = [i for i, d in enumerate(dims_of(value) or ()) if d == 1]
    if ones:
        value = onnx.Squeeze(value, onnx.ints(ones))
    # ONNX broadcasts operands of fewer axes: none is added in front.
    added = [i - min(places) for i in range(min(places), rank) if i not in places]
    return onnx.Unsqueeze(value, onnx.ints(added)) if added else value
