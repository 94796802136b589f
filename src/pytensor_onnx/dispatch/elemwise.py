"""Elementwise ops, dimension shuffles and reductions."""

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply
from pytensor.scalar import basic as ps
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.math import Argmax, MulWithoutZeros, NonZeroDimsCAReduce
from pytensor.tensor.special import LogSoftmax, Softmax

from pytensor_onnx.builder import Builder
from pytensor_onnx.dispatch.basic import Lowered, onnx_funcify
from pytensor_onnx.inference import Dim, dims_of

_FLOAT_ACCUMULATOR = {"float16": "float32"}


@onnx_funcify.register(Elemwise)
def lower_elemwise(op: Elemwise, node: Apply, onnx: Builder, *inputs: ir.Value) -> Lowered:
    """Lower the scalar op on tensors; ONNX broadcasts as PyTensor does."""
    dims = _elementwise_dims(node, onnx, inputs) if onnx.shaped else None
    lowered = onnx_funcify(op.scalar_op, node, onnx, *inputs)
    values = [lowered] if isinstance(lowered, ir.Value) else list(lowered)
    if dims is not None:
        for value in values:
            if value.producer() is not None:
                value.shape = ir.Shape(dims)
    return values


def _elementwise_dims(node: Apply, onnx: Builder, inputs: Sequence[ir.Value]) -> list[Dim]:
    """Return the dimensions of the result, and note those that PyTensor requires to be equal."""
    dims: list[Dim] = list(node.outputs[0].type.shape)
    for axis, static in enumerate(dims):
        if static is not None:
            continue
        names = []
        for variable, value in zip(node.inputs, inputs, strict=True):
            known = dims_of(value)
            if known is None or variable.type.shape[axis] == 1:
                continue
            if isinstance(known[axis], int):
                dims[axis] = known[axis]
                break
            if isinstance(known[axis], str):
                names.append(known[axis])
        else:
            if names:
                if not onnx.in_branch and not onnx.in_function:
                    for name in names[1:]:
                        onnx.scope.equate_dims(names[0], name)
                dims[axis] = names[0]
    return dims


@onnx_funcify.register(DimShuffle)
def lower_dim_shuffle(op: DimShuffle, node: Apply, onnx: Builder, x: ir.Value) -> ir.Value:
    """Squeeze the dropped axes, transpose the kept ones, insert the new ones."""
    kept = sorted(op.shuffle)
    permutation = [kept.index(axis) for axis in op.shuffle]
    dropped = [axis for axis in range(node.inputs[0].type.ndim) if axis not in kept]
    if dropped:
        x = onnx.Squeeze(x, onnx.ints(dropped))
    if permutation != sorted(permutation):
        x = onnx.Transpose(x, perm=permutation)
    if op.augment:
        x = onnx.Unsqueeze(x, onnx.ints(op.augment))
    return x


@onnx_funcify.register(CAReduce)
def lower_reduction(op: CAReduce, node: Apply, onnx: Builder, x: ir.Value) -> ir.Value:
    """Reduce in the accumulator's dtype.

    It deviates from PyTensor in one point: float32 is accumulated in float32, since a file with a
    detour through float64 would not run on targets without it.
    """
    reduction = _REDUCTIONS.get(type(op.scalar_op))
    if reduction is None:
        raise onnx.unsupported(f"a reduction with {op.scalar_op} has no counterpart in ONNX")
    result_dtype = node.outputs[0].type.dtype
    axes = list(range(node.inputs[0].type.ndim)) if op.axis is None else list(op.axis)
    if isinstance(op, NonZeroDimsCAReduce) and op.initial:
        x = _with_initial(op, onnx, x, axes)
    accumulator = _accumulator(op, node)
    x = onnx.cast(x, accumulator)
    result = reduction(onnx, x, onnx.ints(axes)) if axes else x
    return onnx.cast(result, result_dtype)


def _accumulator(op: CAReduce, node: Apply) -> str:
    dtype = node.inputs[0].type.dtype
    if isinstance(op.scalar_op, ps.Maximum | ps.Minimum | ps.AND | ps.OR | ps.XOR):
        return dtype
    wanted = op.acc_dtype or node.outputs[0].type.dtype
    if dtype in ("float16", "float32") and wanted == "float64":
        return _FLOAT_ACCUMULATOR.get(dtype, dtype)
    return wanted


def _reduce_with(operator: str) -> Callable[[Builder, ir.Value, ir.Value], ir.Value]:
    def reduce(onnx: Builder, x: ir.Value, axes: ir.Value) -> ir.Value:
        return onnx.op(operator, x, axes, keepdims=0)

    return reduce


def _reduce_extremum(operator: str) -> Callable[[Builder, ir.Value, ir.Value], ir.Value]:
    logical = {"ReduceMax": "any", "ReduceMin": "all"}[operator]

    def reduce(onnx: Builder, x: ir.Value, axes: ir.Value) -> ir.Value:
        if x.dtype == ir.DataType.BOOL:
            return _LOGICAL[logical](onnx, x, axes)
        return onnx.op(operator, x, axes, keepdims=0)

    return reduce


def _reduce_any(onnx: Builder, x: ir.Value, axes: ir.Value) -> ir.Value:
    if x.dtype != ir.DataType.BOOL:
        raise onnx.unsupported("a bitwise or over integers has no counterpart in ONNX")
    return onnx.Greater(
        onnx.ReduceSum(onnx.Cast(x, to=int(ir.DataType.INT32)), axes, keepdims=0), 0
    )


def _reduce_all(onnx: Builder, x: ir.Value, axes: ir.Value) -> ir.Value:
    if x.dtype != ir.DataType.BOOL:
        raise onnx.unsupported("a bitwise and over integers has no counterpart in ONNX")
    return onnx.Not(_reduce_any(onnx, onnx.Not(x), axes))


def _reduce_xor(onnx: Builder, x: ir.Value, axes: ir.Value) -> ir.Value:
    if x.dtype != ir.DataType.BOOL:
        raise onnx.unsupported("a bitwise exclusive or over integers has no counterpart in ONNX")
    count = onnx.ReduceSum(onnx.Cast(x, to=int(ir.DataType.INT32)), axes, keepdims=0)
    return onnx.Equal(onnx.Mod(count, 2), 1)


def _reduce_prod_without_zeros(onnx: Builder, x: ir.Value, axes: ir.Value) -> ir.Value:
    return onnx.ReduceProd(onnx.Where(onnx.Equal(x, 0), 1, x), axes, keepdims=0)


_LOGICAL = {"any": _reduce_any, "all": _reduce_all}
_REDUCTIONS: dict[type, Callable[[Builder, ir.Value, ir.Value], ir.Value]] = {
    ps.Add: _reduce_with("ReduceSum"),
    ps.Mul: _reduce_with("ReduceProd"),
    ps.Maximum: _reduce_extremum("ReduceMax"),
    ps.Minimum: _reduce_extremum("ReduceMin"),
    ps.OR: _reduce_any,
    ps.AND: _reduce_all,
    ps.XOR: _reduce_xor,
    MulWithoutZeros: _reduce_prod_without_zeros,
}


def _with_initial(
    op: NonZeroDimsCAReduce, onnx: Builder, x: ir.Value, axes: Sequence[int]
) -> ir.Value:
    """Append the initial value along the first reduced axis, so that no reduction is empty."""
    if not axes or x.dtype is None:
        return x
    initial = onnx.constant(np.asarray(op.initial_value(x.dtype.numpy()), x.dtype.numpy()))
    shape = onnx.shape(x)
    one = onnx.ScatterElements(shape, onnx.ints([axes[0]]), onnx.ints([1]), axis=0)
    return onnx.Concat(x, onnx.Expand(initial, one), axis=axes[0])


@onnx_funcify.register(Argmax)
def lower_argmax(op: Argmax, node: Apply, onnx: Builder, x: ir.Value) -> ir.Value:
    """Take the first maximum; over several axes, of the array flattened along them."""
    rank = node.inputs[0].type.ndim
    axes = list(range(rank)) if op.axis is None else list(op.axis)
    if len(axes) == 1:
        return onnx.ArgMax(x, axis=axes[0], keepdims=0)
    kept = [axis for axis in range(rank) if axis not in axes]
    if [*kept, *axes] != list(range(rank)):
        x = onnx.Transpose(x, perm=[*kept, *axes])
    sizes = [onnx.Shape(x, start=0, end=len(kept)), onnx.ints([-1])] if kept else [onnx.ints([-1])]
    flat = onnx.Reshape(x, onnx.Concat(*sizes, axis=0) if kept else sizes[0])
    return onnx.ArgMax(flat, axis=len(kept), keepdims=0)


@onnx_funcify.register(Softmax)
@onnx_funcify.register(LogSoftmax)
def lower_softmax(op: Softmax | LogSoftmax, node: Apply, onnx: Builder, x: ir.Value) -> ir.Value:
    """Normalise along one axis; several axes are flattened into one first."""
    operator = "Softmax" if isinstance(op, Softmax) else "LogSoftmax"
    rank = node.inputs[0].type.ndim
    axes = list(range(rank)) if op.axis is None else list(op.axis)
    if not axes:
        flat = onnx.Reshape(x, onnx.ints([1]))
        return onnx.Reshape(onnx.op(operator, flat, axis=0), onnx.ints([]))
    if len(axes) == 1:
        return onnx.op(operator, x, axis=axes[0])
    kept = [axis for axis in range(rank) if axis not in axes]
    order = [*kept, *axes]
    moved = x if order == list(range(rank)) else onnx.Transpose(x, perm=order)
    shape = onnx.shape(moved)
    sizes = [onnx.Slice(shape, [0], [len(kept)]), onnx.ints([-1])] if kept else [onnx.ints([-1])]
    flat = onnx.Reshape(moved, onnx.Concat(*sizes, axis=0) if kept else sizes[0])
    result = onnx.Reshape(onnx.op(operator, flat, axis=len(kept)), shape, allowzero=1)
    if order == list(range(rank)):
        return result
    return onnx.Transpose(result, perm=[order.index(axis) for axis in range(rank)])
