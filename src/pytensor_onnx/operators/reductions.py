"""Reductions and cumulative operators along axes, and products of matrices."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import onnx_ir as ir

from pytensor_onnx.operators.dims import Dims, broadcast, constant_ints, dims_of
from pytensor_onnx.operators.facts import (
    ALL,
    FIRST,
    NONE,
    SIZE,
    UNKNOWN,
    Attributes,
    Interval,
    Operands,
    Operator,
    Pairs,
    Shapes,
    same_as_first,
)


def _reduction(inputs: Operands, attributes: Attributes) -> Dims | None:
    """Return the dimensions of a reduction with axes as an operand."""
    dims = dims_of(inputs[0])
    if dims is None:
        return None
    axes = constant_ints(inputs[1]) if len(inputs) > 1 and inputs[1] is not None else []
    if axes == [] and not attributes["noop_with_empty_axes"]:
        axes = list(range(len(dims)))
    return None if axes is None else _reduced(dims, axes, attributes)


def _arg_reduction(inputs: Operands, attributes: Attributes) -> Dims | None:
    """Return the dimensions of ArgMax and ArgMin."""
    dims = dims_of(inputs[0])
    return None if dims is None else _reduced(dims, [attributes["axis"]], attributes)


def _reduced(dims: Dims, axes: Sequence[int], attributes: Attributes) -> Dims:
    gone = {axis % len(dims) for axis in axes} if dims else set()
    if attributes["keepdims"]:
        return tuple(1 if axis in gone else d for axis, d in enumerate(dims))
    return tuple(d for axis, d in enumerate(dims) if axis not in gone)


def _count(_: ir.Node, operands: Sequence[Interval]) -> Interval:
    """Sum zeros and ones."""
    return SIZE if operands[0] == (0, 1) else UNKNOWN


def _matrix_product(inputs: Operands, attributes: Attributes) -> Dims | None:
    """Return the dimensions of MatMul."""
    a, b = dims_of(inputs[0]), dims_of(inputs[1])
    if not a or not b:
        return None
    batch = broadcast(a[:-2], b[:-2])
    return batch + (a[-2:-1] if len(a) > 1 else ()) + (b[-1:] if len(b) > 1 else ())


def _gemm(inputs: Operands, attributes: Attributes) -> Dims | None:
    """Return the dimensions of Gemm."""
    a, b = dims_of(inputs[0]), dims_of(inputs[1])
    if not a or not b:
        return None
    return a[1 if attributes["transA"] else 0], b[0 if attributes["transB"] else 1]


def _equal_inner_sizes(inputs: Shapes, attributes: Attributes) -> Pairs:
    a, b = inputs[:2]
    if a and b:
        yield a[-1], b[-2] if len(b) > 1 else b[-1]


def _equal_sizes_of_gemm(inputs: Shapes, attributes: Attributes) -> Pairs:
    a, b = inputs[:2]
    if a and b:
        yield a[0 if attributes["transA"] else 1], b[1 if attributes["transB"] else 0]


_reduce: Any = partial(Operator, shape=_reduction)
_POSITION = Operator(shape=_arg_reduction, positions=ALL)

OPERATORS: dict[str, Operator] = {
    "ArgMax": _POSITION,
    "ArgMin": _POSITION,
    "CumProd": Operator(shape=same_as_first),
    "CumSum": Operator(shape=same_as_first, bounds=_count),
    "Gemm": Operator(shape=_gemm, equal=_equal_sizes_of_gemm),
    "MatMul": Operator(shape=_matrix_product, equal=_equal_inner_sizes),
    "MatMulInteger": Operator(shape=_matrix_product),
    "ReduceL1": _reduce(sign=NONE),
    "ReduceL2": _reduce(sign=NONE),
    "ReduceLogSum": _reduce(),
    "ReduceLogSumExp": _reduce(cost="function"),
    # The maximum of no elements is minus infinity.
    "ReduceMax": _reduce(numbers=FIRST),
    "ReduceMean": _reduce(),
    "ReduceMin": _reduce(numbers=FIRST, sign=FIRST),
    "ReduceProd": _reduce(),
    "ReduceSum": _reduce(sign=FIRST, bounds=_count),
    "ReduceSumSquare": _reduce(sign=NONE),
}
REDUCTIONS = tuple(
    name for name, entry in OPERATORS.items() if entry.shape in (_reduction, _arg_reduction)
)
"""Operators that drop axes, or keep them with size one."""

LONGEST_SHORT_SUM = 1024
"""Number of float32 terms that a runtime adds up one after the other without much rounding."""
