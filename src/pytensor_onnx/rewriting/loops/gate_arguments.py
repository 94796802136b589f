"""Take apart the arguments of gates: sums of products with matrices, and of biases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.replace import graph_replace
from pytensor.graph.traversal import ancestors
from pytensor.scalar.basic import Add
from pytensor.tensor.basic import Split
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.math import Dot
from pytensor.tensor.subtensor import Subtensor, indices_from_subtensor

from pytensor_onnx.rewriting.inner_graphs import core_op

Terms = list[list["Part"]]
"""Matrices that multiply the input and the state, one each, and biases."""


@dataclass(frozen=True)
class Part:
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

    def within(self, whole: Any) -> Part:
        """Return the same part of another array."""
        total = whole.type.shape[-1] if self.total is None else self.total
        size = total - self.start if self.size is None and total is not None else self.size
        return Part(whole, self.start, size, total)

    def selected(self, size: int) -> Any:
        """Return the elements of a part, whose size is known now."""
        return self.whole[..., self.start : self.start + size]


class Around:
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


def terms_of(terms: Iterable[Part], vectors: Sequence[Variable], around: Around) -> Terms | None:
    """Return the matrices that multiply each vector, one each, and the biases of a sum.

    None if a term is something else.
    """
    found: dict[Variable | None, list[Part]] = {vector: [] for vector in vectors}
    found[None] = []
    for term in terms:
        matrices = {v: _matrix_beside(term.whole, v, around) for v in vectors}
        vector = next((v for v, matrix in matrices.items() if matrix is not None), None)
        value = around.find(term.whole) if vector is None else matrices[vector]
        if value is None:
            return None
        is_number = vector is None and value.type.broadcastable == (True,)
        found[vector].append(Part(value) if is_number else term.within(value))
    return list(found.values()) if all(len(found[v]) == 1 for v in vectors) else None


def joint_bias(terms: Sequence[Part], size: int) -> Part:
    """Return the sum of biases, arrays and numbers, as one array."""
    is_number = [any(term.whole.type.broadcastable) for term in terms]
    if is_number == [False]:
        return terms[0]
    vectors = [
        term.whole if one else term.selected(size)
        for term, one in zip(terms, is_number, strict=True)
    ]
    return Part(pt.add(pt.zeros(size, dtype="float32"), *vectors))


def terms_in(x: Part) -> Iterator[Part]:
    """Yield the terms of a part of a sum."""
    node, summands = x.whole.owner, operands_of(x.whole, Add)
    part = None if node is None else _part_of(node, x.whole)
    if summands:
        for summand in summands:
            yield from terms_in(replace(x, whole=summand))
    elif part is not None:
        rest = None if part.size is None else part.size - x.start
        size = rest if x.size is None else x.size
        yield from terms_in(replace(part, start=part.start + x.start, size=size))
    else:
        yield x


def _part_of(node: Apply, result: Variable) -> Part | None:
    """Return the part of a vector that a node selects, None for other nodes."""
    whole, *others = node.inputs
    if isinstance(node.op, Split) and isinstance(others[0], Constant):
        position, sizes = node.outputs.index(result), [int(size) for size in others[0].data]
        return Part(whole, sum(sizes[:position]), sizes[position], sum(sizes))
    if isinstance(node.op, Subtensor) and node.op.idx_list and whole.type.ndim == 1:
        (index,) = indices_from_subtensor(others, node.op.idx_list)
        if not isinstance(index, slice) or index.step is not None:
            return None
        bounds = [None if x is None else getattr(x, "data", -1) for x in (index.start, index.stop)]
        start, stop = (None if x is None else int(x) for x in bounds)
        if (start or 0) < 0 or (stop is not None and stop <= (start or 0)):
            return None
        size = None if stop is None else stop - (start or 0)
        return Part(whole, start or 0, size, whole.type.shape[0])
    return None


def _matrix_beside(term: Variable, vector: Variable, around: Around) -> Variable | None:
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


def vectors_beside(term: Variable) -> list[Variable]:
    """Return the operands of a product, without added and dropped axes."""
    node = _without_views(term).owner
    is_product = node is not None and isinstance(core_op(node.op), Dot)
    return [_without_views(x) for x in node.inputs] if is_product else []


def _without_views(x: Variable) -> Variable:
    """Strip added and dropped axes."""
    while x.owner is not None and isinstance(x.owner.op, DimShuffle):
        kept = [axis for axis in x.owner.op.new_order if axis != "x"]
        if kept != sorted(kept):
            break
        (x,) = x.owner.inputs
    return x


def _joined(parts: Sequence[Part], size: int) -> Any:
    """Return parts of one size side by side."""
    first, count = parts[0], len(parts)
    if first.total != count * size or any(part.whole is not first.whole for part in parts):
        return pt.concatenate([part.selected(size) for part in parts], axis=-1)
    parted = pt.split(first.whole, [size] * count, n_splits=count, axis=-1)
    return pt.concatenate([parted[part.start // size] for part in parts], axis=-1)


def common_size(arguments: Sequence[Terms]) -> int | None:
    """Return the number of units, None if it is unknown."""
    parts = [part for terms in arguments for group in terms for part in group]
    sizes = {part.size for part in parts if part.size is not None}
    return sizes.pop() if len(sizes) == 1 else None


def arrays_of(arguments: Sequence[Terms], hidden: int) -> list[Any]:
    """Return the weights and the bias of all gates."""
    weights = [_joined([terms[k][0] for terms in arguments], hidden) for k in (0, 1)]
    return [*weights, _joined([joint_bias(terms[2], hidden) for terms in arguments], hidden)]


def operands_of(x: Variable, scalar_op: type) -> list[Variable]:
    """Return the operands of an elementwise operation, none for other variables."""
    op = None if x.owner is None else x.owner.op
    return list(x.owner.inputs) if isinstance(getattr(op, "scalar_op", None), scalar_op) else []


def argument_of(x: Variable, scalar_op: type) -> Variable | None:
    """Return the first operand of an elementwise operation, None for other variables."""
    return next(iter(operands_of(x, scalar_op)), None)
