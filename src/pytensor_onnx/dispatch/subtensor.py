"""Basic indexing with integers and slices, read and written."""

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply
from pytensor.tensor.subtensor import IncSubtensor, Subtensor, unflatten_index_variables

from pytensor_onnx.builder import Builder
from pytensor_onnx.dispatch.basic import onnx_funcify
from pytensor_onnx.dispatch.shape import vector_of

_INT64_MAX = np.iinfo(np.int64).max
_INT64_MIN = np.iinfo(np.int64).min


@dataclass
class _Slices:
    """The operands of one ONNX Slice, and the axes that integers drop after it."""

    axes: list[int]
    starts: list[ir.Value]
    stops: list[ir.Value]
    steps: list[ir.Value]
    dropped: list[int]


@onnx_funcify.register(Subtensor)
def lower_subtensor(
    op: Subtensor, node: Apply, onnx: Builder, x: ir.Value, *indices: ir.Value
) -> ir.Value:
    """Gather the integers, one axis after the other, and slice the rest in one operator."""
    entries = unflatten_index_variables(indices, op.idx_list)
    integers = [axis for axis, entry in enumerate(entries) if not isinstance(entry, slice)]
    slices = _slices(onnx, entries)
    if slices.axes:
        x = onnx.Slice(
            x,
            vector_of(onnx, slices.starts),
            vector_of(onnx, slices.stops),
            onnx.ints(slices.axes),
            vector_of(onnx, slices.steps),
        )
    for axis in reversed(integers):
        x = onnx.Gather(x, onnx.cast(entries[axis], "int64"), axis=axis)
    return x


def _slices(onnx: Builder, entries: list) -> _Slices:
    slices = _Slices([], [], [], [], [])
    for axis, entry in enumerate(entries):
        if not isinstance(entry, slice):
            slices.dropped.append(axis)
            continue
        if entry.start is None and entry.stop is None and entry.step is None:
            continue
        step = onnx.constant(np.int64(1)) if entry.step is None else entry.step
        slices.axes.append(axis)
        slices.steps.append(step)
        slices.starts.append(_bound(onnx, entry.start, step, at_start=True))
        slices.stops.append(_bound(onnx, entry.stop, step, at_start=False))
    return slices


def _bound(onnx: Builder, bound: ir.Value | None, step: ir.Value, *, at_start: bool) -> ir.Value:
    """Return a bound of a slice; an open one is the end that the sign of the step points from."""
    if bound is not None:
        return bound
    forward, backward = (0, _INT64_MAX) if at_start else (_INT64_MAX, _INT64_MIN)
    if step.const_value is not None:
        return onnx.constant(np.int64(forward if int(step.const_value.numpy()) > 0 else backward))
    positive = onnx.Greater(step, 0)
    return onnx.Where(positive, np.int64(forward), np.int64(backward))


@onnx_funcify.register(IncSubtensor)
def lower_inc_subtensor(
    op: IncSubtensor, node: Apply, onnx: Builder, x: ir.Value, y: ir.Value, *indices: ir.Value
) -> ir.Value:
    """Set or increment what the index selects, by its positions in the flattened array."""
    entries = unflatten_index_variables(indices, op.idx_list)
    dtype = node.outputs[0].type.dtype
    rank = node.inputs[0].type.ndim
    y = onnx.cast(y, dtype)
    if all(isinstance(e, slice) and e == slice(None) for e in entries):
        whole = onnx.Expand(y, onnx.shape(x))
        return whole if op.set_instead_of_inc else onnx.Add(x, whole)
    shape = onnx.shape(x)
    count = onnx.ReduceProd(shape, keepdims=0)
    positions = onnx.Reshape(onnx.Range(np.int64(0), count, np.int64(1)), shape, allowzero=1)
    positions.shape = x.shape
    view = Subtensor(op.idx_list)
    selected = lower_subtensor(view, node, onnx, positions, *indices)
    updates = onnx.Reshape(onnx.Expand(y, onnx.shape(selected)), onnx.ints([-1]))
    where = onnx.Reshape(selected, onnx.ints([-1, 1]))
    flat = onnx.Reshape(x, onnx.ints([-1]))
    reduction = {} if op.set_instead_of_inc else {"reduction": "add"}
    result = onnx.Reshape(onnx.ScatterND(flat, where, updates, **reduction), shape, allowzero=1)
    return result if rank else onnx.Reshape(result, onnx.ints([]))
