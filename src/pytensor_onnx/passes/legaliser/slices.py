"""Slices as positions, for runtimes that refuse steps or do not find the size of the result."""

import numpy as np
import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.dims import dims_of
from pytensor_onnx.graph.sizes import constant_ints
from pytensor_onnx.passes.matching import constant_of, producer_of

_MOST_POSITIONS = 4096
"""Elements of a Slice from a computed start above which their positions are not stored."""
_HELD = (ir.DataType.INT32, ir.DataType.INT64)
"""Dtypes that can hold every position within an array."""


def has_known_strides(node: ir.Node) -> bool:
    """Return whether a Slice takes every k-th element of one axis, at known positions."""
    return _strided(node) is not None


def gather_strided(build: Builder, node: ir.Node) -> ir.Value:
    """Gather the elements of a Slice with steps."""
    positions, axis = _strided(node) or ([], 0)
    return build.Gather(node.inputs[0], build.ints(positions), axis=axis)


def gathered(build: Builder, node: ir.Node) -> ir.Value | None:
    """Return the elements of a Slice with known steps, or of a known number from a computed start.

    Other Slices have no such form: their bounds may be clipped, as Gather's positions are not.
    """
    if has_known_strides(node):
        return gather_strided(build, node)
    bounds = [constant_ints(value) for value in node.inputs[3:]]
    dims = dims_of(node.inputs[0])
    if len(bounds) < 2 or dims is None or any(b is None or len(b) != 1 for b in bounds):
        return None
    (axis,), (step,) = (b or [0] for b in bounds)
    start, count = node.inputs[1], _count(node.inputs[1], node.inputs[2])
    size, last = dims[axis], _largest(start)
    if step != 1 or count is None or last is None or not isinstance(size, int):
        return None
    if not 0 < count <= min(size - last, _MOST_POSITIONS):
        return None
    return build.Gather(node.inputs[0], build.Add(start, np.arange(count)), axis=axis)


def _count(start: ir.Value | None, end: ir.Value | None) -> int | None:
    """Return the difference of two bounds, vectors of one element, if one is the other plus it."""
    nodes = [producer_of(value, "Unsqueeze") for value in (start, end)]
    first, last = (None if node is None else node.inputs[0] for node in nodes)
    total = producer_of(last, "Add")
    if first is None or total is None or first not in total.inputs:
        return None
    count = constant_of(total.inputs[1 - total.inputs.index(first)])
    return None if count is None or count.size != 1 else int(count.item())


def _largest(start: ir.Value | None) -> int | None:
    """Return the largest value of a bound that is the low bits of a number, and not negative."""
    node = producer_of(start, "Unsqueeze")
    while node is not None and node.op_type != "BitwiseAnd":
        if node.outputs[0].dtype not in _HELD:
            return None
        node = producer_of(node.inputs[0], "Unsqueeze", "Cast", "BitwiseAnd")
    mask = None if node is None else constant_of(node.inputs[1])
    return None if mask is None or mask.size != 1 or mask.item() < 0 else int(mask.item())


def _strided(node: ir.Node) -> tuple[list[int], int] | None:
    """Return the positions of a Slice along its axis, None where they are unknown or successive."""
    bounds = [constant_ints(value) for value in node.inputs[1:]]
    if len(bounds) < 4 or any(b is None or len(b) != 1 for b in bounds):
        return None
    (start,), (end,), (axis,), (step,) = (b or [0] for b in bounds)
    size = (dims_of(node.inputs[0]) or (None,))[axis] if dims_of(node.inputs[0]) else None
    if step in (1, -1) or not isinstance(size, int):
        return None
    return list(range(*slice(start, end, step).indices(size))), axis
