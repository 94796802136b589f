"""Move permutations of axes past operators by permuting axes and sizes in their attributes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from pytensor_onnx.graph.dims import dims_of
from pytensor_onnx.graph.inference import is_elementwise
from pytensor_onnx.graph.sizes import constant_ints
from pytensor_onnx.passes.layout.moved import Moved, Perm, inverse
from pytensor_onnx.passes.layout.reshapes import move_reshape
from pytensor_onnx.passes.node_walk import emit_alike


def move(node: ir.Node, perms: Sequence[Perm | None]) -> Moved | None:
    """Return a node on the bases of its operands, None if impossible.

    Parameters
    ----------
    node
        Node of the standard domain.
    perms
        For each operand the permutation of its base, None without a base.
    """
    if is_elementwise(node.op_type) or node.op_type in _OF_EACH_ELEMENT:
        return _elementwise(node, perms)
    if node.op_type.startswith("Reduce"):
        return _reduction(node, perms)
    rule = _RULES.get(node.op_type)
    return None if rule is None else rule(node, perms)


def may_move(op_type: str) -> bool:
    """Return whether an ONNX operator can work on the bases of its operands."""
    elementwise = is_elementwise(op_type) or op_type in _OF_EACH_ELEMENT
    return elementwise or op_type.startswith("Reduce") or op_type in _RULES


_OF_EACH_ELEMENT = frozenset({"BitCast", "Cast", "Gelu", "Identity", "IsInf", "IsNaN"})


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
    perm, axis = perms[0], node.attributes.get("axis")
    if perm is None or axis is None:
        return None
    renamed = perm[axis.as_int()]
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
    keeps = node.attributes.get_int("keepdims", 1) != 0
    renamed = np.array(sorted(perm[axis] for axis in axes))
    return Moved(
        [perm, None],
        [perm if keeps else without(perm, axes)],
        lambda build, xs: emit_alike(build, node, [xs[0], renamed]),
    )


def _arg_reduction(node: ir.Node, perms: Sequence[Perm | None]) -> Moved | None:
    perm, axis = perms[0], node.attributes.get("axis")
    if perm is None or axis is None:
        return None
    keeps = node.attributes.get_int("keepdims", 1) != 0
    renamed = perm[axis.as_int()]
    return Moved(
        [perm],
        [perm if keeps else without(perm, [axis.as_int()])],
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
    axis = node.attributes.get("axis")
    if perm is None or perms[1] is not None or index is None or axis is None or len(index) > 1:
        return None
    renamed = perm[axis.as_int()]
    return Moved(
        [perm, None],
        [perm if index else without(perm, [axis.as_int()])],
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
