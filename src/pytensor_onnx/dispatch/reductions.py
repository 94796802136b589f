"""Lowerings of reductions and cumulative operations."""

from collections.abc import Callable, Sequence
from math import prod

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply
from pytensor.scalar import basic as ps
from pytensor.tensor.elemwise import CAReduce
from pytensor.tensor.extra_ops import CumOp
from pytensor.tensor.math import Argmax, MulWithoutZeros, NonZeroDimsCAReduce
from pytensor.tensor.special import LogSoftmax, Softmax

from pytensor_onnx.dispatch.registry.basic import onnx_funcify
from pytensor_onnx.graph.binary_reduction import fold_last_axis, merge_axes
from pytensor_onnx.graph.builder import Builder, Described, Meaning, name_failure
from pytensor_onnx.operators.dims import Dim, dims_of
from pytensor_onnx.operators.inference import dtype_of
from pytensor_onnx.operators.reductions import LONGEST_SHORT_SUM
from pytensor_onnx.ops.reductions import RunningExtreme


def sum_floats(
    build: Builder, x: ir.Value, axes: Sequence[int], sizes: Sequence[Dim], *, keepdims: int = 0
) -> ir.Value:
    """Sum float32 elements: short sums in float32, all others in float64.

    The error of a runtime's float32 sum grows with the number of terms: 1e-6 at 1024 consecutive
    terms, 2e-3 at two million. Axes known to be short are summed first, so that few elements are
    converted.

    Parameters
    ----------
    build
        Builder that receives the nodes.
    x
        Value of dtype float32.
    axes
        Axes to sum over, counted from the start.
    sizes
        Sizes of all axes, None for unknown ones.
    keepdims
        Whether to keep the summed axes with size one.

    Returns
    -------
    onnx_ir.Value
        The sum, in the dtype of its accumulation: float32 or float64.
    """
    stages, long = _stages(axes, sizes)
    if long:
        stages.append(long)
    done: list[int] = []
    for stage in stages:
        if stage is long and build.scope.widens:
            x = build.cast(x, "float64")
        gone = [] if keepdims else done
        along = [axis - sum(other < axis for other in gone) for axis in sorted(stage)]
        x = build.ReduceSum(x, build.ints(along), keepdims=keepdims)
        done += stage
    return x


def _stages(axes: Sequence[int], sizes: Sequence[Dim]) -> tuple[list[list[int]], list[int]]:
    """Return groups of axes that are short sums, last axes first, and the remaining axes."""
    stages: list[list[int]] = []
    long: list[int] = []
    length = 0
    for axis in sorted(axes, reverse=True):
        size = sizes[axis]
        if not isinstance(size, int) or size > LONGEST_SHORT_SUM:
            long.append(axis)
        elif stages and length * size <= LONGEST_SHORT_SUM:
            stages[-1].append(axis)
            length *= size
        else:
            stages.append([axis])
            length = size
    if long and all(prod(int(sizes[axis] or 0) for axis in stage) == 1 for stage in stages):
        return [], [*long, *(axis for stage in stages for axis in stage)]
    return stages, long


Reduction = Callable[[Builder, ir.Value, Sequence[int]], ir.Value]


@onnx_funcify.register(CAReduce)
def lower_reduction(op: CAReduce, node: Apply, build: Builder, x: ir.Value) -> ir.Value:
    """Reduce in the accumulator's dtype, except short sums of float32, which stay in float32."""
    reduction = _REDUCTIONS.get(type(op.scalar_op))
    if reduction is None:
        raise build.unsupported(f"a reduction with {op.scalar_op} has no counterpart in ONNX")
    result_dtype = node.outputs[0].type.dtype
    axes = _reduced_axes(op, node)
    is_float = dtype_of(x).is_floating_point()
    # The extremum of no floats is the initial value in ONNX as well.
    if isinstance(op, NonZeroDimsCAReduce) and op.initial and not is_float:
        x, axes = _with_initial(op, build, x, axes)
    if axes and _is_sum_of_narrow_floats(op, node):
        x = build.cast(x, "float32")
        return build.cast(sum_floats(build, x, axes, _sizes(node, build, x)), result_dtype)
    x = build.cast(x, _accumulator(op, node, build))
    return build.cast(reduction(build, x, axes) if axes else x, result_dtype)


@onnx_funcify.register(NonZeroDimsCAReduce)
def lower_extremum(op: NonZeroDimsCAReduce, node: Apply, build: Builder, x: ir.Value) -> ir.Value:
    """Reduce, and fail for a reduction of no elements."""
    axes = _reduced_axes(op, node)
    result = lower_reduction(op, node, build, x)
    if op.initial or build.scope.is_portable or not _may_be_empty(node, build, x, axes):
        return result
    name = op.ufunc.__name__
    error = ValueError(f"zero-size array to reduction operation {name} which has no identity")
    if result.producer() is not None and result.producer().op_type.startswith("Reduce"):
        name_failure(build, result, error)

    def require(inner: Builder, x: ir.Value, result: ir.Value) -> ir.Value:
        failed = inner.cast(inner.Less(inner.Size(x), inner.Size(result)), "int64")
        checked = inner.Gather(inner.Unsqueeze(result, inner.ints([0])), failed, axis=0)
        name_failure(inner, checked, error)
        return checked

    return build.call(
        f"RequireNonEmpty{name.capitalize()}",
        require,
        x,
        result,
        described=Described(meaning=Meaning("RequireNonEmpty")),
    )


def _reduced_axes(op: CAReduce | Argmax | Softmax | LogSoftmax, node: Apply) -> list[int]:
    rank = node.inputs[0].type.ndim
    return list(range(rank)) if op.axis is None else [axis % rank for axis in op.axis]


def _may_be_empty(node: Apply, build: Builder, x: ir.Value, axes: Sequence[int]) -> bool:
    sizes = _sizes(node, build, x)
    return any(not isinstance(sizes[axis], int) or sizes[axis] == 0 for axis in axes)


def _sizes(node: Apply, build: Builder, x: ir.Value) -> list[Dim]:
    """Return the known sizes of an operand; a zero in its type counts as unknown."""
    static = node.inputs[0].type.shape
    return [s or d for s, d in zip(static, dims_of(x) or (None,) * len(static), strict=True)]


def _is_sum_of_narrow_floats(op: CAReduce, node: Apply) -> bool:
    """Return whether narrow floats are summed in float64, to a result below float64."""
    dtypes = {node.inputs[0].type.dtype, node.outputs[0].type.dtype}
    is_narrow = dtypes <= {"float16", "float32"}
    return isinstance(op.scalar_op, ps.Add) and is_narrow and op.acc_dtype == "float64"


def _accumulator(op: CAReduce, node: Apply, build: Builder) -> str:
    if isinstance(op.scalar_op, ps.Maximum | ps.Minimum | ps.AND | ps.OR | ps.XOR):
        return node.inputs[0].type.dtype
    wanted = op.acc_dtype or node.outputs[0].type.dtype
    is_wide = wanted == "float64" and node.inputs[0].type.dtype == "float32"
    return "float32" if is_wide and not build.scope.widens else wanted


def _reduce_with(operator: str) -> Reduction:
    def reduce(build: Builder, x: ir.Value, axes: Sequence[int]) -> ir.Value:
        return build.op(operator, x, build.ints(axes), keepdims=0)

    return reduce


def _reduce_extremum(operator: str) -> Reduction:
    """Reduce with an operator that orders bool values as 0 and 1."""

    def reduce(build: Builder, x: ir.Value, axes: Sequence[int]) -> ir.Value:
        if x.dtype == ir.DataType.BOOL:
            x = build.cast(x, "uint8")
            return build.cast(build.op(operator, x, build.ints(axes), keepdims=0), "bool")
        return build.op(operator, x, build.ints(axes), keepdims=0)

    return reduce


def _reduce_bits(logical: Reduction, operator: str, identity: int) -> Reduction:
    """Reduce bool values by logic and integers bit by bit."""

    def reduce(build: Builder, x: ir.Value, axes: Sequence[int]) -> ir.Value:
        if x.dtype == ir.DataType.BOOL:
            return logical(build, x, axes)
        if dtype_of(x).is_floating_point():
            raise build.unsupported("floats have no bits to combine", "reduce integers or bool")
        return fold_last_axis(build, merge_axes(build, x, axes), operator, identity)

    return reduce


def _is_count_odd(build: Builder, x: ir.Value, axes: Sequence[int]) -> ir.Value:
    count = build.ReduceSum(build.cast(x, "int32"), build.ints(axes), keepdims=0)
    return build.Equal(build.Mod(count, 2), 1)


def _reduce_prod_without_zeros(build: Builder, x: ir.Value, axes: Sequence[int]) -> ir.Value:
    """Multiply the nonzero elements; the product of zeros only is zero."""
    is_zero = build.Equal(x, 0)
    product = build.ReduceProd(build.Where(is_zero, 1, x), build.ints(axes), keepdims=0)
    return build.Where(_reduce_extremum("ReduceMin")(build, is_zero, axes), 0, product)


_any, _all = _reduce_extremum("ReduceMax"), _reduce_extremum("ReduceMin")


_REDUCTIONS: dict[type, Reduction] = {
    ps.Add: _reduce_with("ReduceSum"),
    ps.Mul: _reduce_with("ReduceProd"),
    ps.Maximum: _reduce_extremum("ReduceMax"),
    ps.Minimum: _reduce_extremum("ReduceMin"),
    ps.OR: _reduce_bits(_any, "BitwiseOr", 0),
    ps.AND: _reduce_bits(_all, "BitwiseAnd", -1),
    ps.XOR: _reduce_bits(_is_count_odd, "BitwiseXor", 0),
    MulWithoutZeros: _reduce_prod_without_zeros,
}


def _with_initial(
    op: NonZeroDimsCAReduce, build: Builder, x: ir.Value, axes: list[int]
) -> tuple[ir.Value, list[int]]:
    """Append the initial value along the reduced axes, so that no reduction is empty."""
    if not axes:
        return x, axes
    axis = axes[0]
    if len(axes) > 1:
        x = merge_axes(build, x, axes)
        axis = len(build.dims(x)) - 1
    dtype = dtype_of(x).numpy()
    initial = build.constant(np.asarray(op.initial_value(dtype), dtype))
    one = build.ScatterElements(build.shape(x), build.ints([axis]), build.ints([1]), axis=0)
    return build.Concat(x, build.Expand(initial, one), axis=axis), [axis]


@onnx_funcify.register(Argmax)
def lower_argmax(op: Argmax, node: Apply, build: Builder, x: ir.Value) -> ir.Value:
    """Return the position of the first maximum; several axes are merged into one."""
    axes = _reduced_axes(op, node)
    axis = axes[0] if len(axes) == 1 else node.inputs[0].type.ndim - len(axes)
    if len(axes) != 1:
        x = merge_axes(build, x, axes)
    position = build.ArgMax(x, axis=axis, keepdims=0)
    name_failure(build, position, ValueError("attempt to get argmax of an empty sequence"))
    return position


@onnx_funcify.register(Softmax)
@onnx_funcify.register(LogSoftmax)
def lower_softmax(op: Softmax | LogSoftmax, node: Apply, build: Builder, x: ir.Value) -> ir.Value:
    """Normalise along one axis; several axes are merged into one."""
    operator = "Softmax" if isinstance(op, Softmax) else "LogSoftmax"
    rank = node.inputs[0].type.ndim
    axes = _reduced_axes(op, node)
    x = build.cast(x, node.outputs[0].type.dtype)
    if len(axes) == 1:
        return build.op(operator, x, axis=axes[0])
    order = [*(axis for axis in range(rank) if axis not in axes), *axes]
    is_ordered = order == list(range(rank))
    shape = build.shape(x if is_ordered else build.Transpose(x, perm=order))
    merged = merge_axes(build, x, axes)
    result = build.Reshape(build.op(operator, merged, axis=rank - len(axes)), shape, allowzero=1)
    return result if is_ordered else build.Transpose(result, perm=np.argsort(order).tolist())


_FIRST_OPSET_WITH_CUMPROD = 26


@onnx_funcify.register(CumOp)
def lower_cumulative(op: CumOp, node: Apply, build: Builder, x: ir.Value) -> ir.Value:
    """Accumulate along one axis in the dtype of the operand; integers wrap around."""
    if op.mode == "add":
        return build.CumSum(x, np.int64(op.axis))
    if build.scope.opset_version >= _FIRST_OPSET_WITH_CUMPROD:
        return build.CumProd(x, np.int64(op.axis))
    return _cumulative_product(build, x, op.axis)


def _cumulative_product(build: Builder, x: ir.Value, axis: int) -> ir.Value:
    """Multiply the slices in order: another order would overflow elsewhere.

    The slices are along the first axis, since a runtime may fail to loop along another axis of an
    empty array.
    """
    dims = build.dims(x)
    if 0 in dims:
        return x
    order = [axis, *(i for i in range(len(dims)) if i != axis)]
    first = x if axis == 0 else build.Transpose(x, perm=order)
    if isinstance(dims[axis], int):
        product = build.call("CumProd", _product_of_slices, first)
    else:
        product = build.call("CumProdOrEmpty", _product_of_any_slices, first)
    product.shape = first.shape
    return product if axis == 0 else build.Transpose(product, perm=np.argsort(order).tolist())


def _product_of_slices(build: Builder, x: ir.Value) -> ir.Value:
    return _scan_product(build, _slice_of_ones(build, x), x)


def _product_of_any_slices(build: Builder, x: ir.Value) -> ir.Value:
    """Prepend a slice of ones and drop it from the result, so that no loop is empty."""
    ones = _slice_of_ones(build, x)
    more = build.Concat(x, build.Unsqueeze(ones, build.ints([0])), axis=0)
    return build.Slice(
        _scan_product(build, ones, more), build.ints([0]), build.Shape(x, start=0, end=1)
    )


def _slice_of_ones(build: Builder, x: ir.Value) -> ir.Value:
    one = build.constant(np.ones((), dtype_of(x).numpy()))
    return build.Expand(one, build.Shape(x, start=1))


def _scan_product(build: Builder, start: ir.Value, x: ir.Value) -> ir.Value:
    def step(body: Builder, product: ir.Value, factor: ir.Value) -> list[ir.Value]:
        new = body.Mul(product, factor)
        return [new, new]

    return build.scan([start], [x], step)[1]


@onnx_funcify.register(RunningExtreme)
def lower_running_extreme(op: RunningExtreme, node: Apply, build: Builder, x: ir.Value) -> ir.Value:
    """Combine each row with the row 1, 2, 4, 8, … rows before it."""
    body = _running_maximum if op.kind == "max" else _running_minimum
    result = build.call("CumMax" if op.kind == "max" else "CumMin", body, x)
    result.shape = x.shape
    return result


def _running_maximum(build: Builder, x: ir.Value) -> ir.Value:
    return _double(build, x, "Max")


def _running_minimum(build: Builder, x: ir.Value) -> ir.Value:
    return _double(build, x, "Min")


def _double(build: Builder, x: ir.Value, operator: str) -> ir.Value:
    length = build.Shape(x, start=0, end=1)
    zero, one = build.ints([0]), build.ints([1])

    def step(loop: Builder, i: ir.Value, distance: ir.Value, rows: ir.Value) -> list[ir.Value]:
        first = loop.Slice(rows, zero, distance, zero)
        later = loop.Slice(rows, distance, length, zero)
        earlier = loop.Slice(rows, zero, loop.Neg(distance), zero)
        whole = loop.Concat(first, loop.op(operator, later, earlier), axis=0)
        twice = loop.Add(distance, distance)
        return [loop.Squeeze(loop.Less(twice, length), zero), twice, whole]

    any_pair = build.Squeeze(build.Less(one, length), zero)
    return build.loop(None, any_pair, [one, x], step)[1]
