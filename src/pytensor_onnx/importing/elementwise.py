"""Operators on each element, constants and dtypes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np
import onnx_ir as ir
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.errors import UnsupportedCase
from pytensor_onnx.importing.registry.known_values import known, like
from pytensor_onnx.importing.registry.narrow_types import NARROW, narrow_type
from pytensor_onnx.importing.registry.operator_imports import dtype_name, onnx_import
from pytensor_onnx.ops.elementwise import BitsAs

_TABLE: dict[str, Callable[..., TensorVariable]] = {
    "Abs": pt.abs,
    "Acos": pt.arccos,
    "Acosh": pt.arccosh,
    "Add": pt.add,
    "And": pt.and_,
    "Asin": pt.arcsin,
    "Asinh": pt.arcsinh,
    "Atan": pt.arctan,
    "Atanh": pt.arctanh,
    "BitwiseAnd": pt.bitwise_and,
    "BitwiseNot": pt.invert,
    "BitwiseOr": pt.bitwise_or,
    "BitwiseXor": pt.bitwise_xor,
    "Ceil": pt.ceil,
    "Cos": pt.cos,
    "Cosh": pt.cosh,
    "Equal": pt.eq,
    "Erf": pt.erf,
    "Exp": pt.exp,
    "Floor": pt.floor,
    "Greater": pt.gt,
    "GreaterOrEqual": pt.ge,
    "IsNaN": pt.isnan,
    "Less": pt.lt,
    "LessOrEqual": pt.le,
    "Log": pt.log,
    "Mul": pt.mul,
    "Neg": pt.neg,
    "Not": pt.invert,
    "Or": pt.or_,
    "Reciprocal": pt.reciprocal,
    "Round": pt.round,
    "Sign": pt.sign,
    "Sin": pt.sin,
    "Sinh": pt.sinh,
    "Sqrt": pt.sqrt,
    "Sub": pt.sub,
    "Tan": pt.tan,
    "Tanh": pt.tanh,
    "Xor": pt.xor,
}
"""Operators that are one function of PyTensor."""


def _applied(function: Callable[..., TensorVariable]) -> Callable[..., TensorVariable]:
    def apply(*operands: TensorVariable) -> TensorVariable:
        return function(*operands)

    return apply


for _operator, _function in _TABLE.items():
    onnx_import(_operator)(_applied(_function))


@onnx_import("Identity")
def identity(x: Any = None) -> Any:
    """Return the operand itself, which may be a sequence, or missing."""
    return x


@onnx_import("Max")
def maximum(*operands: TensorVariable) -> TensorVariable:
    """Compare any number of operands."""
    return reduce(pt.maximum, operands)


@onnx_import("Min")
def minimum(*operands: TensorVariable) -> TensorVariable:
    """Compare any number of operands."""
    return reduce(pt.minimum, operands)


@onnx_import("Sum")
def add_all(*operands: TensorVariable) -> TensorVariable:
    """Add any number of operands."""
    return reduce(pt.add, operands)


@onnx_import("Mean")
def mean_of_operands(*operands: TensorVariable) -> TensorVariable:
    """Average any number of operands."""
    return reduce(pt.add, operands) / like(operands[0], len(operands))


@onnx_import("Div")
def divide(a: TensorVariable, b: TensorVariable) -> TensorVariable:
    """Divide; the quotient of integers is rounded towards zero."""
    kind = np.dtype(a.type.dtype).kind
    if kind == "f":
        return a / b
    if kind == "u":
        return a // b
    quotient = a // b
    is_above = pt.neq(quotient * b, a) & ((a < like(a, 0)) ^ (b < like(b, 0)))
    return quotient + is_above.astype(a.type.dtype)


@onnx_import("Mod")
def modulo(a: TensorVariable, b: TensorVariable, *, fmod: int = 0) -> TensorVariable:
    """Return the remainder: with the sign of the divisor, or by C's ``fmod`` of the dividend."""
    if not fmod or a.type.dtype.startswith("uint"):
        return pt.mod(a, b)
    if a.type.dtype.startswith("int"):
        return a - divide(a, b) * b
    rest = pt.mod(pt.abs(a), pt.abs(b))
    return pt.switch(a < like(a, 0), -rest, rest)


@onnx_import("Pow")
def power(a: TensorVariable, b: TensorVariable) -> TensorVariable:
    """Raise to a power of any dtype, in the dtype of the base."""
    if a.type.dtype.startswith("float"):
        return pt.pow(a, b.astype(a.type.dtype))
    return pt.pow(a, b)


@onnx_import("Clip")
def clip_by_attributes(
    x: TensorVariable, *, min: float = -np.inf, max: float = np.inf
) -> TensorVariable:
    """Bound a number by attributes."""
    return pt.minimum(pt.maximum(x, like(x, min)), like(x, max))


@onnx_import("Clip", since=11)
def clip(
    x: TensorVariable, low: TensorVariable | None = None, high: TensorVariable | None = None
) -> TensorVariable:
    """Bound a number by operands; the upper bound holds where the bounds cross."""
    least, most = (None if v is None else known(v) for v in (low, high))
    if least is not None and most is not None and least.size == most.size == 1 and least <= most:
        return pt.clip(x, low, high)
    if low is not None:
        x = pt.maximum(x, low)
    return x if high is None else pt.minimum(x, high)


@onnx_import("IsInf")
def is_infinite(
    x: TensorVariable, *, detect_negative: int = 1, detect_positive: int = 1
) -> TensorVariable:
    """Find infinities of both signs or of one."""
    infinity = like(x, np.inf)
    if detect_negative and detect_positive:
        return pt.isinf(x)
    if detect_positive:
        return pt.eq(x, infinity)
    return pt.eq(x, -infinity) if detect_negative else pt.zeros_like(x, dtype="bool")


@onnx_import("BitShift")
def bit_shift(x: TensorVariable, amount: TensorVariable, *, direction: str) -> TensorVariable:
    """Shift integers; negative numbers stay negative to the right, all other bits may leave."""
    bits = np.dtype(x.type.dtype).itemsize * 8
    is_inside = (amount >= like(amount, 0)) & (amount < like(amount, bits))
    small = pt.switch(is_inside, amount, like(amount, 0))
    factor = pt.pow(like(x, 2), small).astype(x.type.dtype)
    if direction == "LEFT":
        return pt.switch(is_inside, x * factor, like(x, 0))
    if x.type.dtype.startswith("uint"):
        return pt.switch(is_inside, x // factor, like(x, 0))
    # The highest power is the sign bit, a negative divisor.
    signs = pt.switch(x < like(x, 0), like(x, -1), like(x, 0))
    return pt.switch(is_inside & (factor > like(x, 0)), x // factor, signs)


@onnx_import("BitCast")
def bit_cast(x: TensorVariable, *, to: int) -> TensorVariable:
    """Read the bits of an array in another dtype."""
    if narrow_type(x) is not None or ir.DataType(to) in NARROW:
        raise UnsupportedCase("numbers of few bits are here in wider arrays, with other bits")
    dtype = dtype_name(ir.DataType(to))
    if x.type.dtype == dtype:
        return x
    if dtype == "bool":
        return pt.neq(x, like(x, 0))
    are_integers = {np.dtype(dtype).kind, np.dtype(x.type.dtype).kind} <= set("biu")
    return x.astype(dtype) if are_integers else BitsAs(dtype)(x)


@onnx_import("Cast")
def cast(x: TensorVariable, *, to: int, saturate: int = 1, round_mode: str = "") -> TensorVariable:
    """Convert to a dtype; the other attributes concern 8-bit floats, which PyTensor lacks."""
    return _converted(x, dtype_name(ir.DataType(to)))


@onnx_import("CastLike")
def cast_like(
    x: TensorVariable, target: TensorVariable, *, saturate: int = 1, round_mode: str = ""
) -> TensorVariable:
    """Convert to the dtype of another operand."""
    return _converted(x, target.type.dtype)


def _converted(x: TensorVariable, dtype: str) -> TensorVariable:
    return pt.neq(x, like(x, 0)) if dtype == "bool" != x.type.dtype else x.astype(dtype)


@onnx_import("Constant")
def constant(
    *,
    value: np.ndarray | None = None,
    value_float: float | None = None,
    value_floats: Sequence[float] | None = None,
    value_int: int | None = None,
    value_ints: Sequence[int] | None = None,
) -> TensorVariable:
    """Return the one given value; floats are float32, and integers int64."""
    if value is not None:
        return pt.constant(value)
    floats: Any = value_float if value_floats is None else value_floats
    if floats is not None:
        return pt.constant(np.asarray(floats, dtype="float32"))
    return pt.constant(np.asarray(value_int if value_ints is None else value_ints, dtype="int64"))
