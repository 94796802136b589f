"""Lower padding in every mode: to one Pad if ONNX has the mode, else axis by axis."""

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply
from pytensor.tensor.pad import Pad

from pytensor_onnx.dispatch.basic import onnx_funcify
from pytensor_onnx.dispatch.raise_op import check_that
from pytensor_onnx.dispatch.ranges import count_up, wrapped
from pytensor_onnx.dispatch.shape import concatenated, vector_of
from pytensor_onnx.dispatch.sums import sum_floats
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.inference import dtype_of
from pytensor_onnx.graph.sizes import constant_ints

Pair = tuple[ir.Value, ir.Value]

_FIRST_OPSET_WITH_WRAP = 19
_INT64_MAX = np.iinfo(np.int64).max


@onnx_funcify.register(Pad)
def lower_pad(
    op: Pad, node: Apply, onnx: Builder, x: ir.Value, pad_width: ir.Value, *options: ir.Value
) -> ir.Value:
    """Pad in the dtype of the result, which is PyTensor's `floatX` for computed values."""
    rank = node.inputs[0].type.ndim
    x = onnx.cast(x, node.outputs[0].type.dtype)
    if op.static_pad_width is not None:
        pad_width = onnx.constant(np.array(op.static_pad_width, "int64").reshape(rank, 2))
    widths = _pairs(onnx, onnx.cast(pad_width, "int64"), rank)
    if all(_is_zero(width) for pair in widths for width in pair):
        return x
    if op.pad_mode in ("wrap", "symmetric", "reflect"):
        return _pad_with_elements(onnx, x, widths, op.pad_mode)
    if op.pad_mode == "edge":
        return onnx.Pad(x, _pads(onnx, widths), mode="edge")
    if op.pad_mode == "constant":
        return _pad_with_constants(onnx, x, widths, _pairs(onnx, options[0], rank))
    for axis, pair in enumerate(widths):
        if op.pad_mode == "linear_ramp":
            parts = _ramps(onnx, x, axis, pair, _pairs(onnx, options[0], rank)[axis])
        else:
            lengths = _pairs(onnx, onnx.cast(options[0], "int64"), rank) if options else None
            statistics = _statistics(onnx, x, axis, op.pad_mode, lengths[axis] if lengths else None)
            parts = [_widened(onnx, s, axis, w) for s, w in zip(statistics, pair, strict=True)]
        kept = [part for part, width in zip(parts, pair, strict=True) if not _is_zero(width)]
        if kept:
            before = [] if _is_zero(pair[0]) else [parts[0]]
            after = [] if _is_zero(pair[1]) else [parts[1]]
            x = onnx.Concat(*before, x, *after, axis=axis)
    return x


def _pairs(onnx: Builder, value: ir.Value, rank: int) -> list[Pair]:
    """Return the values for the start and the end of each axis as 0-d values."""
    if value.const_value is not None:
        array = np.broadcast_to(value.const_value.numpy(), (rank, 2))
        return [(onnx.constant(first), onnx.constant(last)) for first, last in array]
    if onnx.dims(value) == ():
        return [(value, value)] * rank
    whole = onnx.Expand(value, onnx.ints([rank, 2]))
    flat = onnx.Reshape(whole, onnx.ints([-1]))
    elements = [onnx.Gather(flat, np.int64(i), axis=0) for i in range(2 * rank)]
    return list(zip(elements[::2], elements[1::2], strict=True))


def _is_zero(width: ir.Value) -> bool:
    return constant_ints(width) == [0]


def _pads(onnx: Builder, widths: Sequence[Pair]) -> ir.Value:
    """Return the widths in the order of ONNX: all starts, then all ends."""
    return vector_of(onnx, [first for first, _ in widths] + [last for _, last in widths])


def _pad_with_constants(
    onnx: Builder, x: ir.Value, widths: Sequence[Pair], values: Sequence[Pair]
) -> ir.Value:
    """Pad all axes at once with one value, or each side of each axis in turn."""
    flat = [onnx.cast(value, dtype_of(x)) for pair in values for value in pair]
    if all(value is flat[0] for value in flat):
        return onnx.Pad(x, _pads(onnx, widths), flat[0])
    zero = onnx.constant(np.int64(0))
    for axis, (first, last) in enumerate(widths):
        for value, pair in zip(flat[2 * axis :], ((first, zero), (zero, last)), strict=False):
            if not all(map(_is_zero, pair)):
                x = onnx.Pad(x, _pads(onnx, [pair]), value, onnx.ints([axis]))
    return x


def _pad_with_elements(onnx: Builder, x: ir.Value, widths: Sequence[Pair], mode: str) -> ir.Value:
    if _is_one_pad(onnx, x, widths, mode):
        return onnx.Pad(x, _pads(onnx, widths), mode=mode)
    for axis, (first, last) in enumerate(widths):
        if not (_is_zero(first) and _is_zero(last)):
            size = onnx.size(x, axis)
            x = onnx.Gather(x, _mirrored_positions(onnx, size, first, last, mode), axis=axis)
    return x


def _is_one_pad(onnx: Builder, x: ir.Value, widths: Sequence[Pair], mode: str) -> bool:
    """Return whether one ONNX Pad has the result, which requires widths within the array."""
    if mode == "symmetric":
        return False
    if mode == "wrap" and onnx.scope.opset_version < _FIRST_OPSET_WITH_WRAP:
        return False
    turning_point = 1 if mode == "reflect" else 0
    for size, pair in zip(onnx.dims(x), widths, strict=True):
        if mode == "reflect" and all(map(_is_zero, pair)):
            continue
        if not isinstance(size, int) or size == 0:
            return False
        for known in map(constant_ints, pair):
            if known is None or not 0 <= known[0] <= size - turning_point:
                return False
    return True


def _mirrored_positions(
    onnx: Builder, size: ir.Value, first: ir.Value, last: ir.Value, mode: str
) -> ir.Value:
    """Return the source position of each element of the padded axis."""
    sizes = [constant_ints(value) for value in (first, size, last)]
    if None not in sizes:
        n, before, after = (int(s[0]) for s in (sizes[1], sizes[0], sizes[2]) if s)
        positions = np.pad(np.arange(n), (before, after), mode=mode)  # type: ignore[call-overload]
        return onnx.constant(positions)
    total = onnx.Add(onnx.Add(first, size), last)
    offsets = onnx.Sub(count_up(onnx, total), first)
    if mode == "wrap":
        return wrapped(onnx, offsets, size)
    period = onnx.Mul(size, 2)
    end = onnx.Sub(period, 1)
    if mode == "reflect":
        period = end = onnx.Max(onnx.Sub(period, 2), 1)
    folded = wrapped(onnx, offsets, period)
    return onnx.Where(onnx.Less(folded, size), folded, onnx.Sub(end, folded))


def _statistics(
    onnx: Builder, x: ir.Value, axis: int, mode: str, lengths: Pair | None
) -> list[ir.Value]:
    """Return a statistic of the first and of the last elements along an axis, or of all."""
    if lengths is None:
        return [_statistic(onnx, x, axis, mode)] * 2
    first, last = lengths
    start = onnx.Max(onnx.Sub(onnx.size(x, axis), last), 0)
    along = onnx.ints([axis])
    chunks = [
        onnx.Slice(x, onnx.ints([0]), vector_of(onnx, [first]), along),
        onnx.Slice(x, vector_of(onnx, [start]), onnx.ints([_INT64_MAX]), along),
    ]
    return [_statistic(onnx, chunk, axis, mode) for chunk in chunks]


def _statistic(onnx: Builder, x: ir.Value, axis: int, mode: str) -> ir.Value:
    along, size = onnx.ints([axis]), onnx.size(x, axis)
    if mode == "mean":
        total = onnx.cast(_sum_along(onnx, x, axis), dtype_of(x))
        return onnx.Div(total, onnx.cast(size, dtype_of(x)))
    if not constant_ints(size):
        error = ValueError(f"zero-size array to reduction operation {mode} which has no identity")
        x = check_that(onnx, [onnx.Greater(size, 0)], x, error)
    return onnx.ReduceMax(x, along) if mode == "maximum" else onnx.ReduceMin(x, along)


def _sum_along(onnx: Builder, x: ir.Value, axis: int) -> ir.Value:
    if dtype_of(x) not in (ir.DataType.FLOAT, ir.DataType.FLOAT16):
        return onnx.ReduceSum(x, onnx.ints([axis]))
    return sum_floats(onnx, onnx.cast(x, "float32"), [axis], onnx.dims(x), keepdims=1)


def _widened(onnx: Builder, x: ir.Value, axis: int, width: ir.Value) -> ir.Value:
    """Return an array repeated along an axis of size one."""
    rank = len(onnx.dims(x))
    around = onnx.sizes(x, 0, axis), onnx.sizes(x, axis + 1, rank)
    return onnx.Expand(x, concatenated(onnx, [around[0], vector_of(onnx, [width]), around[1]]))


def _ramps(onnx: Builder, x: ir.Value, axis: int, widths: Pair, ends: Pair) -> list[ir.Value]:
    """Return the ramps from the end values up to, but without, the first and last elements."""
    along = onnx.ints([axis])
    edges = [
        onnx.Slice(x, onnx.ints([0]), onnx.ints([1]), along),
        onnx.Slice(x, onnx.ints([-1]), onnx.ints([_INT64_MAX]), along),
    ]
    compute = np.result_type(dtype_of(x).numpy(), dtype_of(ends[0]).numpy())
    ramps = []
    for edge, width, end, falls in zip(edges, widths, ends, (False, True), strict=True):
        steps = count_up(onnx, width)
        if falls:
            steps = onnx.Sub(onnx.Sub(width, 1), steps)
        trailing = range(1, len(onnx.dims(x)) - axis)
        steps = onnx.cast(
            onnx.Unsqueeze(steps, onnx.ints(trailing)) if trailing else steps, compute
        )
        start = onnx.cast(end, compute)
        rise = onnx.Mul(steps, onnx.Sub(onnx.cast(edge, compute), start))
        ramp = onnx.Add(onnx.Div(rise, onnx.cast(width, compute)), start)
        ramps.append(onnx.cast(ramp, dtype_of(x)))
    return ramps
