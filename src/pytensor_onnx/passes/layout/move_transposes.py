"""Move Transposes past operators that work in any order of axes, and cancel them.

In a network with channels last, a layer with channels first is between two Transposes. The pass
represents each transposed value by its operand, the *base*, and a permutation. Operators that work
in any order of axes work on the bases. A Transpose remains before an operator that needs the
original axes, and before an output. Successive permutations become one, or none.
"""

from __future__ import annotations

from math import prod

import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.names import name_values
from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.operators.dims import dims_of
from pytensor_onnx.passes.layout.layout_rules import (
    Moved,
    Perm,
    inverse,
    keep_meta,
    transposed_constant,
    with_axes,
)
from pytensor_onnx.passes.layout.walk import (
    Walk,
    is_transpose,
    nodes_within,
    perm_of,
    wide_axes,
)
from pytensor_onnx.passes.matching import is_constant, store_constants
from pytensor_onnx.passes.model_pass import model_pass
from pytensor_onnx.passes.node_walk import remove_unused

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


@model_pass(
    family="networks",
    purpose="speed",
    identity="f(transpose(x)) = transpose(f(x))",
    begins_at=("Transpose",),
    requires="fewer or smaller Transposes",
    measured="benchmarks/NOTES.md, YOLO11n",
)
def move_transposes(model: ir.Model, scope: ModelScope) -> int:
    """Move Transposes of three axes and more, if that leaves fewer or smaller ones.

    Transposes are grouped by the operators that they move past. A group is moved as a whole, if
    moving transposes fewer elements, or as many and a layer with channels first loses a Transpose.
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
    """Group Transposes that must move together, with the cost of moving each group."""

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
        """Return the Transposes of the groups whose move pays."""
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
    """Rewrite a graph so that operators work on bases."""

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
                new.name, old.name = old.name, new.name
        store_constants(self.graph, self._scope)

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
        build = Builder(self._scope)
        build.provenance = dict(node.metadata_props)
        operands = [
            value if value is None or perm is None else self._base(build, value, perm)
            for value, perm in zip(node.inputs, moved.wanted, strict=True)
        ]
        emitted = moved.emit(build, operands)
        self._stored += moved.stored
        results = [emitted] if isinstance(emitted, ir.Value) else list(emitted)
        new_node = results[0].producer()
        keep_meta(node, new_node, moved)
        for old, new, perm in zip(node.outputs, results, moved.perms, strict=True):
            dims = dims_of(old)
            if dims is not None and new.producer() is not None:
                new.shape = ir.Shape(dims if perm is None else [dims[i] for i in inverse(perm)])
            if new.name is None:
                new.name = self._scope.names.unique(str(old.name))
                self._renamed.append((old, new))
        self._insert(build, node)
        for old, new, perm in zip(node.outputs, results, moved.perms, strict=True):
            if perm is None:
                self._replace(old, new, node)
            else:
                self._bases[old] = new

    def needed(self, value: ir.Value, node: ir.Node | None) -> None:
        base, perm = self._bases[value], self.perms[value]
        if (base, perm) not in self._made:
            build = Builder(self._scope)
            producer = value.producer()
            build.provenance = dict(producer.metadata_props) if producer is not None else {}
            made = self._turned(build, base, perm)
            made.shape = value.shape
            made.name, value.name = value.name, None
            self._insert(build, node)
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

    def _turned(self, build: Builder, base: ir.Value, perm: Perm) -> ir.Value:
        """Return the Transpose of a base, created at most once."""
        if (base, perm) not in self._made:
            self._made[base, perm] = build.Transpose(base, perm=list(perm))
        return self._made[base, perm]

    def _base(self, build: Builder, value: ir.Value, perm: Perm) -> ir.Value:
        """Return a base whose permutation is the value, or which broadcasts as the value does."""
        own, back = self.perms.get(value), inverse(perm)
        if own == perm:
            return self._bases[value]
        if own is None and is_constant(value):
            turned = transposed_constant(build, value, back)
            self._stored.append((value, turned))
            return turned
        if own is None and back in self.transposed.get(value, ()):
            return self._turned(build, value, back)
        wide = wide_axes(value, len(perm))
        assert wide is not None
        return with_axes(build, self._bases.get(value, value), [perm[a] for a in wide], len(perm))

    def _replace(self, old: ir.Value, new: ir.Value, node: ir.Node) -> None:
        """Replace a value in all of its uses; an output keeps its name."""
        if old.is_graph_output():
            if new.producer() is None or new.is_graph_output():
                build = Builder(self._scope)
                new = build.Identity(new)
                new.shape = old.shape
                self._insert(build, node)
            new.name, old.name = old.name, None
        ir.convenience.replace_all_uses_with(old, new, replace_graph_outputs=True)

    def _insert(self, build: Builder, node: ir.Node | None) -> None:
        nodes = list(build.nodes)
        name_values(nodes, self._scope.names)
        if node is None:
            self.graph.extend(nodes)
        else:
            self.graph.insert_before(node, nodes)


def _size(value: ir.Value) -> int:
    """Return the number of elements of a value, with a small number for unknown sizes."""
    return prod(d if isinstance(d, int) else UNKNOWN_SIZE for d in dims_of(value) or ())
