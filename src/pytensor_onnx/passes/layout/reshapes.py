"""Move permutations of axes past Reshape."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.dims import dims_of
from pytensor_onnx.graph.sizes import constant_ints
from pytensor_onnx.passes.layout.moved import Moved, Perm, inverse
from pytensor_onnx.passes.matching import (
    attributes_of,
    constant_of,
    is_constant,
    is_operator,
    required,
)


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
