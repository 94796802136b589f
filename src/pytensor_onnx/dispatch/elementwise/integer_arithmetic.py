"""Define division, remainder and power with NumPy's rules for all operands.

ONNX leaves integer division by zero undefined and truncates; a runtime may end the process for it
and for the most negative number divided by minus one. No operand reaches such a division here.
"""

import numpy as np
import onnx_ir as ir

from pytensor_onnx.graph.bounds import never_negative
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.inference import dtype_of


def floor_divide(build: Builder, x: ir.Value, y: ir.Value) -> ir.Value:
    """Return ``x // y`` of two values of one dtype; an integer divided by zero is zero."""
    if x.dtype == ir.DataType.BOOL:
        return build.cast(_unsigned_divide(build, *_as_uint8(build, x, y)), "bool")
    if x.dtype is not None and x.dtype.is_floating_point():
        return build.call("FloorDivide", _float_floor_divide, x, y)
    if _is_safe_divisor(y):
        shift = _shift(x, y)
        if shift is not None:
            return build.BitShift(x, shift, direction="RIGHT")
        return _floor_quotient(build, x, y)
    return build.call("FloorDivide", _integer_floor_divide, x, y)


def floor_modulo(build: Builder, x: ir.Value, y: ir.Value) -> ir.Value:
    """Return ``x % y`` of two values of one dtype; an integer modulo zero is zero."""
    if x.dtype == ir.DataType.BOOL:
        x, y = _as_uint8(build, x, y)
        return build.cast(build.call("FloorModulo", _integer_floor_modulo, x, y), "bool")
    if x.dtype is not None and x.dtype.is_floating_point():
        return build.call("FloorModulo", _float_floor_modulo, x, y)
    if _is_safe_divisor(y):
        return build.Mod(x, y)
    return build.call("FloorModulo", _integer_floor_modulo, x, y)


def integer_power(build: Builder, base: ir.Value, exponent: ir.Value) -> ir.Value:
    """Return an integer power, modulo the range of the dtype.

    A negative exponent, which NumPy refuses, gives the exact quotient rounded towards zero.
    """
    return build.call("Power", _integer_power, base, exponent)


def _as_uint8(build: Builder, *values: ir.Value) -> list[ir.Value]:
    return [build.cast(value, "uint8") for value in values]


def _is_safe_divisor(y: ir.Value) -> bool:
    if y.const_value is None:
        return False
    divisor = y.const_value.numpy()
    return bool(divisor.size and np.all(divisor != 0) and not np.any(divisor == -1))


def _shift(x: ir.Value, y: ir.Value) -> np.ndarray | None:
    """Return n if the constant divisor is 2**n, so that a shift can divide; otherwise None."""
    if x.dtype not in (ir.DataType.UINT8, ir.DataType.UINT32, ir.DataType.UINT64):
        return None
    divisor = y.const_value
    if divisor is None or divisor.size != 1:
        return None
    number = int(divisor.numpy().item())
    if number.bit_count() != 1:
        return None
    return np.full(divisor.numpy().shape, number.bit_length() - 1, dtype_of(x).numpy())


def _is_signed(x: ir.Value) -> bool:
    return x.dtype is not None and x.dtype.is_signed()


def _floor_quotient(build: Builder, x: ir.Value, y: ir.Value) -> ir.Value:
    quotient = build.Div(x, y)
    if not _is_signed(x) or never_negative(x, y):
        return quotient
    remainder = build.Sub(x, build.Mul(quotient, y))
    return build.Sub(quotient, build.cast(_signs_differ(build, remainder, y), dtype_of(x)))


def _unsigned_divide(build: Builder, x: ir.Value, y: ir.Value) -> ir.Value:
    return build.call("FloorDivide", _integer_floor_divide, x, y)


def _safe_divisor(build: Builder, y: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value | None]:
    """Replace the divisors 0 and -1; return masks of both too."""
    is_zero = build.Equal(y, 0)
    if not _is_signed(y):
        return build.Where(is_zero, 1, y), is_zero, None
    is_minus_one = build.Equal(y, -1)
    return build.Where(build.Or(is_zero, is_minus_one), 1, y), is_zero, is_minus_one


def _integer_floor_divide(build: Builder, x: ir.Value, y: ir.Value) -> ir.Value:
    divisor, is_zero, is_minus_one = _safe_divisor(build, y)
    quotient = _floor_quotient(build, x, divisor)
    if is_minus_one is not None:
        quotient = build.Where(is_minus_one, build.Sub(0, x), quotient)
    return build.Where(is_zero, 0, quotient)


def _integer_floor_modulo(build: Builder, x: ir.Value, y: ir.Value) -> ir.Value:
    divisor, is_zero, _ = _safe_divisor(build, y)
    return build.Where(is_zero, 0, build.Mod(x, divisor))


def _float_floor_modulo(build: Builder, x: ir.Value, y: ir.Value) -> ir.Value:
    """Return the remainder of C's ``fmod`` with the sign of the divisor, also for zero."""
    remainder = build.Mod(x, y, fmod=1)
    moved = build.Where(_signs_differ(build, remainder, y), build.Add(remainder, y), remainder)
    size = build.Abs(remainder)
    return build.Where(build.Greater(size, 0), moved, build.Mul(size, build.Sign(y)))


def _float_floor_divide(build: Builder, x: ir.Value, y: ir.Value) -> ir.Value:
    """Divide ``x`` without its remainder, and round as NumPy does.

    A zero has the sign of ``x / y``, which is the result for ``y`` of zero.
    """
    remainder = build.Mod(x, y, fmod=1)
    exact = build.Div(build.Sub(x, remainder), y)
    below = build.cast(_signs_differ(build, remainder, y), dtype_of(y))
    exact = build.Sub(exact, below)
    floor = build.Floor(exact)
    up = build.cast(build.Greater(build.Sub(exact, floor), 0.5), dtype_of(y))
    quotient = build.Div(x, y)
    signed_zero = build.Mul(quotient, 0)
    rounded = build.Where(build.Greater(build.Abs(exact), 0), build.Add(floor, up), signed_zero)
    return build.Where(build.Equal(y, 0), quotient, rounded)


def _signs_differ(build: Builder, x: ir.Value, y: ir.Value) -> ir.Value:
    if y.const_value is not None and np.all(y.const_value.numpy() > 0):
        return build.Less(x, 0)
    return build.Less(build.Mul(build.Sign(x), build.Sign(y)), 0)


def _integer_power(build: Builder, base: ir.Value, exponent: ir.Value) -> ir.Value:
    shape = build.Shape(build.Add(base, exponent))
    one = build.Expand(build.constant(np.ones((), dtype_of(base).numpy())), shape)
    remaining = build.Expand(exponent, shape)
    if _is_signed(exponent):
        remaining = build.Max(remaining, 0)
    result = _square_and_multiply(build, one, build.Expand(base, shape), remaining)
    if not _is_signed(exponent):
        return result
    odd = build.Not(build.Equal(build.BitwiseAnd(exponent, 1), 0))
    sign = build.Where(odd, base, build.Mul(base, base))
    unit = build.Equal(build.Abs(base), 1)
    return build.Where(build.Less(exponent, 0), build.Where(unit, sign, 0), result)


def _square_and_multiply(
    build: Builder, one: ir.Value, base: ir.Value, exponent: ir.Value
) -> ir.Value:
    """Multiply the squares of the base that the bits of the exponent select."""

    def step(
        loop: Builder, i: ir.Value, result: ir.Value, power: ir.Value, rest: ir.Value
    ) -> list[ir.Value]:
        half = loop.Div(rest, 2)
        odd = loop.Sub(rest, loop.Mul(half, 2))
        product = loop.Where(loop.Equal(odd, 0), result, loop.Mul(result, power))
        return [_any_above_zero(loop, half), product, loop.Mul(power, power), half]

    return build.loop(None, _any_above_zero(build, exponent), [one, base, exponent], step)[0]


def _any_above_zero(build: Builder, x: ir.Value) -> ir.Value:
    largest = build.ReduceMax(build.cast(build.Greater(x, 0), "int32"), keepdims=0)
    return build.Greater(largest, 0)
