"""Lowerings of basic indices."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply
from pytensor.tensor.extra_ops import RavelMultiIndex, UnravelIndex
from pytensor.tensor.subtensor import IncSubtensor, Subtensor, unflatten_index_variables

from pytensor_onnx.dispatch.registry.basic import onnx_funcify
from pytensor_onnx.dispatch.shape.shapes import vector_of
from pytensor_onnx.dispatch.shape.tensor_basic import within_bounds
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.operators.dims import Dim, constant_ints, dims_of

Entry = ir.Value | slice

_INT64_MAX = np.iinfo(np.int64).max
_INT64_MIN = np.iinfo(np.int64).min
# Runtimes treat the largest integer as an open end, also for backward slices.
_PAST_THE_END = _INT64_MAX - 1


@dataclass
class _Slices:
    """Operands of one ONNX Slice."""

    axes: list[int] = field(default_factory=list)
    starts: list[ir.Value] = field(default_factory=list)
    stops: list[ir.Value] = field(default_factory=list)
    steps: list[ir.Value] = field(default_factory=list)


@onnx_funcify.register(Subtensor)
def lower_subtensor(
    op: Subtensor, node: Apply, build: Builder, x: ir.Value, *indices: ir.Value
) -> ir.Value:
    """Slice with one operator, then gather the integers, one axis after the other."""
    return select(build, x, entries_of(op, build, indices))


def entries_of(
    op: Subtensor | IncSubtensor, build: Builder, indices: Sequence[ir.Value]
) -> list[Entry]:
    """Return the index with its integers and slices of values in PyTensor's order."""
    return unflatten_index_variables([build.cast(i, "int64") for i in indices], op.idx_list)


def select(build: Builder, x: ir.Value, entries: Sequence[Entry]) -> ir.Value:
    """Index the leading axes of a value by integers and slices."""
    element = _known_element(x, entries)
    if element is not None:
        return element
    x, slices = _of_last_part(build, x, _slices(build, x, entries))
    if slices.axes:
        x = build.Slice(
            x,
            vector_of(build, slices.starts),
            vector_of(build, slices.stops),
            build.ints(slices.axes),
            vector_of(build, slices.steps),
        )
    for axis, entry in reversed(list(enumerate(entries))):
        if not isinstance(entry, slice):
            x = build.Gather(x, entry, axis=axis)
    return x


def _known_element(x: ir.Value, entries: Sequence[Entry]) -> ir.Value | None:
    """Return the only element of a value that is an Unsqueeze of a first axis."""
    node = x.producer()
    if len(entries) != 1 or isinstance(entries[0], slice) or node is None:
        return None
    is_made = node.op_type == "Unsqueeze" and constant_ints(node.inputs[1]) == [0]
    if not is_made or constant_ints(entries[0]) not in ([0], [-1]):
        return None
    element = node.inputs[0]
    if element is not None and element.shape is None and x.shape is not None:
        # The last state of a loop has its shape from the array that is made of it.
        element.shape = ir.Shape(x.shape[1:])
    return element


def _of_last_part(build: Builder, x: ir.Value, slices: _Slices) -> tuple[ir.Value, _Slices]:
    """Return the last part of a concatenation if slices select exactly that, else their operand.

    The last part backwards is a slice of its own.
    """
    node = x.producer()
    if node is None or node.op_type != "Concat" or node.attributes["axis"].as_int() != 0:
        return x, slices
    *first, last = node.inputs
    sizes = [(dims_of(part) or (None,))[0] for part in first]
    known = [size for size in sizes if isinstance(size, int)]
    if last is None or slices.axes != [0] or len(known) != len(sizes):
        return x, slices
    offset = sum(known)
    start, stop, step = (
        constant_ints(bounds[0]) for bounds in (slices.starts, slices.stops, slices.steps)
    )
    if (step, start, stop) == ([1], [offset], [_INT64_MAX]):
        return last, _Slices()
    if (step, stop) == ([-1], [offset - 1]) and offset and start in ([_INT64_MAX], [-1]):
        return last, replace(slices, stops=[build.constant(np.int64(_INT64_MIN))])
    return x, slices


def _slices(build: Builder, x: ir.Value, entries: Sequence[Entry]) -> _Slices:
    slices = _Slices()
    for axis, entry in enumerate(entries):
        if not isinstance(entry, slice) or entry == slice(None):
            continue
        step = build.constant(np.int64(1)) if entry.step is None else entry.step
        start = _bound(build, entry.start, step, at_start=True)
        stop = _bound(build, entry.stop, step, at_start=False)
        if _is_whole(build.dims(x)[axis], start, stop, step):
            continue
        slices.axes.append(axis)
        slices.steps.append(step)
        slices.starts.append(start)
        slices.stops.append(_stop_before_the_front(build, x, axis, start, stop, step))
    return slices


def _is_whole(size: Dim, start: ir.Value, stop: ir.Value, step: ir.Value) -> bool:
    """Return whether a slice is known to select all elements of an axis in their order."""
    bounds, end = [constant_ints(x) for x in (start, step)], constant_ints(stop)
    return bounds == [[0], [1]] and end is not None and isinstance(size, int) and end[0] >= size


def _bound(build: Builder, bound: ir.Value | None, step: ir.Value, *, at_start: bool) -> ir.Value:
    """Return a bound of a slice; an open bound is the end in the direction of the step."""
    if bound is not None:
        return bound
    forward, backward = (0, _INT64_MAX) if at_start else (_INT64_MAX, _INT64_MIN)
    signs = constant_ints(step)
    if signs is not None:
        return build.constant(np.int64(forward if signs[0] > 0 else backward))
    return build.Where(build.Greater(step, 0), np.int64(forward), np.int64(backward))


def _stop_before_the_front(
    build: Builder, x: ir.Value, axis: int, start: ir.Value, stop: ir.Value, step: ir.Value
) -> ir.Value:
    """Return a stop that selects nothing where a backward slice starts before the first element.

    ONNX lets such a slice start at the first element.
    """
    first, signs = constant_ints(start), constant_ints(step)
    if (signs and signs[0] > 0) or (first and first[0] >= -1):
        return stop
    size = build.size(x, axis)
    known = constant_ints(size)
    if first and known:
        before_front = build.constant(np.bool_(first[0] + known[0] < 0))
    elif first:
        before_front = build.Less(size, -first[0])
    else:
        before_front = build.Less(start, build.Neg(size))
    if signs is None:
        before_front = build.And(before_front, build.Less(step, 0))
    if before_front.const_value is not None:
        return build.constant(np.int64(_PAST_THE_END)) if before_front.const_value.numpy() else stop
    return build.Where(before_front, np.int64(_PAST_THE_END), stop)


@onnx_funcify.register(UnravelIndex)
def lower_unravel_index(
    op: UnravelIndex, node: Apply, build: Builder, indices: ir.Value, dims: ir.Value
) -> list[ir.Value]:
    """Divide by the sizes, fastest axis first; the remainder is the index along it."""
    rest, sizes = build.cast(indices, "int64"), _elements(build, dims, len(node.outputs))
    error = ValueError("index is out of bounds for an array of the given shape")
    rest = within_bounds(build, rest, _product(build, sizes), "raise", error)
    fastest_first = sizes if op.order == "F" else sizes[::-1]
    coordinates = []
    for size in fastest_first[:-1]:
        divisor = _positive(build, size)
        coordinates.append(build.Mod(rest, divisor))
        rest = build.Div(rest, divisor)
    coordinates.append(rest)
    return (coordinates if op.order == "F" else coordinates[::-1])[: len(sizes)]


@onnx_funcify.register(RavelMultiIndex)
def lower_ravel_multi_index(
    op: RavelMultiIndex, node: Apply, build: Builder, *operands: ir.Value
) -> ir.Value:
    """Sum the indices along all axes, each times the stride of the axis."""
    *indices, dims = operands
    sizes = _elements(build, dims, len(indices))
    error = ValueError("invalid entry in coordinates array")
    limited = [
        within_bounds(build, build.cast(index, "int64"), size, op.mode, error)
        for index, size in zip(indices, sizes, strict=True)
    ]
    pairs = list(zip(limited, sizes, strict=True))
    first, *others = pairs if op.order == "C" else pairs[::-1]
    flat = first[0]
    for index, size in others:
        flat = build.Add(build.Mul(flat, size), index)
    return flat


def _elements(build: Builder, vector: ir.Value, count: int) -> list[ir.Value]:
    known = constant_ints(vector)
    if known is not None:
        return [build.constant(np.int64(size)) for size in known]
    vector = build.cast(vector, "int64")
    return [build.Gather(vector, np.int64(i), axis=0) for i in range(count)]


def _product(build: Builder, sizes: Sequence[ir.Value]) -> ir.Value:
    known = [constant_ints(size) for size in sizes]
    if None not in known:
        return build.constant(np.int64(np.prod([k[0] for k in known if k], dtype="int64")))
    product = sizes[0]
    for size in sizes[1:]:
        product = build.Mul(product, size)
    return product


def _positive(build: Builder, size: ir.Value) -> ir.Value:
    """Replace a size of zero by one, as divisor for an empty array."""
    known = constant_ints(size)
    if known:
        return build.constant(np.int64(max(known[0], 1)))
    return build.Where(build.Greater(size, 0), size, np.int64(1))
