"""Lowerings of joins, new arrays and padding."""

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply, Constant
from pytensor.scalar.basic import discrete_dtypes
from pytensor.tensor.basic import (
    Alloc,
    AllocEmpty,
    ARange,
    Join,
    MakeVector,
    ScalarFromTensor,
    Split,
    TensorFromScalar,
)
from pytensor.tensor.pad import Pad

from pytensor_onnx.compat.pytensor import message_of_alloc
from pytensor_onnx.dispatch.control_flow import check_that
from pytensor_onnx.dispatch.elementwise import floor_modulo
from pytensor_onnx.dispatch.reductions import sum_floats
from pytensor_onnx.dispatch.registry.basic import onnx_funcify
from pytensor_onnx.dispatch.shape.shapes import concatenated, equate_sizes, vector_of
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.operators.dims import constant_ints, dims_of, sizes_in
from pytensor_onnx.operators.inference import dtype_of

_LONGEST_CONSTANT = 4096


def count_up(build: Builder, size: ir.Value) -> ir.Value:
    """Return ``0, 1, ..., size - 1``, a constant for a small constant size.

    Examples
    --------
    >>> from pytensor_onnx.graph.scope import ModelScope
    >>> build = Builder(ModelScope(21))
    >>> count_up(build, build.constant(np.int64(3))).const_value.numpy()
    array([0, 1, 2])
    """
    known = constant_ints(size)
    if known and known[0] <= _LONGEST_CONSTANT:
        return build.constant(np.arange(known[0]))
    return build.Range(np.int64(0), build.cast(size, "int64"), np.int64(1))


def column(build: Builder, vector: ir.Value) -> ir.Value:
    """Return a vector as a matrix of one column."""
    if vector.const_value is not None:
        return build.constant(vector.const_value.numpy()[:, None])
    return build.Unsqueeze(vector, build.ints([1]))


def diagonal_mask(
    build: Builder, rows: ir.Value, columns: ir.Value, offset: ir.Value | None = None
) -> ir.Value:
    """Return a bool matrix that is true on one diagonal.

    Parameters
    ----------
    build
        Builder that receives the nodes.
    rows, columns
        0-d int64 values.
    offset
        Offset of the diagonal to the right of the main one, a 0-d integer.
    """
    first, second = count_up(build, rows), count_up(build, columns)
    if offset is not None and constant_ints(offset) != [0]:
        first = build.Add(first, build.cast(offset, "int64"))
    return build.Equal(column(build, first), second)


def within_bounds(
    build: Builder, index: ir.Value, size: ir.Value, mode: str, error: Exception
) -> ir.Value:
    """Return int64 indices below a 0-d size.

    Parameters
    ----------
    build
        Builder that receives the nodes.
    index
        Indices, possibly out of bounds.
    size
        The upper bound.
    mode
        Treatment of indices out of bounds: ``"wrap"``, ``"clip"`` or ``"raise"``.
    error
        Exception of the mode ``"raise"``.
    """
    if mode == "wrap":
        return wrapped(build, index, size)
    if mode == "clip":
        return build.Max(build.Min(index, build.Sub(size, 1)), 0)
    return check_that(build, [all_below(build, index, size)], index, error)


def wrapped(build: Builder, index: ir.Value, size: ir.Value) -> ir.Value:
    """Return indices modulo a 0-d size; zero for a size of zero."""
    result = floor_modulo(build, index, size)
    result.shape = index.shape
    return result


def all_below(build: Builder, index: ir.Value, size: ir.Value) -> ir.Value:
    """Return, as a 0-d bool, whether all indices are in the range of a size."""
    outside = build.Or(build.Less(index, 0), build.GreaterOrEqual(index, size))
    count = build.ReduceMax(build.cast(outside, "int32"), keepdims=0)
    return build.LessOrEqual(count, 0)


_LONGEST_RANGE = 2**53


@onnx_funcify.register(TensorFromScalar)
@onnx_funcify.register(ScalarFromTensor)
def lower_scalar_conversion(
    op: TensorFromScalar | ScalarFromTensor, node: Apply, build: Builder, x: ir.Value
) -> ir.Value:
    """Return the input, as a scalar is a 0-d tensor."""
    return x


@onnx_funcify.register(Alloc)
def lower_alloc(
    op: Alloc, node: Apply, build: Builder, value: ir.Value, *sizes: ir.Value
) -> ir.Value:
    """Broadcast a value to a shape, along the axes with a static size of one.

    The other axes must have the size of the shape; unknown sizes are checked at run time.
    """
    shape = vector_of(build, sizes)
    if isinstance(node.inputs[0], Constant) and node.inputs[0].data.size == 1:
        return build.ConstantOfShape(shape, value=np.asarray(node.inputs[0].data).reshape(1))
    dims, wanted = dims_of(value), sizes_in(shape)
    if dims is not None and dims == wanted and None not in dims:
        return value
    first = len(sizes) - node.inputs[0].type.ndim
    equal = {
        axis: sizes[first + axis]
        for axis, static in enumerate(node.inputs[0].type.shape)
        if static != 1
    }
    equate_sizes(build, value, equal)
    conditions = [
        build.Equal(build.size(value, axis), build.cast(size, "int64"))
        for axis, size in equal.items()
    ]
    error = ValueError(message_of_alloc)
    return build.Expand(value, check_that(build, conditions, shape, error))


@onnx_funcify.register(AllocEmpty)
def lower_alloc_empty(op: AllocEmpty, node: Apply, build: Builder, *sizes: ir.Value) -> ir.Value:
    """Allocate zeros, as ONNX has no uninitialised memory."""
    return build.ConstantOfShape(vector_of(build, sizes), value=np.zeros(1, op.dtype))


@onnx_funcify.register(MakeVector)
def lower_make_vector(op: MakeVector, node: Apply, build: Builder, *elements: ir.Value) -> ir.Value:
    """Stack scalars."""
    return vector_of(build, elements, node.outputs[0].type.dtype)


@onnx_funcify.register(Join)
def lower_join(op: Join, node: Apply, build: Builder, *tensors: ir.Value) -> ir.Value:
    """Concatenate in the dtype of the result."""
    parts = [build.cast(x, node.outputs[0].type.dtype) for x in tensors]
    return build.Concat(*parts, axis=op.axis) if len(parts) > 1 else parts[0]


@onnx_funcify.register(Split)
def lower_split(
    op: Split, node: Apply, build: Builder, x: ir.Value, sizes: ir.Value
) -> list[ir.Value]:
    """Split into parts of the given sizes."""
    dims, known = dims_of(x), sizes_in(sizes) or (None,) * op.len_splits
    if op.len_splits == 1 and dims is not None and dims[op.axis] == known[0] is not None:
        return [x]
    parts = build.Split(x, build.cast(sizes, "int64"), axis=op.axis, outputs=op.len_splits)
    parts = [parts] if isinstance(parts, ir.Value) else parts
    for part, size in zip(parts, known, strict=False):
        if dims is not None:
            part.shape = ir.Shape([*dims[: op.axis], size, *dims[op.axis + 1 :]])
    return parts


@onnx_funcify.register(ARange)
def lower_arange(
    op: ARange, node: Apply, build: Builder, start: ir.Value, stop: ir.Value, step: ir.Value
) -> ir.Value:
    """Return a range as NumPy does, with the length computed from the uncast bounds."""
    if all(variable.type.dtype in discrete_dtypes for variable in node.inputs):
        bounds = [build.cast(x, "int64") for x in (start, stop, step)]
        return build.cast(build.Range(*bounds), op.dtype)
    return _float_range(build, start, stop, step, op.dtype)


def _float_range(
    build: Builder, start: ir.Value, stop: ir.Value, step: ir.Value, dtype: str
) -> ir.Value:
    """Multiply the step, as NumPy does, which is more accurate than adding it up."""
    wide_start, wide_stop, wide_step = (build.cast(x, "float64") for x in (start, stop, step))
    length = build.Ceil(build.Div(build.Sub(wide_stop, wide_start), wide_step))
    countable = build.Less(build.Abs(length), float(_LONGEST_RANGE))
    length = check_that(build, [countable], length, ValueError("arange: cannot compute length"))
    count = build.Range(np.int64(0), build.cast(length, "int64"), np.int64(1))
    second = build.cast(build.Add(wide_start, wide_step), dtype)
    compute = "float32" if dtype == "float16" else dtype
    first, second = build.cast(build.cast(start, dtype), compute), build.cast(second, compute)
    steps = build.Mul(build.cast(count, compute), build.Sub(second, first))
    return build.cast(build.Add(first, steps), dtype)


Pair = tuple[ir.Value, ir.Value]

_FIRST_OPSET_WITH_WRAP = 19
_INT64_MAX = np.iinfo(np.int64).max


@onnx_funcify.register(Pad)
def lower_pad(
    op: Pad, node: Apply, build: Builder, x: ir.Value, pad_width: ir.Value, *options: ir.Value
) -> ir.Value:
    """Pad in the dtype of the result, which is PyTensor's `floatX` for computed values."""
    rank = node.inputs[0].type.ndim
    x = build.cast(x, node.outputs[0].type.dtype)
    if op.static_pad_width is not None:
        pad_width = build.constant(np.array(op.static_pad_width, "int64").reshape(rank, 2))
    widths = _pairs(build, build.cast(pad_width, "int64"), rank)
    if all(_is_zero(width) for pair in widths for width in pair):
        return x
    if op.pad_mode in ("wrap", "symmetric", "reflect"):
        return _pad_with_elements(build, x, widths, op.pad_mode)
    if op.pad_mode == "edge":
        return build.Pad(x, _pads(build, widths), mode="edge")
    if op.pad_mode == "constant":
        return _pad_with_constants(build, x, widths, _pairs(build, options[0], rank))
    for axis, pair in enumerate(widths):
        if op.pad_mode == "linear_ramp":
            parts = _ramps(build, x, axis, pair, _pairs(build, options[0], rank)[axis])
        else:
            lengths = _pairs(build, build.cast(options[0], "int64"), rank) if options else None
            statistics = _statistics(
                build, x, axis, op.pad_mode, lengths[axis] if lengths else None
            )
            parts = [_widened(build, s, axis, w) for s, w in zip(statistics, pair, strict=True)]
        kept = [part for part, width in zip(parts, pair, strict=True) if not _is_zero(width)]
        if kept:
            before = [] if _is_zero(pair[0]) else [parts[0]]
            after = [] if _is_zero(pair[1]) else [parts[1]]
            x = build.Concat(*before, x, *after, axis=axis)
    return x


def _pairs(build: Builder, value: ir.Value, rank: int) -> list[Pair]:
    """Return the values for the start and the end of each axis as 0-d values."""
    if value.const_value is not None:
        array = np.broadcast_to(value.const_value.numpy(), (rank, 2))
        return [(build.constant(first), build.constant(last)) for first, last in array]
    if build.dims(value) == ():
        return [(value, value)] * rank
    whole = build.Expand(value, build.ints([rank, 2]))
    flat = build.Reshape(whole, build.ints([-1]))
    elements = [build.Gather(flat, np.int64(i), axis=0) for i in range(2 * rank)]
    return list(zip(elements[::2], elements[1::2], strict=True))


def _is_zero(width: ir.Value) -> bool:
    return constant_ints(width) == [0]


def _pads(build: Builder, widths: Sequence[Pair]) -> ir.Value:
    """Return the widths in the order of ONNX: all starts, then all ends."""
    return vector_of(build, [first for first, _ in widths] + [last for _, last in widths])


def _pad_with_constants(
    build: Builder, x: ir.Value, widths: Sequence[Pair], values: Sequence[Pair]
) -> ir.Value:
    """Pad all axes at once with one value, or each side of each axis in turn."""
    flat = [build.cast(value, dtype_of(x)) for pair in values for value in pair]
    if all(value is flat[0] for value in flat):
        return build.Pad(x, _pads(build, widths), flat[0])
    zero = build.constant(np.int64(0))
    for axis, (first, last) in enumerate(widths):
        for value, pair in zip(flat[2 * axis :], ((first, zero), (zero, last)), strict=False):
            if not all(map(_is_zero, pair)):
                x = build.Pad(x, _pads(build, [pair]), value, build.ints([axis]))
    return x


def _pad_with_elements(build: Builder, x: ir.Value, widths: Sequence[Pair], mode: str) -> ir.Value:
    if _is_one_pad(build, x, widths, mode):
        return build.Pad(x, _pads(build, widths), mode=mode)
    for axis, (first, last) in enumerate(widths):
        if not (_is_zero(first) and _is_zero(last)):
            size = build.size(x, axis)
            x = build.Gather(x, _mirrored_positions(build, size, first, last, mode), axis=axis)
    return x


def _is_one_pad(build: Builder, x: ir.Value, widths: Sequence[Pair], mode: str) -> bool:
    """Return whether one ONNX Pad computes the result: no width may exceed the array."""
    if mode == "symmetric":
        return False
    if mode == "wrap" and build.scope.opset_version < _FIRST_OPSET_WITH_WRAP:
        return False
    turning_point = 1 if mode == "reflect" else 0
    for size, pair in zip(build.dims(x), widths, strict=True):
        if mode == "reflect" and all(map(_is_zero, pair)):
            continue
        if not isinstance(size, int) or size == 0:
            return False
        for known in map(constant_ints, pair):
            if known is None or not 0 <= known[0] <= size - turning_point:
                return False
    return True


def _mirrored_positions(
    build: Builder, size: ir.Value, first: ir.Value, last: ir.Value, mode: str
) -> ir.Value:
    """Return the source position of each element of the padded axis."""
    sizes = [constant_ints(value) for value in (first, size, last)]
    if None not in sizes:
        n, before, after = (int(s[0]) for s in (sizes[1], sizes[0], sizes[2]) if s)
        positions = np.pad(np.arange(n), (before, after), mode=mode)  # type: ignore[call-overload]
        return build.constant(positions)
    total = build.Add(build.Add(first, size), last)
    offsets = build.Sub(count_up(build, total), first)
    if mode == "wrap":
        return wrapped(build, offsets, size)
    period = build.Mul(size, 2)
    end = build.Sub(period, 1)
    if mode == "reflect":
        period = end = build.Max(build.Sub(period, 2), 1)
    folded = wrapped(build, offsets, period)
    return build.Where(build.Less(folded, size), folded, build.Sub(end, folded))


def _statistics(
    build: Builder, x: ir.Value, axis: int, mode: str, lengths: Pair | None
) -> list[ir.Value]:
    """Return a statistic of the first and of the last elements along an axis, or of all."""
    if lengths is None:
        return [_statistic(build, x, axis, mode)] * 2
    first, last = lengths
    start = build.Max(build.Sub(build.size(x, axis), last), 0)
    along = build.ints([axis])
    chunks = [
        build.Slice(x, build.ints([0]), vector_of(build, [first]), along),
        build.Slice(x, vector_of(build, [start]), build.ints([_INT64_MAX]), along),
    ]
    return [_statistic(build, chunk, axis, mode) for chunk in chunks]


def _statistic(build: Builder, x: ir.Value, axis: int, mode: str) -> ir.Value:
    along, size = build.ints([axis]), build.size(x, axis)
    if mode == "mean":
        total = build.cast(_sum_along(build, x, axis), dtype_of(x))
        return build.Div(total, build.cast(size, dtype_of(x)))
    if not constant_ints(size):
        error = ValueError(f"zero-size array to reduction operation {mode} which has no identity")
        x = check_that(build, [build.Greater(size, 0)], x, error)
    return build.ReduceMax(x, along) if mode == "maximum" else build.ReduceMin(x, along)


def _sum_along(build: Builder, x: ir.Value, axis: int) -> ir.Value:
    if dtype_of(x) not in (ir.DataType.FLOAT, ir.DataType.FLOAT16):
        return build.ReduceSum(x, build.ints([axis]))
    return sum_floats(build, build.cast(x, "float32"), [axis], build.dims(x), keepdims=1)


def _widened(build: Builder, x: ir.Value, axis: int, width: ir.Value) -> ir.Value:
    """Return an array repeated along an axis of size one."""
    rank = len(build.dims(x))
    around = build.sizes(x, 0, axis), build.sizes(x, axis + 1, rank)
    return build.Expand(x, concatenated(build, [around[0], vector_of(build, [width]), around[1]]))


def _ramps(build: Builder, x: ir.Value, axis: int, widths: Pair, ends: Pair) -> list[ir.Value]:
    """Return the ramps from the end values up to, but without, the first and last elements."""
    along = build.ints([axis])
    edges = [
        build.Slice(x, build.ints([0]), build.ints([1]), along),
        build.Slice(x, build.ints([-1]), build.ints([_INT64_MAX]), along),
    ]
    compute = np.result_type(dtype_of(x).numpy(), dtype_of(ends[0]).numpy())
    ramps = []
    for edge, width, end, falls in zip(edges, widths, ends, (False, True), strict=True):
        steps = count_up(build, width)
        if falls:
            steps = build.Sub(build.Sub(width, 1), steps)
        trailing = range(1, len(build.dims(x)) - axis)
        steps = build.cast(
            build.Unsqueeze(steps, build.ints(trailing)) if trailing else steps, compute
        )
        start = build.cast(end, compute)
        rise = build.Mul(steps, build.Sub(build.cast(edge, compute), start))
        ramp = build.Add(build.Div(rise, build.cast(width, compute)), start)
        ramps.append(build.cast(ramp, dtype_of(x)))
    return ramps
