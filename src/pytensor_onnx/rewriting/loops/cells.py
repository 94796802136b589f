"""Recognise cells of recurrent networks in the steps of loops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.replace import graph_replace
from pytensor.graph.traversal import ancestors
from pytensor.scalar.basic import Add, Mul, Tanh
from pytensor.scalar.math import Sigmoid
from pytensor.tensor.basic import Split
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.math import Dot
from pytensor.tensor.subtensor import Subtensor, indices_from_subtensor

from pytensor_onnx.rewriting.inner_graphs import core_op


@dataclass(frozen=True)
class LSTM:
    """Long short-term memory of one sequence, whose arrays are variables around the loop.

    Attributes
    ----------
    hidden
        Number of hidden units.
    x
        Sequence (time, inputs).
    w, u, b
        Weights of the inputs (inputs, 4 * hidden) and of the state (hidden, 4 * hidden), and bias
        (4 * hidden,), of the gates i, o, f and g in this order.
    output, memory
        Positions of the output and of the memory among the states of the loop.
    """

    hidden: int
    x: Any
    w: Any
    u: Any
    b: Any
    output: int
    memory: int


def lstm_of(node: Apply) -> LSTM | None:
    """Return the memory that a loop computes for one sequence, None for other loops."""
    op = node.op
    if op.info.as_while or op.info.n_sit_sot != 2 or len(node.outputs) != 2:
        return None
    inner = op.fgraph.unfreeze()
    states, updates = op.inner_sitsot(inner.inputs), op.inner_sitsot_outs(inner.outputs)
    around = _Around(node, inner.inputs)
    for h, c in ((0, 1), (1, 0)):
        gates = _gates(updates[h], updates[c], states[c])
        if gates is None or any(gate.type.ndim != 1 for gate in gates):
            continue
        for x, xs in zip(op.inner_seqs(inner.inputs), op.outer_seqs(node.inputs), strict=True):
            found = [_Argument.of(gate, x, states[h], around) for gate in gates]
            arguments = [argument for argument in found if argument is not None]
            parts = [part for one in arguments for part in (*one.w, *one.u, *one.b)]
            sizes = {part.size for part in parts if part.size is not None}
            if len(arguments) == len(gates) and len(sizes) == 1:
                hidden = sizes.pop()
                w, u = (_joined([getattr(a, name)[0] for a in arguments], hidden) for name in "wu")
                b = _joined([_bias(argument.b, hidden) for argument in arguments], hidden)
                return LSTM(hidden, _rows(xs), w, u, b, output=h, memory=c)
    return None


def _gates(h: Variable, c: Variable, before: Variable) -> list[Variable] | None:
    """Return the arguments of the gates i, o, f and g of a step, None for other steps."""
    for output, squashed in _pairs(_operands(h, Mul)):
        if _argument(squashed, Tanh) is not c:
            continue
        for kept, added in _pairs(_operands(c, Add)):
            for f, memory in _pairs(_operands(kept, Mul)):
                for i, g in _pairs(_operands(added, Mul)):
                    sigmoids = [_argument(gate, Sigmoid) for gate in (i, output, f)]
                    arguments = [*sigmoids, _argument(g, Tanh)]
                    gates = [x for x in arguments if x is not None]
                    if memory is before and len(gates) == len(arguments):
                        return gates
    return None


def _operands(x: Variable, scalar_op: type) -> list[Variable]:
    """Return the operands of an elementwise operation, none for other variables."""
    op = None if x.owner is None else x.owner.op
    return list(x.owner.inputs) if isinstance(getattr(op, "scalar_op", None), scalar_op) else []


def _argument(x: Variable, scalar_op: type) -> Variable | None:
    return next(iter(_operands(x, scalar_op)), None)


def _pairs(operands: Sequence[Variable]) -> list[tuple[Variable, Variable]]:
    """Return both orders of two operands, none for other numbers of operands."""
    if len(operands) != 2:
        return []
    first, second = operands
    return [(first, second), (second, first)]


@dataclass(frozen=True)
class _Part:
    """Part of the last axis of an array.

    Attributes
    ----------
    whole, start
        The array, and the position of the part.
    size, total
        The sizes of the part and of the axis, None where they are unknown.
    """

    whole: Any
    start: int = 0
    size: int | None = None
    total: int | None = None

    def within(self, whole: Any) -> _Part:
        """Return the same part of another array."""
        total = whole.type.shape[-1] if self.total is None else self.total
        size = total - self.start if self.size is None and total is not None else self.size
        return _Part(whole, self.start, size, total)

    def elements(self, size: int) -> Any:
        """Return the elements of a part, whose size is known now."""
        return self.whole[..., self.start : self.start + size]


class _Around:
    """Variables of a step that are equal in all steps, as variables around the loop."""

    def __init__(self, node: Apply, inputs: Sequence[Variable]) -> None:
        constants = node.op.inner_non_seqs(inputs)
        self._outer = dict(zip(constants, node.op.outer_non_seqs(node.inputs), strict=True))
        self._found: dict[tuple[Variable, bool], Variable | None] = {}

    def find(self, x: Variable, *, is_transposed: bool = False) -> Variable | None:
        """Return the variable around the loop, None if the steps differ in it."""
        key = (x, is_transposed)
        if key not in self._found:
            value = self._replaced(x)
            self._found[key] = value.T if is_transposed and value is not None else value
        return self._found[key]

    def _replaced(self, x: Variable) -> Any:
        inputs = [v for v in ancestors([x]) if v.owner is None and not isinstance(v, Constant)]
        if any(v not in self._outer for v in inputs):
            return None
        found = graph_replace([x], {v: self._outer[v] for v in inputs}, strict=False)
        return found[0]


@dataclass(frozen=True)
class _Argument:
    """Argument of a gate: products of an input and of a state with one matrix each, and biases."""

    w: Sequence[_Part]
    u: Sequence[_Part]
    b: Sequence[_Part]

    @classmethod
    def of(cls, gate: Variable, x: Variable, h: Variable, around: _Around) -> _Argument | None:
        """Return the matrices and the biases of a sum, None if a term is something else."""
        products: dict[Variable | None, list[_Part]] = {x: [], h: [], None: []}
        for term in _terms(_Part(gate)):
            matrices = {v: _matrix_beside(term.whole, v, around) for v in (x, h)}
            vector = next((v for v, matrix in matrices.items() if matrix is not None), None)
            value = around.find(term.whole) if vector is None else matrices[vector]
            if value is None:
                return None
            is_number = vector is None and value.type.broadcastable == (True,)
            products[vector].append(_Part(value) if is_number else term.within(value))
        w, u, b = products.values()
        return cls(w, u, b) if len(w) == len(u) == 1 else None


def _bias(terms: Sequence[_Part], size: int) -> _Part:
    """Return the sum of biases, of which some may be numbers, as one array."""
    is_number = [any(term.whole.type.broadcastable) for term in terms]
    if is_number == [False]:
        return terms[0]
    vectors = [
        term.whole if one else term.elements(size)
        for term, one in zip(terms, is_number, strict=True)
    ]
    return _Part(pt.add(pt.zeros(size, dtype="float32"), *vectors))


def _terms(x: _Part) -> Iterator[_Part]:
    """Yield the terms of a part of a sum."""
    node, summands = x.whole.owner, _operands(x.whole, Add)
    part = None if node is None else _part_of(node, x.whole)
    if summands:
        for summand in summands:
            yield from _terms(replace(x, whole=summand))
    elif part is not None:
        rest = None if part.size is None else part.size - x.start
        size = rest if x.size is None else x.size
        yield from _terms(replace(part, start=part.start + x.start, size=size))
    else:
        yield x


def _part_of(node: Apply, result: Variable) -> _Part | None:
    """Return the part of a vector that a node selects, None for other nodes."""
    whole, *others = node.inputs
    if isinstance(node.op, Split) and isinstance(others[0], Constant):
        position, sizes = node.outputs.index(result), [int(size) for size in others[0].data]
        return _Part(whole, sum(sizes[:position]), sizes[position], sum(sizes))
    if isinstance(node.op, Subtensor) and node.op.idx_list and whole.type.ndim == 1:
        (index,) = indices_from_subtensor(others, node.op.idx_list)
        if not isinstance(index, slice) or index.step is not None:
            return None
        bounds = [None if x is None else getattr(x, "data", -1) for x in (index.start, index.stop)]
        start, stop = (None if x is None else int(x) for x in bounds)
        if (start or 0) < 0 or (stop is not None and stop <= (start or 0)):
            return None
        size = None if stop is None else stop - (start or 0)
        return _Part(whole, start or 0, size, whole.type.shape[0])
    return None


def _matrix_beside(term: Variable, vector: Variable, around: _Around) -> Variable | None:
    """Return the matrix of a product with a vector from the left, None for other terms."""
    node = _without_views(term).owner
    if node is None or not isinstance(core_op(node.op), Dot):
        return None
    left, right = node.inputs
    row, column = ((False,), (True, False)), ((False,), (False, True))
    if _without_views(left) is vector and left.type.broadcastable in row:
        return around.find(right) if right.type.ndim == 2 else None
    if _without_views(right) is vector and right.type.broadcastable in column:
        return around.find(left, is_transposed=True) if left.type.ndim == 2 else None
    return None


def _without_views(x: Variable) -> Variable:
    """Strip added and dropped axes."""
    while x.owner is not None and isinstance(x.owner.op, DimShuffle):
        kept = [axis for axis in x.owner.op.new_order if axis != "x"]
        if kept != sorted(kept):
            break
        (x,) = x.owner.inputs
    return x


def _rows(sequence: Any) -> Any:
    """Return a sequence of vectors, whose elements may have an axis of size one."""
    if sequence.type.ndim == 2:
        return sequence
    return sequence.squeeze(axis=1 + sequence.type.broadcastable[1:].index(True))


def _joined(parts: Sequence[_Part], size: int) -> Any:
    """Return parts of one size side by side."""
    first, count = parts[0], len(parts)
    if first.total != count * size or any(part.whole is not first.whole for part in parts):
        return pt.concatenate([part.elements(size) for part in parts], axis=-1)
    parted = pt.split(first.whole, [size] * count, n_splits=count, axis=-1)
    return pt.concatenate([parted[part.start // size] for part in parts], axis=-1)
