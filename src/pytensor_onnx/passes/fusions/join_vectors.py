"""Compute a formula of many short vectors once, for the vectors joined.

A training step updates each bias, scale and running statistic of a network by the same operators,
whose calls take longer than their arithmetic.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.dims import dims_of
from pytensor_onnx.graph.names import name_values
from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.passes.matching import is_operator
from pytensor_onnx.passes.model_pass import model_pass
from pytensor_onnx.passes.node_walk import remove_unused
from pytensor_onnx.passes.stored_constants import store_constants

OPERATORS = frozenset({"Abs", "Add", "Div", "Mul", "Neg", "Sqrt", "Sub"})
"""Elementwise operators whose results do not depend on the position of an element."""
FEWEST_OPERATORS, MOST_OPERATORS = 2, 64
OPERATOR, COPY, COPIED_VECTOR = 20, 20, 6
"""Costs of an operator, of a Concat or Split, and of each vector of these, in 10 ns as measured."""
LONGEST_VECTOR = 1024
"""Elements from which on copies into the joined vector cost more than calls."""

Term = tuple[str, Any]
"""An operator and its operands, a vector and its position, or a number and its value."""
Joined = dict[tuple[ir.Value, ...], ir.Value]
"""Joined vectors by their parts."""


@dataclass
class _Formula:
    """A result of operators on vectors of its size."""

    root: ir.Node
    size: int
    n_operators: int = 0
    vectors: list[ir.Value] = field(default_factory=list)

    def term(self, value: ir.Value | None) -> Term | None:
        """Return the form of an operand, None for an array of another shape."""
        dims = dims_of(value)
        if value is None or dims is None:
            return None
        if dims == ():
            return "number", value
        if dims != (self.size,):
            return None
        node = value.producer()
        is_inner = len(value.uses()) == 1 and not value.is_graph_output()
        is_part = (is_inner or self.root is node) and self.n_operators < MOST_OPERATORS
        if node is not None and is_part and _is_joined(node):
            before = self.n_operators, len(self.vectors)
            self.n_operators += 1
            operands = [self.term(x) for x in node.inputs]
            if None not in operands:
                return node.op_type, tuple(operands)
            self.n_operators = before[0]
            del self.vectors[before[1] :]
        if value is self.root.outputs[0]:
            return None
        if value not in self.vectors:
            self.vectors.append(value)
        return f"vector of {value.dtype}", self.vectors.index(value)


@model_pass(
    family="elementwise",
    purpose="size",
    identity="f(x), f(y) = split(f(concat(x, y)))",
    begins_at=tuple(sorted(OPERATORS)),
    requires="outputs that are one formula of short vectors each, of known sizes",
    measured="benchmarks/NOTES.md, Updates in training steps",
)
def join_vectors(model: ir.Model, scope: ModelScope) -> int:
    """Compute outputs that are the same formula of other vectors together."""
    groups: dict[Term, list[_Formula]] = defaultdict(list)
    for output in dict.fromkeys(model.graph.outputs):
        dims, root = dims_of(output), output.producer()
        if root is None or dims is None or len(dims) != 1 or not isinstance(dims[0], int):
            continue
        formula = _Formula(root, dims[0])
        term = formula.term(output) if 0 < dims[0] <= LONGEST_VECTOR else None
        if term is not None and formula.n_operators >= FEWEST_OPERATORS and formula.vectors:
            groups[term].append(formula)
    count = 0
    parts: dict[ir.Value, ir.Value] = {}
    joined: Joined = {}
    order = {node: i for i, node in enumerate(model.graph)}
    # Results first that others are computed from, which then take the joined vector.
    for term, formulas in sorted(
        groups.items(), key=lambda group: max(order[formula.root] for formula in group[1])
    ):
        for formula in formulas:
            formula.vectors = [parts.get(x, x) for x in formula.vectors]
        formulas = _in_joined_order(formulas, joined)  # noqa: PLW2901
        if _gains(formulas, joined) and not _depend_on_each_other(formulas):
            parts |= _join(model.graph, term, formulas, joined, scope)
            count += 1
    if count:
        remove_unused(model.graph)
        model.graph.sort()
        store_constants(model.graph, scope)
    return count


def _is_joined(node: ir.Node) -> bool:
    return is_operator(node, *OPERATORS) and node.outputs[0].dtype in (
        ir.DataType.FLOAT,
        ir.DataType.DOUBLE,
    )


def _columns(formulas: Sequence[_Formula]) -> list[tuple[ir.Value, ...]]:
    """Return the vectors of all formulas that take the same place."""
    return list(zip(*(formula.vectors for formula in formulas), strict=True))


def _in_joined_order(formulas: list[_Formula], joined: Joined) -> list[_Formula]:
    """Return formulas in the order of joined vectors, if they take all parts of one."""
    orders = {frozenset(column): column for column in joined}
    for column in _columns(formulas):
        order = orders.get(frozenset(column), ())
        if len(order) == len(column):
            position = {x: i for i, x in enumerate(order)}
            pairs = sorted(zip(column, formulas, strict=True), key=lambda pair: position[pair[0]])
            return [formula for _, formula in pairs]
    return formulas


def _gains(formulas: Sequence[_Formula], joined: Joined) -> bool:
    """Return whether the operators saved take longer than the copies of vectors that are added."""
    saved = OPERATOR * formulas[0].n_operators * (len(formulas) - 1)
    copies = 1 + sum(column not in joined for column in _columns(formulas))
    return saved > copies * (COPY + COPIED_VECTOR * len(formulas))


def _depend_on_each_other(formulas: Sequence[_Formula]) -> bool:
    """Return whether a vector of a formula may depend on the result of one.

    A number cannot: all of the formulas have the same numbers.
    """
    graph = formulas[0].root.graph
    waiting = [formula.root for formula in formulas]
    needed = {x.producer() for formula in formulas for x in formula.vectors}
    seen = set(waiting)
    while waiting:
        node = waiting.pop()
        if node in needed or node.graph is not graph:
            return True
        users = {user for output in node.outputs for user, _ in output.uses()} - seen
        seen |= users
        waiting += users
    return False


def _join(
    graph: ir.Graph, term: Term, formulas: Sequence[_Formula], joined: Joined, scope: ModelScope
) -> dict[ir.Value, ir.Value]:
    """Replace the results of formulas by the parts of one result; return the parts."""
    builder = Builder(scope)
    builder.provenance = {
        key: text
        for key, text in formulas[0].root.metadata_props.items()
        if key != "pytensor.variable"
    }
    columns = _columns(formulas)
    for column in columns:
        if column not in joined:
            joined[column] = builder.Concat(*column, axis=0)
    old = [formula.root.outputs[0] for formula in formulas]
    sizes = builder.ints([formula.size for formula in formulas])
    result = _emit(builder, term, [joined[column] for column in columns])
    new = builder.op("Split", result, sizes, axis=0, outputs=len(old))
    joined[tuple(new)] = result
    for before, after in zip(old, new, strict=True):
        after.name, before.name = before.name, None
        after.shape, after.type = before.shape, before.type
    ir.convenience.replace_all_uses_with(old, new, replace_graph_outputs=True)
    name_values(builder.nodes, scope.names)
    graph.insert_before(formulas[0].root, builder.nodes)
    return dict(zip(old, new, strict=True))


def _emit(builder: Builder, term: Term, joined: Sequence[ir.Value]) -> ir.Value:
    """Return a formula of the joined vectors."""
    kind, rest = term
    if isinstance(rest, tuple):
        return builder.op(kind, *(_emit(builder, operand, joined) for operand in rest))
    return rest if isinstance(rest, ir.Value) else joined[rest]
