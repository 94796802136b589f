"""How operators let transposes pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder, carry_fallback, fallback_of
from pytensor_onnx.operators.dims import constant_ints, dims_of
from pytensor_onnx.operators.entries import ELEMENTWISE
from pytensor_onnx.operators.inference import attribute_of
from pytensor_onnx.passes.matching import (
    attributes_of,
    constant_of,
    is_constant,
    is_operator,
    producer_of,
    required,
)
from pytensor_onnx.passes.node_walk import emit_alike


def move_reshape(node: ir.Node, perms: Sequence[Perm | None]) -> Moved | None:
    """Return a Reshape on the base of its operand, None if impossible."""
    return _flatten(node, perms) or _regroup(node, perms)


def _flatten(node: ir.Node, perms: Sequence[Perm | None]) -> Moved | None:
    """Flatten the axes in the order of the base, if the result only meets constant weights."""
    perm, result = perms[0], node.outputs[0]
    dims, flat = dims_of(node.inputs[0]), dims_of(result)
    if perm is None or perm[0] != 0 or dims is None or flat is None or result.is_graph_output():
        return None
    sizes = [d for d in dims[1:] if isinstance(d, int)]
    if len(sizes) != len(dims) - 1 or flat != (dims[0], prod(sizes)):
        return None
    users = list(result.uses())
    if not users or not all(_is_weighted(user, position) for user, position in users):
        return None

    def emit(build: Builder, xs: Sequence[ir.Value | None]) -> ir.Value:
        order = [p - 1 for p in inverse(perm)[1:]]
        for user, _ in users:
            weight = required(user.inputs[1])
            array = constant_of(weight)
            assert array is not None
            rows = array.reshape(*sizes, -1).transpose(*order, len(sizes)).reshape(array.shape)
            moved.stored.append((weight, build.constant(np.ascontiguousarray(rows))))
            user.replace_input_with(1, moved.stored[-1][1])
        return build.Reshape(*xs)

    moved = Moved([perm, None], [None], emit)
    return moved


def _regroup(node: ir.Node, perms: Sequence[Perm | None]) -> Moved | None:
    """Merge adjacent axes, or split one, that are adjacent in the base as well."""
    perm, before, after = perms[0], dims_of(node.inputs[0]), dims_of(node.outputs[0])
    if perm is None or before is None or after is None:
        return None
    sizes = constant_ints(node.inputs[1])
    if (sizes is not None and 0 in sizes[1:]) or (sizes and sizes[0] == 0 and perm[0] != 0):
        return None
    head = _common(before, after)
    tail = min(_common(before[::-1], after[::-1]), min(len(before), len(after)) - head)
    middle, made = len(before) - head - tail, len(after) - head - tail
    if min(middle, made) != 1:
        return None
    first = perm[head]
    if any(perm[head + i] != first + i for i in range(middle)):
        return None
    # Positions of the axes in the base; later axes move by the number of added axes.
    places = [
        p + (made - middle if p > first else 0)
        for i, p in enumerate(perm)
        if not 0 < i - head < middle
    ]
    result = (*places[:head], *range(first, first + made), *places[head + 1 :])
    order = np.array(inverse(result))
    attributes = attributes_of(node)

    def emit(build: Builder, xs: Sequence[ir.Value | None]) -> ir.Value:
        target = xs[1] if sizes is None else np.array(sizes)[order]
        if sizes is None:
            target = build.Gather(target, order, axis=0)
        return build.Reshape(xs[0], target, **attributes)

    return Moved([perm, None], [result], emit)


def _common(first: Sequence[object], second: Sequence[object]) -> int:
    """Return the number of equal leading sizes."""
    pairs = zip(first, second, strict=False)
    return next(
        (i for i, (a, b) in enumerate(pairs) if a is None or a == 0 or a != b),
        min(len(first), len(second)),
    )


def _is_weighted(user: ir.Node, position: int) -> bool:
    if not is_operator(user, "MatMul") or position != 0:
        return False
    return is_constant(user.inputs[1]) and len(dims_of(user.inputs[1]) or ()) == 2


def move(node: ir.Node, perms: Sequence[Perm | None]) -> Moved | None:
    """Return a node on the bases of its operands, None if impossible.

    Parameters
    ----------
    node
        Node of the standard domain.
    perms
        For each operand the permutation of its base, None without a base.
    """
    if node.op_type in ELEMENTWISE:
        return _elementwise(node, perms)
    if node.op_type.startswith("Reduce"):
        return _reduction(node, perms)
    rule = _RULES.get(node.op_type)
    return None if rule is None else rule(node, perms)


def may_move(op_type: str) -> bool:
    """Return whether an ONNX operator can work on the bases of its operands."""
    return op_type in ELEMENTWISE or op_type.startswith("Reduce") or op_type in _RULES


def _elementwise(node: ir.Node, perms: Sequence[Perm | None]) -> Moved | None:
    perm = next(p for p in perms if p is not None)
    others = [v for v, p in zip(node.inputs, perms, strict=True) if v is not None and p is None]
    dims = [dims_of(value) for value in others]
    if any(d is None or len(d) > len(perm) for d in dims) or len(node.outputs) > 1:
        return None
    if any(p is not None and len(p) > len(perm) for p in perms):
        return None
    wanted = [None if value is None else perm for value in node.inputs]
    return Moved(wanted, [perm], lambda build, xs: emit_alike(build, node, xs), broadcasts=True)


def _along_axis(node: ir.Node, perms: Sequence[Perm | None]) -> Moved | None:
    """Permute the axis of an operator that keeps the rank."""
    perm = perms[0]
    if perm is None:
        return None
    renamed = perm[attribute_of(node, "axis")]
    return Moved(
        [perm, *[None] * (len(node.inputs) - 1)],
        [perm] * len(node.outputs),
        lambda build, xs: emit_alike(build, node, xs, axis=renamed),
    )


def _concat(node: ir.Node, perms: Sequence[Perm | None]) -> Moved | None:
    perm = next(p for p in perms if p is not None)
    axis = perm[node.attributes["axis"].as_int()]
    return Moved([perm] * len(perms), [perm], lambda build, xs: build.Concat(*xs, axis=axis))


def _reduction(node: ir.Node, perms: Sequence[Perm | None]) -> Moved | None:
    perm = perms[0]
    axes = constant_ints(node.inputs[1]) if len(node.inputs) > 1 else None
    if perm is None or axes is None or not axes:
        return None
    keeps = attribute_of(node, "keepdims") != 0
    renamed = np.array(sorted(perm[axis] for axis in axes))
    return Moved(
        [perm, None],
        [perm if keeps else without(perm, axes)],
        lambda build, xs: emit_alike(build, node, [xs[0], renamed]),
    )


def _arg_reduction(node: ir.Node, perms: Sequence[Perm | None]) -> Moved | None:
    perm, axis = perms[0], attribute_of(node, "axis")
    if perm is None:
        return None
    keeps = attribute_of(node, "keepdims") != 0
    renamed = perm[axis]
    return Moved(
        [perm],
        [perm if keeps else without(perm, [axis])],
        lambda build, xs: emit_alike(build, node, xs, axis=renamed),
    )


def without(perm: Perm, axes: Sequence[int]) -> Perm | None:
    """Return the permutation without some axes of the result, None for the identity.

    Examples
    --------
    >>> without((0, 2, 3, 1), [1, 2])
    >>> without((0, 2, 3, 1), [1])
    (0, 2, 1)
    """
    gone = {axis % len(perm) for axis in axes}
    kept = [p for i, p in enumerate(perm) if i not in gone]
    order = sorted(kept)
    rest = tuple(order.index(p) for p in kept)
    return None if rest == tuple(range(len(rest))) else rest


def _squeeze(node: ir.Node, perms: Sequence[Perm | None]) -> Moved | None:
    perm, axes = perms[0], constant_ints(node.inputs[1]) if len(node.inputs) > 1 else None
    if perm is None or axes is None:
        return None
    renamed = np.array(sorted(perm[axis] for axis in axes))
    return Moved(
        [perm, None], [without(perm, axes)], lambda build, xs: build.Squeeze(xs[0], renamed)
    )


def _unsqueeze(node: ir.Node, perms: Sequence[Perm | None]) -> Moved | None:
    perm, axes = perms[0], constant_ints(node.inputs[1])
    if perm is None or axes is None:
        return None
    rank = len(perm) + len(axes)
    added = {axis % rank for axis in axes}
    rest = [i for i in range(rank) if i not in added]
    result = list(range(rank))
    for i, p in enumerate(perm):
        result[rest[i]] = rest[p]
    return Moved(
        [perm, None],
        [tuple(result)],
        lambda build, xs: build.Unsqueeze(xs[0], np.array(sorted(added))),
    )


def _slice(node: ir.Node, perms: Sequence[Perm | None]) -> Moved | None:
    perm = perms[0]
    axes = constant_ints(node.inputs[3]) if len(node.inputs) > 3 else None
    if perm is None or axes is None or any(p is not None for p in perms[1:]):
        return None
    renamed = np.array([perm[axis] for axis in axes])
    return Moved(
        [perm, *[None] * (len(perms) - 1)],
        [perm],
        lambda build, xs: build.op("Slice", *xs[:3], renamed, *xs[4:]),
    )


def _gather(node: ir.Node, perms: Sequence[Perm | None]) -> Moved | None:
    perm, index = perms[0], dims_of(node.inputs[1])
    axis = attribute_of(node, "axis")
    if perm is None or perms[1] is not None or index is None or len(index) > 1:
        return None
    renamed = perm[axis]
    return Moved(
        [perm, None],
        [perm if index else without(perm, [axis])],
        lambda build, xs: build.Gather(*xs, axis=renamed),
    )


def _pad(node: ir.Node, perms: Sequence[Perm | None]) -> Moved | None:
    perm, pads = perms[0], constant_ints(node.inputs[1])
    if perm is None or pads is None or len(pads) != 2 * len(perm) or len(node.inputs) > 3:
        return None
    back = inverse(perm)
    before, after = pads[: len(perm)], pads[len(perm) :]
    renamed = np.array([before[i] for i in back] + [after[i] for i in back])
    return Moved(
        [perm, *[None] * (len(perms) - 1)],
        [perm],
        lambda build, xs: emit_alike(build, node, [xs[0], renamed, *xs[2:]]),
    )


def _tile(node: ir.Node, perms: Sequence[Perm | None]) -> Moved | None:
    perm, repeats = perms[0], constant_ints(node.inputs[1])
    if perm is None or repeats is None:
        return None
    renamed = np.array([repeats[i] for i in inverse(perm)])
    return Moved([perm, None], [perm], lambda build, xs: build.Tile(xs[0], renamed))


def _shape(node: ir.Node, perms: Sequence[Perm | None]) -> Moved | None:
    """Read the sizes of the base, so that no Transpose is needed for them."""
    (perm,) = perms
    assert perm is not None
    start, end = node.attributes.get_int("start", None), node.attributes.get_int("end", None)
    axes = range(len(perm))[start:end]
    if len(axes) == 1:
        axis = perm[axes[0]]
        return Moved([perm], [None], lambda build, xs: build.Shape(*xs, start=axis, end=axis + 1))
    order = np.array([perm[i] for i in axes])
    return Moved([perm], [None], lambda build, xs: build.Gather(build.Shape(*xs), order, axis=0))


_RULES = {
    "ArgMax": _arg_reduction,
    "ArgMin": _arg_reduction,
    "Concat": _concat,
    "Gather": _gather,
    "LogSoftmax": _along_axis,
    "Pad": _pad,
    "Reshape": move_reshape,
    "Shape": _shape,
    "Slice": _slice,
    "Softmax": _along_axis,
    "Split": _along_axis,
    "Squeeze": _squeeze,
    "Tile": _tile,
    "Unsqueeze": _unsqueeze,
}


def keep_meta(node: ir.Node, new: ir.Node | None, moved: Moved) -> None:
    """Copy metadata and the definition of a node to the node that works on bases."""
    if new is None or new.op_type != node.op_type:
        return
    fallback = fallback_of(node)
    for key, value in node.meta.items():
        new.meta.setdefault(key, value)
    if fallback is not None:
        perms = [list(perm) for perm in moved.wanted if perm is not None]
        backs = [None if perm is None else list(inverse(perm)) for perm in moved.perms]

        def turned(build: Builder, *operands: ir.Value) -> list[ir.Value]:
            own = [build.Transpose(x, perm=p) for x, p in zip(operands, perms, strict=True)]
            results = fallback(build, *own)
            results = [results] if isinstance(results, ir.Value) else list(results)
            return [
                result if back is None else build.Transpose(result, perm=back)
                for result, back in zip(results, backs, strict=True)
            ]

        carry_fallback(new, turned)


def transposed_constant(build: Builder, value: ir.Value, back: Perm) -> ir.Value:
    """Return a constant with its axes in another order, without leading axes of size one."""
    array = constant_of(value)
    if array is None or array.size == 1:
        return value
    turned = array.reshape((1,) * (len(back) - array.ndim) + array.shape).transpose(back)
    kept = 0 if array.ndim == len(back) else next(i for i, n in enumerate(turned.shape) if n != 1)
    turned = np.ascontiguousarray(turned.reshape(turned.shape[kept:]))
    return build.constant(turned)


def with_axes(build: Builder, value: ir.Value, places: list[int], rank: int) -> ir.Value:
    """Reshape a value so that its axes larger than one are at the given positions."""
    if not places:
        return value
    node = producer_of(value, "Unsqueeze")
    if node is not None and constant_ints(node.inputs[1]):
        value = required(node.inputs[0])
    ones = [i for i, d in enumerate(dims_of(value) or ()) if d == 1]
    if ones:
        value = build.Squeeze(value, build.ints(ones))
    # ONNX broadcasts operands of fewer axes, so no leading axis is needed.
    added = [i - min(places) for i in range(min(places), rank) if i not in places]
    return build.Unsqueeze(value, build.ints(added)) if added else value


Perm = tuple[int, ...]
Emit = Callable[[Builder, Sequence[ir.Value | None]], ir.Value | Sequence[ir.Value]]


@dataclass
class Moved:
    """Operator that works on bases, the values before their transposition.

    Attributes
    ----------
    wanted
        For each operand the permutation of its base, None for an operand that is used unchanged.
    perms
        For each result the permutation of the emitted value, None if they are equal.
    emit
        Emits the operator for the bases.
    broadcasts
        Whether an operand may have fewer axes than the result, or sizes of one.
    stored
        Pairs of replaced and new constants.
    """

    wanted: list[Perm | None]
    perms: list[Perm | None]
    emit: Emit
    broadcasts: bool = False
    stored: list[tuple[ir.Value, ir.Value]] = field(default_factory=list)


def inverse(perm: Perm) -> Perm:
    """Return the inverse of a permutation.

    Examples
    --------
    >>> inverse((0, 2, 3, 1))
    (0, 3, 1, 2)
    """
    return tuple(perm.index(i) for i in range(len(perm)))
