"""Forms of operators on integers, for runtimes with wrong or missing kernels.

A runtime that compares int64 by halves treats the lower 32 bits as signed if the upper halves are
equal: 2**31 counts as less than 7. Its Less, Greater and TopK are right.
"""

from __future__ import annotations

from functools import reduce

import numpy as np
import onnx_ir as ir

from pytensor_onnx.graph.bounds import fit_int32
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.traversal import is_bare
from pytensor_onnx.operators.dims import constant_ints, dims_of
from pytensor_onnx.operators.inference import attribute_of
from pytensor_onnx.passes.forms.exact import between_casts, integer_product, integer_sum
from pytensor_onnx.passes.matching import attributes_of, required
from pytensor_onnx.passes.node_walk import Form, Results, emit_alike

_SMALL_STEP = 2**20
_EXACT_IN_DOUBLE = 2**52
_TOP_BIT = np.uint64(2**63)


def exact_reduction(build: Builder, node: ir.Node) -> Results:
    """Reduce integers exactly, wrapping around as NumPy does."""
    return REDUCTIONS[node.op_type](build, node)


def by_comparison(build: Builder, node: ir.Node) -> Results:
    """Compare int64 by Less, Greater and TopK only."""
    return ORDERED[node.op_type](build, node)


def may_differ_in_lower_halves(node: ir.Node) -> bool:
    """Return whether a node may compare int64 wrongly by halves.

    `Max` and `Min` are mostly given sizes and positions, which are inside of int32.
    """
    is_extremum = node.op_type in ("Max", "Min")
    return is_bare(node) and not (is_extremum and fit_int32(node))


def extremum(build: Builder, node: ir.Node) -> ir.Value:
    """Combine the operands by maximum or minimum, one after the other."""
    comparison = "Less" if node.op_type == "Max" else "Greater"
    return reduce(lambda x, y: build.Where(build.op(comparison, x, y), y, x), _operands(node))


def clip(build: Builder, node: ir.Node) -> ir.Value:
    """Apply the lower and then the upper bound; either may be missing."""
    x, low, high = [*node.inputs, None, None][:3]
    if low is not None:
        x = build.Where(build.Less(x, low), low, x)
    if high is not None:
        x = build.Where(build.Greater(x, high), high, x)
    return required(x)


def relu(build: Builder, node: ir.Node) -> ir.Value:
    """Select between x and zero."""
    (x,) = _operands(node)
    return build.Where(build.Greater(x, 0), x, 0)


def sign(build: Builder, node: ir.Node) -> ir.Value:
    """Subtract ``x < 0`` from ``x > 0``."""
    (x,) = _operands(node)
    above, below = (build.cast(build.op(op, x, 0), _dtype(x)) for op in ("Greater", "Less"))
    return build.Sub(above, below)


def reduce_extremum(build: Builder, node: ir.Node) -> ir.Value:
    """Select the largest or smallest element along one axis after the other."""
    x, *given_axes = _operands(node)
    largest = int(node.op_type == "ReduceMax")
    keepdims = attribute_of(node, "keepdims")
    dims = dims_of(x)
    one = build.ints([1])
    if dims is None:
        flat = build.TopK(build.Reshape(x, build.ints([-1])), one, largest=largest, outputs=2)[0]
        ones = build.Expand(one, build.Shape(build.Shape(x)))
        return build.Reshape(flat, ones if keepdims else build.ints([]))
    axes = constant_ints(given_axes[0]) if given_axes else []
    if axes == [] and not attribute_of(node, "noop_with_empty_axes"):
        axes = list(range(len(dims)))
    if axes is None:
        raise build.unsupported(f"{node.op_type} of int64 along axes that the graph computes")
    for axis in axes:
        x = build.TopK(x, one, axis=axis, largest=largest, outputs=2)[0]
    return x if keepdims or not axes else build.Squeeze(x, build.ints(axes))


def absolute_sum(build: Builder, node: ir.Node) -> ir.Value:
    """Sum absolute values."""
    return _sum_of(build, node, build.Abs(node.inputs[0]))


def square_sum(build: Builder, node: ir.Node) -> ir.Value:
    """Sum squares."""
    return _sum_of(build, node, build.Mul(node.inputs[0], node.inputs[0]))


def _sum_of(build: Builder, node: ir.Node, x: ir.Value) -> ir.Value:
    attributes = attributes_of(node)
    return build.ReduceSum(x, *node.inputs[1:], **attributes)


def truncated_modulo(build: Builder, node: ir.Node) -> ir.Value:
    """Return the remainder with the sign of the dividend, as C does."""
    x, y = _operands(node)
    return build.Sub(x, build.Mul(build.Div(x, y), y))


def is_truncated(node: ir.Node) -> bool:
    """Return whether a Mod has the sign of the dividend."""
    return bool(attribute_of(node, "fmod"))


def counts_in_double(node: ir.Node) -> bool:
    """Return whether a Range may have a wrong length when computed in double.

    It cannot with a small constant start and step: a limit beyond 2**53 would fill the memory.
    """
    start, _, step = (constant_ints(x) for x in node.inputs)
    if start is None or step is None:
        return True
    return abs(start[0]) > _EXACT_IN_DOUBLE or not 0 < abs(step[0]) <= _SMALL_STEP


def integer_range(build: Builder, node: ir.Node) -> ir.Value:
    """Compute the length in integers, then scale and shift a range of that length.

    Distance and step are divided as uint64, which represents all of them and cannot end the
    process.
    """
    start, limit, step = _operands(node)
    upwards = build.Greater(step, 0)
    low, high = build.Where(upwards, start, limit), build.Where(upwards, limit, start)
    distance = build.cast(build.Sub(high, low), ir.DataType.UINT64)
    whole = build.Div(build.Sub(distance, 1), build.cast(build.Abs(step), ir.DataType.UINT64))
    count = build.Add(build.cast(whole, ir.DataType.INT64), 1)
    count = build.Where(build.Less(low, high), count, 0)
    return build.Add(start, build.Mul(build.Range(np.int64(0), count, np.int64(1)), step))


def non_zero(build: Builder, node: ir.Node) -> ir.Value:
    """Return the positions of true elements, as bool."""
    return build.NonZero(build.cast(_operands(node)[0], "bool"))


def in_int64_modulo(build: Builder, node: ir.Node) -> list[ir.Value]:
    """Compute uint64 in int64, whose sums and products are the same modulo 2**64."""
    return between_casts(build, node, ir.DataType.UINT64, ir.DataType.INT64)


def in_int64_order(build: Builder, node: ir.Node) -> list[ir.Value]:
    """Compare uint64 as int64: with the top bit flipped, their order is the same."""
    operands = [
        build.cast(build.BitwiseXor(x, _TOP_BIT), ir.DataType.INT64)
        if x is not None and x.dtype == ir.DataType.UINT64
        else x
        for x in node.inputs
    ]
    results = emit_alike(build, node, operands)
    return [
        build.BitwiseXor(build.cast(new, ir.DataType.UINT64), _TOP_BIT)
        if old.dtype == ir.DataType.UINT64
        else new
        for new, old in zip(results, node.outputs, strict=True)
    ]


def halved_quotient(build: Builder, node: ir.Node) -> ir.Value:
    """Divide uint64 in int64: half the dividend first, then correct the quotient by one.

    A divisor of the top bit goes into a dividend once or not at all.
    """
    x, y = (build.cast(operand, ir.DataType.INT64) for operand in _operands(node))
    half = build.cast(build.BitShift(_operands(node)[0], np.uint64(1), direction="RIGHT"), "int64")
    is_large = build.Less(y, 0)
    divisor = build.Where(is_large, 1, y)
    quotient = build.Mul(build.Div(half, divisor), 2)
    rest = build.Sub(x, build.Mul(quotient, divisor))
    is_short = build.Or(build.Less(rest, 0), build.Not(build.Less(rest, divisor)))
    quotient = build.Add(quotient, build.cast(is_short, "int64"))
    of_large = build.And(build.Less(x, 0), build.Not(build.Less(x, y)))
    result = build.Where(is_large, build.cast(of_large, "int64"), quotient)
    return build.cast(result, ir.DataType.UINT64)


def first_extremum(build: Builder, node: ir.Node) -> ir.Value:
    """Return the position of the first extremum by TopK, the first of equal elements."""
    axis, is_kept = attribute_of(node, "axis"), attribute_of(node, "keepdims")
    if attribute_of(node, "select_last_index"):
        raise build.unsupported(f"{node.op_type} of the last of equal elements")
    largest = int(node.op_type == "ArgMax")
    x = required(node.inputs[0])
    position = build.TopK(x, build.ints([1]), axis=axis, largest=largest, outputs=2)[1]
    return position if is_kept else build.Squeeze(position, build.ints([axis]))


def _operands(node: ir.Node) -> list[ir.Value]:
    return [x for x in node.inputs if x is not None]


def _dtype(value: ir.Value) -> ir.DataType:
    if value.dtype is None:
        raise TypeError(f"the dtype of {value} is not known")
    return value.dtype


ORDERED: dict[str, Form] = {
    "Max": extremum,
    "Min": extremum,
    "Clip": clip,
    "Relu": relu,
    "Sign": sign,
    "ReduceMax": reduce_extremum,
    "ReduceMin": reduce_extremum,
    "ArgMax": first_extremum,
    "ArgMin": first_extremum,
}
"""Forms that compare int64 by Less, Greater and TopK only."""

REDUCTIONS: dict[str, Form] = {
    "ReduceL1": absolute_sum,
    "ReduceProd": integer_product,
    "ReduceSum": integer_sum,
    "ReduceSumSquare": square_sum,
}
"""Forms that are exact and wrap around."""

UINT64: dict[str, Form] = {
    **dict.fromkeys(("CumSum", "CumProd", "Einsum", "OneHot", "Trilu"), in_int64_modulo),
    **dict.fromkeys(("Add", "Equal", "Mul", "Sub"), in_int64_modulo),
    **dict.fromkeys(("ReduceProd", "ReduceSum", "ReduceSumSquare"), in_int64_modulo),
    **dict.fromkeys(
        ("ArgMax", "ArgMin", "ReduceMax", "ReduceMin", "TopK", "Unique"), in_int64_order
    ),
    **dict.fromkeys(("Greater", "GreaterOrEqual", "Less", "LessOrEqual"), in_int64_order),
    "Div": halved_quotient,
}
"""Forms for uint64, which no wider dtype can hold."""
