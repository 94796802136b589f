"""Find values whose elements are never NaN or never negative, whatever the inputs are.

Differences, quotients and products are NaN for some infinities, so most computed values may be NaN.
A search visits at most `MOST_VALUES` values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from pytensor_onnx.passes.matching import constant_of, producer_of

MOST_VALUES = 64
"""Largest number of values that a search visits; beyond it the answer is unknown."""
LARGEST = 65_536
"""Largest number of elements of a constant that is searched."""

_MOVES_ELEMENTS = frozenset(
    {"Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "Reshape", "Slice"}
    | {"Split", "Squeeze", "Tile", "Transpose", "Unsqueeze"}
)
"""Operators whose results have the elements of the first operand."""
_JOINS_ELEMENTS = frozenset({"Concat", "Max", "Min"})
_KEEPS_NUMBERS = frozenset(
    {"Abs", "Ceil", "Erf", "Exp", "Floor", "Neg", "ReduceMax", "ReduceMin", "Relu", "Round"}
    | {"Sigmoid", "Sign", "Softplus", "Tanh"}
)
"""Operators that are NaN for NaN only."""
_NOT_NEGATIVE = frozenset(
    {"Abs", "Exp", "ReduceL1", "ReduceL2", "ReduceSumSquare", "Relu", "Sigmoid", "Softmax"}
    | {"Softplus", "Sqrt"}
)
"""Operators whose results are NaN or not negative; the root of minus zero is minus zero."""
_KEEPS_SIGN = frozenset({"Add", "Mul", "Sum"})
"""Operators that are NaN or not negative for such operands. A quotient by -0 may be -inf."""

Sources = Sequence[ir.Value | None] | None
"""Values on whose elements the answer depends: empty if it is yes, None if it is unknown."""


def is_never_nan(value: ir.Value | None) -> bool:
    """Return whether no element of a value is NaN, whatever the inputs are.

    Examples
    --------
    >>> from pytensor_onnx.graph.builder import Builder, ModelScope
    >>> build = Builder(ModelScope(21))
    >>> x = ir.val("x", dtype=ir.DataType.FLOAT, shape=("n",))
    >>> count = build.cast(build.Greater(x, 0), "float32")
    >>> [is_never_nan(y) for y in (x, build.Exp(count), build.Sub(count, count))]
    [False, True, False]
    """
    return _holds(value, _sources_of_nan)


def is_finite(value: ir.Value | None) -> bool:
    """Return whether all elements of a value are finite, as far as integers show.

    Examples
    --------
    >>> from pytensor_onnx.graph.builder import Builder, ModelScope
    >>> build = Builder(ModelScope(21))
    >>> x = ir.val("x", dtype=ir.DataType.INT8, shape=("n",))
    >>> y = build.DequantizeLinear(x, np.float32(0.5))
    >>> is_finite(build.Relu(y)), is_finite(build.Exp(y))
    (True, False)
    """
    return _holds(value, _sources_of_infinity)


def is_never_negative(value: ir.Value | None) -> bool:
    """Return whether all elements of a value are NaN, zero or positive.

    Examples
    --------
    >>> from pytensor_onnx.graph.builder import Builder, ModelScope
    >>> build = Builder(ModelScope(21))
    >>> x = ir.val("x", dtype=ir.DataType.FLOAT, shape=("n",))
    >>> y = build.Abs(x)
    >>> [is_never_negative(z) for z in (x, y, build.Mul(x, x), build.Mul(x, y))]
    [False, True, True, False]
    """
    return _holds(value, _sources_of_sign)


def has_one_sign(value: ir.Value | None) -> bool:
    """Return whether no two elements of a value have opposite signs.

    Infinities then do not cancel in a sum.
    """
    negation = producer_of(value, "Neg")
    return is_never_negative(value if negation is None else negation.inputs[0])


def _holds(value: ir.Value | None, sources_of: Callable[[ir.Value], Sources]) -> bool:
    """Return whether a property holds for a value and all values that it depends on."""
    waiting, seen = [value], {value}
    while waiting:
        current = waiting.pop()
        sources = None if current is None or len(seen) > MOST_VALUES else sources_of(current)
        if sources is None:
            return False
        waiting += [x for x in sources if x not in seen]
        seen |= set(sources)
    return True


def _sources_of_nan(value: ir.Value) -> Sources:
    """Return the operands that a value takes NaN from."""
    if value.dtype is not None and (value.dtype.is_integer() or value.dtype == ir.DataType.BOOL):
        return ()
    node = value.producer()
    if node is None:
        return _if_constant(value, lambda array: not np.isnan(array).any())
    if node.domain:
        return None
    if node.op_type in _MOVES_ELEMENTS | _KEEPS_NUMBERS or node.op_type == "Cast":
        return node.inputs[:1]
    if node.op_type in _JOINS_ELEMENTS:
        return node.inputs
    if node.op_type == "Where":
        condition, x, y = node.inputs
        test = None if condition is None else condition.producer()
        is_guard = test is not None and test.op_type == "IsNaN" and test.inputs[0] is y
        return (x,) if is_guard else (x, y)
    return None


def _sources_of_infinity(value: ir.Value) -> Sources:
    """Return the operands that a value takes NaN and infinities from."""
    node = value.producer()
    if node is None:
        return _if_constant(value, lambda array: bool(np.isfinite(array).all()))
    if node.domain:
        return None
    if node.op_type == "DequantizeLinear":
        return node.inputs[1:2]
    return node.inputs[:1] if node.op_type in _MOVES_ELEMENTS | {"Abs", "Neg", "Relu"} else None


def _sources_of_sign(value: ir.Value) -> Sources:
    """Return the operands that a value takes negative numbers from."""
    node = value.producer()
    if node is None:
        return _if_constant(value, lambda array: not (array < 0).any())
    if node.domain:
        return None
    if node.op_type in _NOT_NEGATIVE:
        return ()
    if node.op_type == "Mul" and node.inputs[0] is node.inputs[1]:
        return ()
    # The maximum of no elements is minus infinity.
    if node.op_type in _MOVES_ELEMENTS or node.op_type in ("ReduceMin", "ReduceSum"):
        return node.inputs[:1]
    if node.op_type in _JOINS_ELEMENTS | _KEEPS_SIGN:
        return node.inputs
    return node.inputs[1:] if node.op_type == "Where" else None


def _if_constant(value: ir.Value, condition: Callable[[np.ndarray], bool]) -> Sources:
    """Return an empty tuple if the value is a constant that meets a condition, otherwise None."""
    array = constant_of(value)
    return () if array is not None and array.size <= LARGEST and condition(array) else None
