"""Forms of operators that are exact where a runtime's own kernel is not, or is missing."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from pytensor_onnx.builder import Builder
from pytensor_onnx.inference import constant_ints, dims_of, dtype_of, signature

LIFTED = frozenset({"Softmax", "LogSoftmax", "CumSum", "CumProd", "ArgMax", "ArgMin", "Hardmax"})
"""Operators along one axis, which for a 0-d value can work on one element."""

_GUARD = "guarded against NaN"


def is_guarded(node: ir.Node) -> bool:
    """Return whether a reduction is the inner part of a guarded one."""
    return _GUARD in node.meta


def between_casts(
    onnx: Builder, node: ir.Node, dtype: ir.DataType, wider: ir.DataType
) -> ir.Value | list[ir.Value]:
    """Run an operator in a wider dtype: the cast there loses nothing, nor does the one back."""
    types = signature(node.op_type, onnx.scope.opset_version)
    operands = [
        onnx.cast(x, wider) if x is not None and _has(types.input_type(i), x, dtype) else x
        for i, x in enumerate(node.inputs)
    ]
    attributes = {k: v.value for k, v in node.attributes.items()}
    n_outputs = len(node.outputs)
    results = onnx.op(node.op_type, *operands, outputs=n_outputs, **attributes)
    results = [results] if isinstance(results, ir.Value) else results
    return [
        onnx.cast(new, dtype) if old.dtype == dtype and new.dtype == wider else new
        for new, old in zip(results, node.outputs, strict=True)
    ]


def _has(variable: object, value: ir.Value, dtype: ir.DataType) -> bool:
    return isinstance(variable, str) and value.dtype == dtype


def where_bool(onnx: Builder, node: ir.Node) -> ir.Value:
    """Select between bool values by logic."""
    condition, x, y = node.inputs
    return onnx.Or(onnx.And(condition, x), onnx.And(onnx.Not(condition), y))


def where_unsigned(onnx: Builder, node: ir.Node) -> ir.Value:
    """Select between integers as ``c * x + (1 - c) * y``, which is exact modulo the range."""
    condition, x, y = node.inputs
    c = onnx.cast(_given(condition), dtype_of(x))
    return onnx.Add(onnx.Mul(c, x), onnx.Mul(onnx.Sub(1, c), y))


def lift_zero_dim(onnx: Builder, node: ir.Node) -> ir.Value:
    """Run an operator along the one axis of a 1-element vector in place of a 0-d value."""
    x, *rest = node.inputs
    attributes = {k: v.value for k, v in node.attributes.items()}
    if "axis" in attributes:
        attributes["axis"] = 0
    lifted = onnx.op(node.op_type, onnx.Unsqueeze(x, [0]), *rest, **attributes)
    if node.op_type in ("ArgMax", "ArgMin") and not attributes.get("keepdims", 1):
        return lifted
    return onnx.Squeeze(lifted, [0])


def integer_sum(onnx: Builder, node: ir.Node) -> ir.Value:
    """Sum integers as a product with a vector of ones: exact, and wrapping like NumPy's sum."""
    x = _given(node.inputs[0])
    moved, sizes = _reduced_last(onnx, node)
    ones = onnx.Expand(onnx.constant(np.ones((), dtype_of(x).numpy())), sizes)
    return _restore(onnx, node, onnx.MatMul(moved, ones))


def integer_product(onnx: Builder, node: ir.Node) -> ir.Value:
    """Multiply integers by halving: each round multiplies one half of the elements by the other."""
    x = _given(node.inputs[0])
    moved, sizes = _reduced_last(onnx, node)
    one = onnx.constant(np.ones((), dtype_of(x).numpy()))
    loop = onnx.subgraph()
    step = ir.Value(name="step", type=ir.TensorType(ir.DataType.INT64), shape=ir.Shape(()))
    going = ir.Value(name="going", type=ir.TensorType(ir.DataType.BOOL), shape=ir.Shape(()))
    rank = len(onnx.dims(moved))
    rest = ir.Value(name="rest", type=ir.TensorType(dtype_of(x)), shape=ir.Shape([None] * rank))
    size = loop.Shape(rest, start=rank - 1, end=rank)
    half = loop.Div(size, 2)
    last = loop.ints([rank - 1])
    first = loop.Slice(rest, [0], half, last)
    second = loop.Slice(rest, half, loop.Mul(half, 2), last)
    odd = loop.Slice(rest, loop.Mul(half, 2), size, last)
    halved = loop.Concat(loop.Mul(first, second), odd, axis=rank - 1)
    again = loop.Greater(loop.Squeeze(loop.Sub(size, half), [0]), 1)
    body = loop.graph([step, going, rest], [again, halved])
    padded = onnx.Concat(moved, onnx.Expand(one, _last_size_one(onnx, moved)), axis=rank - 1)
    start = onnx.Greater(onnx.Squeeze(sizes, [0]), 0)
    (result,) = onnx.loop(None, start, [padded], body)
    return _restore(onnx, node, onnx.Squeeze(result, [rank - 1]))


def _last_size_one(onnx: Builder, x: ir.Value) -> ir.Value:
    rank = len(onnx.dims(x))
    return onnx.Concat(onnx.Shape(x, start=0, end=rank - 1), onnx.ints([1]), axis=0)


def _axes(node: ir.Node, rank: int) -> list[int]:
    axes = constant_ints(node.inputs[1]) if len(node.inputs) > 1 else None
    return list(range(rank)) if axes is None else sorted(a % rank for a in axes)


def _reduced_last(onnx: Builder, node: ir.Node) -> tuple[ir.Value, ir.Value]:
    """Return the operand with the reduced axes merged into the last one, and its size (1-d)."""
    x = _given(node.inputs[0])
    dims = dims_of(x)
    if dims is None:
        flat = onnx.Reshape(x, onnx.ints([-1]))
        flat.shape = ir.Shape([None])
        return flat, onnx.Shape(flat)
    rank = len(dims)
    if rank == 0:
        return onnx.Unsqueeze(x, [0]), onnx.ints([1])
    axes = _axes(node, rank)
    kept = [axis for axis in range(rank) if axis not in axes]
    order = [*kept, *axes]
    moved = x if order == list(range(rank)) else onnx.Transpose(x, perm=order)
    if len(axes) == 1:
        size = dims[axes[0]]
        if isinstance(size, int):
            return moved, onnx.ints([size])
        return moved, onnx.Shape(moved, start=rank - 1, end=rank)
    shape = onnx.shape(moved)
    size = onnx.Unsqueeze(onnx.Size(x), [0])
    if kept:
        size = onnx.ReduceProd(onnx.Slice(shape, [len(kept)], [rank]), onnx.ints([0]), keepdims=1)
        target = onnx.Concat(onnx.Slice(shape, [0], [len(kept)]), size, axis=0)
        merged = onnx.Reshape(moved, target, allowzero=1)
    else:
        merged = onnx.Reshape(moved, size, allowzero=1)
    merged.shape = ir.Shape([*(dims[axis] for axis in kept), None])
    return merged, size


def _restore(onnx: Builder, node: ir.Node, result: ir.Value) -> ir.Value:
    """Bring back the reduced axes with size one where the reduction keeps them."""
    keepdims = node.attributes.get("keepdims")
    if keepdims is not None and not keepdims.as_int():
        return result
    dims = dims_of(node.inputs[0])
    return onnx.Unsqueeze(result, onnx.ints(_axes(node, len(dims or ()))))


def nan_extremum(onnx: Builder, node: ir.Node) -> ir.Value:
    """Reduce to NaN where any element is NaN."""
    keepdims = int(_int_attribute(node, "keepdims", 1))

    def body(inner: Builder, x: ir.Value, *axes: ir.Value) -> ir.Value:
        is_nan = inner.Cast(inner.IsNaN(x), to=int(ir.DataType.INT32))
        any_nan = inner.Cast(
            inner.ReduceMax(is_nan, *axes, keepdims=keepdims), to=int(ir.DataType.BOOL)
        )
        extremum = inner.op(node.op_type, x, *axes, keepdims=keepdims)
        extremum.producer().meta[_GUARD] = True
        return inner.Where(any_nan, float("nan"), extremum)

    operands = [x for x in node.inputs if x is not None]
    name = f"{node.op_type}KeepDims" if keepdims else node.op_type
    variant = f"{dtype_of(operands[0]).numpy()}{'' if len(operands) > 1 else '_all'}"
    return onnx.call(name, body, *operands, variant=variant)


def nan_arg_extremum(onnx: Builder, node: ir.Node) -> ir.Value:
    """Return the position of the first NaN where there is one."""
    (x,) = node.inputs
    attributes = {k: v.value for k, v in node.attributes.items()}
    is_nan = onnx.Cast(onnx.IsNaN(x), to=int(ir.DataType.INT32))
    axis, keepdims = attributes.get("axis", 0), attributes.get("keepdims", 1)
    any_nan = onnx.Cast(
        onnx.ReduceMax(is_nan, onnx.ints([axis]), keepdims=keepdims), to=int(ir.DataType.BOOL)
    )
    position = onnx.op(node.op_type, x, **attributes)
    position.producer().meta[_GUARD] = True
    first_nan = onnx.ArgMax(is_nan, axis=axis, keepdims=keepdims)
    return onnx.Where(any_nan, first_nan, position)


def _given(value: ir.Value | None) -> ir.Value:
    if value is None:
        raise TypeError("an operand is missing")
    return value


def _int_attribute(node: ir.Node, name: str, default: int) -> int:
    attribute = node.attributes.get(name)
    return default if attribute is None else attribute.as_int()


INTEGER_REDUCTIONS = {"ReduceSum": integer_sum, "ReduceProd": integer_product}
NAN_REDUCTIONS = {
    "ReduceMax": nan_extremum,
    "ReduceMin": nan_extremum,
    "ArgMax": nan_arg_extremum,
    "ArgMin": nan_arg_extremum,
}
