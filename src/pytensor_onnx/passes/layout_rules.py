"""How operators work on an operand whose axes are in another order: axes and sizes renamed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
import onnx_ir as ir

from pytensor_onnx.builder import Builder
from pytensor_onnx.dims import constant_ints, dims_of
from pytensor_onnx.inference import is_elementwise

Perm = tuple[int, ...]
Emit = Callable[[Builder, Sequence[ir.Value | None]], ir.Value | Sequence[ir.Value]]


@dataclass
class Moved:
    """An operator that works on bases: values that are transposed to give the operands.

    Attributes
    ----------
    wanted
        For each operand the permutation that makes it of its base, None where it is taken as it is.
    perms
        For each result the permutation that makes it of what is emitted, None where they are equal.
    emit
        Emits the operator for the bases.
    broadcasts
        Whether an operand may have fewer axes than the result, or sizes of one.
    stored
        Constants in the place of which others are stored, and those.
    """

    wanted: list[Perm | None]
    perms: list[Perm | None]
    emit: Emit
    broadcasts: bool = False
    stored: list[tuple[ir.Value, ir.Value]] = field(default_factory=list)


def move(node: ir.Node, perms: Sequence[Perm | None]) -> Moved | None:
    """Return how a node works on the bases of its operands, None where it cannot.

    Parameters
    ----------
    node
        Node of the standard domain.
    perms
        For each operand the permutation that makes it of its base, None where it has none.
    """
    if is_elementwise(node.op_type) or node.op_type in _OF_EACH_ELEMENT:
        return _elementwise(node, perms)
    if node.op_type.startswith("Reduce"):
        return _reduction(node, perms)
    rule = _RULES.get(node.op_type)
    return None if rule is None else rule(node, perms)


def inverse(perm: Perm) -> Perm:
    """Return the permutation that undoes another.

    Examples
    --------
    >>> inverse((0, 2, 3, 1))
    (0, 3, 1, 2)
    """
    return tuple(perm.index(i) for i in range(len(perm)))


_OF_EACH_ELEMENT = frozenset({"BitCast", "Cast", "Gelu", "Identity", "IsInf", "IsNaN"})


def _attributes(node: ir.Node) -> dict:
    return {name: attribute.value for name, attribute in node.attributes.items()}


def _elementwise(node: ir.Node, perms: Sequence[Perm | None]) -> Moved | None:
    perm = next(p for p in perms if p is not None)
    others = [v for v, p in zip(node.inputs, perms, strict=True) if v is not None and p is None]
    dims = [dims_of(value) for value in others]
    if any(d is None or len(d) > len(perm) for d in dims) or len(node.outputs) > 1:
        return None
    if any(p is not None and len(p) > len(perm) for p in perms):
        return None
    wanted = [None if value is None else perm for value in node.inputs]
    attributes = _attributes(node)
    return Moved(
        wanted,
        [perm],
        lambda onnx, xs: onnx.op(node.op_type, *xs, **attributes),
        broadcasts=True,
    )


def _along_axis(node: ir.Node, perms: Sequence[Perm | None]) -> Moved | None:
    """Rename the axis of an operator that keeps the rank."""
    perm, axis = perms[0], node.attributes.get("axis")
    if perm is None or axis is None:
        return None
    attributes = _attributes(node) | {"axis": perm[axis.as_int()]}
    count = len(node.outputs)
    return Moved(
        [perm, *[None] * (len(node.inputs) - 1)],
        [perm] * count,
        lambda onnx, xs: onnx.op(node.op_type, *xs, outputs=count, **attributes),
    )


def _concat(node: ir.Node, perms: Sequence[Perm | None]) -> Moved | None:
    perm = next(p for p in perms if p is not None)
    axis = perm[node.attributes["axis"].as_int()]
    return Moved([perm] * len(perms), [perm], lambda onnx, xs: onnx.Concat(*xs, axis=axis))


def _reduction(node: ir.Node, perms: Sequence[Perm | None]) -> Moved | None:
    perm = perms[0]
    axes = constant_ints(node.inputs[1]) if len(node.inputs) > 1 else None
    keepdims = node.attributes.get("keepdims")
    if perm is None or axes is None or not axes:
        return None
    keeps = keepdims is None or bool(keepdims.as_int())
    renamed = sorted(perm[axis] for axis in axes)
    attributes = _attributes(node)
    return Moved(
        [perm, None],
        [perm if keeps else without(perm, axes)],
        lambda onnx, xs: onnx.op(node.op_type, xs[0], np.array(renamed), **attributes),
    )


def _arg_reduction(node: ir.Node, perms: Sequence[Perm | None]) -> Moved | None:
    perm, axis = perms[0], node.attributes.get("axis")
    if perm is None or axis is None:
        return None
    keepdims = node.attributes.get("keepdims")
    keeps = keepdims is None or bool(keepdims.as_int())
    attributes = _attributes(node) | {"axis": perm[axis.as_int()]}
    return Moved(
        [perm],
        [perm if keeps else without(perm, [axis.as_int()])],
        lambda onnx, xs: onnx.op(node.op_type, *xs, **attributes),
    )


def without(perm: Perm, axes: Sequence[int]) -> Perm | None:
    """Return the permutation that is left when axes of the result go, None if it is none.

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
    return Moved([perm, None], [without(perm, axes)], lambda onnx, xs: onnx.Squeeze(xs[0], renamed))


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
        lambda onnx, xs: onnx.Unsqueeze(xs[0], np.array(sorted(added))),
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
        lambda onnx, xs: onnx.Slice(*xs[:3], renamed, *xs[4:]),
    )


def _gather(node: ir.Node, perms: Sequence[Perm | None]) -> Moved | None:
    perm, index = perms[0], dims_of(node.inputs[1])
    axis = node.attributes.get("axis")
    if perm is None or perms[1] is not None or index is None or axis is None or len(index) > 1:
        return None
    renamed = perm[axis.as_int()]
    return Moved(
        [perm, None],
        [perm if index else without(perm, [axis.as_int()])],
        lambda onnx, xs: onnx.Gather(*xs, axis=renamed),
    )


def _pad(node: ir.Node, perms: Sequence[Perm | None]) -> Moved | None:
    perm, pads = perms[0], constant_ints(node.inputs[1])
    if perm is None or pads is None or len(pads) != 2 * len(perm) or len(node.inputs) > 3:
        return None
    back = inverse(perm)
    before, after = pads[: len(perm)], pads[len(perm) :]
    renamed = np.array([before[i] for i in back] + [after[i] for i in back])
    attributes = _attributes(node)
    return Moved(
        [perm, *[None] * (len(perms) - 1)],
        [perm],
        lambda onnx, xs: onnx.Pad(xs[0], renamed, *xs[2:], **attributes),
    )


def _tile(node: ir.Node, perms: Sequence[Perm | None]) -> Moved | None:
    perm, repeats = perms[0], constant_ints(node.inputs[1])
    if perm is None or repeats is None:
        return None
    renamed = np.array([repeats[i] for i in inverse(perm)])
    return Moved([perm, None], [perm], lambda onnx, xs: onnx.Tile(xs[0], renamed))


def _shape(node: ir.Node, perms: Sequence[Perm | None]) -> Moved | None:
    """Read the sizes of the base, so that no transposition is made only to be measured."""
    (perm,) = perms
    assert perm is not None
    start, end = node.attributes.get("start"), node.attributes.get("end")
    rank = len(perm)
    axes = range(rank)[
        slice(None if start is None else start.as_int(), None if end is None else end.as_int())
    ]
    if len(axes) == 1:
        axis = perm[axes[0]]
        return Moved([perm], [None], lambda onnx, xs: onnx.Shape(*xs, start=axis, end=axis + 1))
    order = np.array([perm[i] for i in axes])
    return Moved([perm], [None], lambda onnx, xs: onnx.Gather(onnx.Shape(*xs), order, axis=0))


def _flatten(node: ir.Node, perms: Sequence[Perm | None]) -> Moved | None:
    """Flatten another order of axes, if only constant weights meet the result: they follow it."""
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

    def emit(onnx: Builder, xs: Sequence[ir.Value | None]) -> ir.Value:
        order = [p - 1 for p in inverse(perm)[1:]]
        for user, _ in users:
            weight = user.inputs[1]
            assert weight is not None
            assert weight.const_value is not None
            array = weight.const_value.numpy()
            rows = array.reshape(*sizes, -1).transpose(*order, len(sizes)).reshape(array.shape)
            moved.stored.append((weight, onnx.constant(np.ascontiguousarray(rows))))
            user.replace_input_with(1, moved.stored[-1][1])
        return onnx.Reshape(*xs)

    moved = Moved([perm, None], [None], emit)
    return moved


def _is_weighted(user: ir.Node, position: int) -> bool:
    weight = user.inputs[1] if len(user.inputs) > 1 else None
    return (
        user.op_type == "MatMul"
        and not user.domain
        and position == 0
        and weight is not None
        and weight.const_value is not None
        and not weight.is_graph_input()
        and len(weight.const_value.shape) == 2
    )


_RULES = {
    "ArgMax": _arg_reduction,
    "ArgMin": _arg_reduction,
    "Concat": _concat,
    "Gather": _gather,
    "LogSoftmax": _along_axis,
    "Pad": _pad,
    "Reshape": _flatten,
    "Shape": _shape,
    "Slice": _slice,
    "Softmax": _along_axis,
    "Split": _along_axis,
    "Squeeze": _squeeze,
    "Tile": _tile,
    "Unsqueeze": _unsqueeze,
}
