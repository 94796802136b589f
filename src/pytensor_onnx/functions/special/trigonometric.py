"""Trigonometric and hyperbolic functions and their inverses."""

import math
from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.scalar.basic import (
    ArcCos,
    ArcCosh,
    ArcSin,
    ArcSinh,
    ArcTan,
    ArcTan2,
    ArcTanh,
    Cos,
    Cosh,
    Sin,
    Sinh,
    Tan,
    Tanh,
)
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import (
    add_with_error,
    constant,
    is_positive,
    polynomial,
    upper_half,
)
from pytensor_onnx.functions.special.coefficients import (
    ARCSIN_BOTTOM,
    ARCSIN_TOP,
    ARCTAN_BOTTOM,
    ARCTAN_TOP,
    COSINE,
    HALF_COTH,
    SINE,
    SINH,
)
from pytensor_onnx.functions.special.exponential import log1p, times_exponential

# pi/2 in three parts of 33 bits, whose products with a count of quarter turns below 2^20 are exact,
# and a fourth with what remains.
HALF_PI = (
    1.5707963267341256,
    6.077100506303966e-11,
    2.0222662487111665e-21,
    8.4784276603689e-32,
)
# The last argument that is reduced here; beyond it the runtime's own operators serve.
_LIMIT = 2.0**20


class Reduced(NamedTuple):
    """A count of quarter turns, with the sine and cosine of what they leave of the argument."""

    turns: TensorVariable
    sine: TensorVariable
    cosine: TensorVariable


@define(Sin)
def sin(x: TensorVariable) -> TensorVariable:
    """Sine.

    Notes
    -----
    The float32 operator is within 2.5 ulp everywhere and stands for itself. That of float64 is not
    below 15, where ONNX Runtime is off by 5e-16 next to the zeros and may lose all digits. Here the
    argument is reduced as in `_reduce` up to ``2**20``; beyond, the operator answers (3 ulp).
    """
    if x.dtype == "float32":
        return pt.sin(x)
    reduced = _reduce(x)
    value = in_quadrant(reduced.turns, reduced.sine, reduced.cosine)
    return pt.switch(_is_reducible(x), value, pt.sin(x))


@define(Cos)
def cos(x: TensorVariable) -> TensorVariable:
    """Cosine, with the remarks of `sin`."""
    if x.dtype == "float32":
        return pt.cos(x)
    reduced = _reduce(x)
    value = in_quadrant(reduced.turns + constant(x, 1.0), reduced.sine, reduced.cosine)
    return pt.switch(pt.abs(x) <= constant(x, _LIMIT), value, pt.cos(x))


@define(Tan)
def tan(x: TensorVariable) -> TensorVariable:
    """Tangent as sine over cosine, with the remarks of `sin`.

    In float64 beyond ``2**20`` the quotient of the runtime's operators is off by up to 5 ulp.
    """
    if x.dtype == "float32":
        return pt.tan(x)
    turns, sine, cosine = _reduce(x)
    half = turns * constant(x, 0.5)
    even = pt.eq(half, pt.floor(half))
    value = pt.switch(even, sine, -cosine) / pt.switch(even, cosine, sine)
    return pt.switch(_is_reducible(x), value, pt.sin(x) / pt.cos(x))


def _is_reducible(x: TensorVariable) -> TensorVariable:
    """Tell where `_reduce` is right: at most at the limit, and not at -0.0, which becomes +0.0."""
    a = pt.abs(x)
    return (a <= constant(x, _LIMIT)) & (a > constant(x, 0.0))


def _reduce(x: TensorVariable) -> Reduced:
    """Reduce x by multiples of pi/2 and evaluate sine and cosine of the remainder, at most pi/4."""
    turns = pt.round(x * constant(x, 0.6366197723675814))
    return Reduced(turns, *sine_and_cosine(*subtract_turns(x, turns)))


def subtract_turns(
    x: TensorVariable, turns: TensorVariable
) -> tuple[TensorVariable, TensorVariable]:
    """Subtract ``turns * pi/2``, for ``turns`` of at most 20 bits, with the rounding error of that.

    The parts of pi/2 are subtracted one after the other (W. J. Cody and W. Waite, Software Manual
    for the Elementary Functions, 1980, chapter 8), each rounding error being kept as in T. J.
    Dekker's sum (Numer. Math. 18 (1971) 224-242): the remainder has twice the working precision.
    """
    first, second, third, fourth = (constant(x, part) for part in HALF_PI)
    a = x - turns * first
    subtrahend = turns * second
    b = a - subtrahend
    b_rest = (a - b) - subtrahend
    subtrahend = turns * third
    r = b - subtrahend
    r_rest = (b - r) - subtrahend
    return r, (b_rest + r_rest) - turns * fourth


def subtract_many_turns(
    x: TensorVariable, turns: TensorVariable
) -> tuple[TensorVariable, TensorVariable]:
    """Subtract ``turns * pi/2`` as `subtract_turns` for up to ``2**39`` turns, or odd halves.

    The turns are split at ``2**19``, so that their products with the parts of pi/2 are exact.
    """
    unit = constant(x, 2.0**19)
    upper = pt.round(turns / unit) * unit
    lower = turns - upper
    first, second, third, fourth = (constant(x, part) for part in HALF_PI)
    r = (x - upper * first) - lower * first
    rest = turns * -fourth
    for part in (second, third):
        for count in (upper, lower):
            r, error = add_with_error(r, count * -part)
            rest = rest + error
    return r, rest


def sine_and_cosine(
    r: TensorVariable, rest: TensorVariable
) -> tuple[TensorVariable, TensorVariable]:
    """Evaluate sine and cosine of ``r + rest``, of at most pi/4 and a negligible part of it."""
    one, half = constant(r, 1.0), constant(r, 0.5)
    square = r * r
    sine = r + (rest + r * (square * polynomial(square, SINE)))
    cosine = one - (half * square - (square * square * polynomial(square, COSINE) - r * rest))
    return sine, cosine


def in_quadrant(
    turns: TensorVariable, sine: TensorVariable, cosine: TensorVariable
) -> TensorVariable:
    """Sine of an angle from its quarter turns and the sine and cosine of the remainder."""
    half = turns * constant(turns, 0.5)
    pairs = pt.floor(half)
    value = pt.switch(pt.eq(half, pairs), sine, cosine)
    half_pairs = pairs * constant(turns, 0.5)
    return pt.switch(pt.eq(half_pairs, pt.floor(half_pairs)), value, -value)


# The hexadecimal digits of 2/pi after the point; six of them are one digit to the base 2**24.
_DIGITS = (
    "a2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abdebbc561b7246e3a"
    "424dd2e006492eea09d1921cfe1deb1cb129a73ee88235f52ebb4484e99c7026b45f7e41"
    "3991d639835339f49c845f8bbdf9283b1ff897ffde05980fef2f118b5a0a6d1f6d367ecf"
    "27cb09b74f463f669e5fea2d7527bac7ebe5f17b3d0739f78a5292ea6bfb5fb11f8d5d08"
)
_BITS, _COUNT = 24, 7
# An angle is scaled by 2**-24 until its last place is at least 4, so that it is below 2**80.
_SCALED = 55
_LAST = (1024 - _SCALED) // _BITS


def _table() -> np.ndarray:
    """Return rows of digits with their weights, and the scale of an angle before them."""
    digits = [int(_DIGITS[start : start + 6], 16) for start in range(0, len(_DIGITS), 6)]
    weights = 2.0 ** (-_BITS * np.arange(1, _COUNT + 1))
    rows = [[*(digits[j : j + _COUNT] * weights), 2.0 ** (-_BITS * j)] for j in range(_LAST + 1)]
    return np.array(rows).T


def quarter_turns(x: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """Return ``2/pi x``, less a multiple of 4, for a vector of positive float64 numbers.

    It is the sum of a multiple of ``2**-24`` of at most 30, and a small rest. Digits whose products
    with a scaled angle are multiples of 4 are left out; the products of others with its upper and
    lower half are exact. The error is below ``2**-77``.
    """
    logarithm = pt.log(x) * constant(x, 1 / np.log(2))
    place = pt.floor((logarithm - constant(x, _SCALED)) * constant(x, 1 / _BITS))
    place = pt.clip(place, constant(x, 0.0), constant(x, _LAST)).astype("int64")
    digits, scale = pt.split(pt.constant(_table())[:, place], [_COUNT, 1], n_splits=2, axis=0)
    scaled = x * scale
    upper = upper_half(scaled)
    products = pt.concatenate([digits * upper, digits * (scaled - upper)])
    four, unit = constant(x, 4.0), constant(x, 2.0**_BITS)
    products = products - pt.round(products / four) * four
    coarse = pt.round(products * unit) / unit
    return pt.sum(coarse, axis=0), pt.sum(products - coarse, axis=0)


# Rounding error of pi/2.
_HALF_PI_REST = {"float64": 6.123233995736766e-17, "float32": -4.371139000186241e-08}


@define(ArcSin)
def arcsin(x: TensorVariable) -> TensorVariable:
    """Inverse sine; beyond one half, ``pi/2 - 2 arcsin(sqrt((1 - |x|) / 2))``."""
    a = pt.abs(x)
    large = a > constant(x, 0.5)
    reduced = pt.switch(large, _half_angle(a), x)
    angle = reduced + _arcsin_excess(reduced)
    high, rest = _half_pi(x)
    far = pt.sign(x) * (high - (angle + angle - rest))
    return pt.switch(large, far, angle)


@define(ArcCos)
def arccos(x: TensorVariable) -> TensorVariable:
    """Inverse cosine; beyond one half, by ``2 arcsin(sqrt((1 - |x|) / 2))``."""
    a = pt.abs(x)
    large = a > constant(x, 0.5)
    reduced = pt.switch(large, _half_angle(a), x)
    excess = _arcsin_excess(reduced)
    high, rest = _half_pi(x)
    near = high - (reduced - (rest - excess))
    angle = reduced + excess
    right = angle + angle
    left = (high + high) - (right - (rest + rest))
    return pt.switch(large, pt.switch(x < constant(x, 0.0), left, right), near)


@define(ArcTan)
def arctan(x: TensorVariable) -> TensorVariable:
    """Inverse tangent; beyond one, ``pi/2 - arctan(1 / |x|)``."""
    a = pt.abs(x)
    one = constant(x, 1.0)
    large = a > one
    angle = _arctan_to_one(pt.switch(large, one / a, x))
    high, rest = _half_pi(x)
    return pt.switch(large, pt.sign(x) * (high - (angle - rest)), angle)


@define(ArcTan2)
def arctan2(y: TensorVariable, x: TensorVariable) -> TensorVariable:
    """Angle of the point ``(x, y)``, with the signs of zeros and infinities heeded.

    Notes
    -----
    The angle in the first octant, ``arctan(min / max)`` of the absolute values, is reflected into
    the octant of the point. Equal values are set aside for the sake of 0/0 and inf/inf.
    """
    a, b = pt.abs(y), pt.abs(x)
    steep = a > b
    ratio = pt.switch(steep, b, a) / pt.switch(steep, a, b)
    ratio = pt.switch(pt.eq(a, b), pt.sign(a), ratio)
    angle = _arctan_to_one(ratio)
    high, rest = _half_pi(x)
    angle = pt.switch(steep, high - (angle - rest), angle)
    angle = pt.switch(is_positive(x), angle, (high + high) - (angle - (rest + rest)))
    return pt.switch(is_positive(y), angle, -angle)


def _half_pi(x: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """``pi/2`` as the sum of its rounded value and the rest."""
    return constant(x, math.pi / 2), constant(x, _HALF_PI_REST[x.dtype])


def _half_angle(a: TensorVariable) -> TensorVariable:
    """``sqrt((1 - a) / 2)``: the sine of half the angle whose cosine is ``a``."""
    return pt.sqrt((constant(a, 1.0) - a) * constant(a, 0.5))


def _arcsin_excess(x: TensorVariable) -> TensorVariable:
    """``arcsin(x) - x`` for ``|x| <= 1/2``, by a rational function of ``x**2``."""
    square = x * x
    return x * (square * polynomial(square, ARCSIN_TOP) / polynomial(square, ARCSIN_BOTTOM))


def _arctan_to_one(x: TensorVariable) -> TensorVariable:
    """``arctan(x)`` for ``|x| <= 1``, by a rational function of ``x**2``.

    It multiplies, since the negative excess over ``x`` would turn -0.0 into +0.0 in a sum.
    """
    square = x * x
    excess = square * polynomial(square, ARCTAN_TOP) / polynomial(square, ARCTAN_BOTTOM)
    return x * (constant(x, 1.0) + excess)


@define(Sinh)
def sinh(x: TensorVariable) -> TensorVariable:
    """Hyperbolic sine: a polynomial for ``|x| <= 1``, exponentials beyond."""
    square = x * x
    near = x + x * square * polynomial(square, SINH)
    growing, decaying = _halved_exponentials(x)
    far = pt.sign(x) * (growing - decaying)
    return pt.switch(pt.abs(x) > constant(x, 1.0), far, near)


@define(Cosh)
def cosh(x: TensorVariable) -> TensorVariable:
    """Hyperbolic cosine: the mean of ``exp(x)`` and ``exp(-x)``."""
    growing, decaying = _halved_exponentials(x)
    return growing + decaying


@define(Tanh)
def tanh(x: TensorVariable) -> TensorVariable:
    """Hyperbolic tangent.

    Notes
    -----
    In float64 ``tanh(x) = 2 t / (1 + t**2)`` with ``t = tanh(x/2)`` (DLMF 4.35.28), whose slope
    in ``t`` vanishes at ``t = 1``. So the result is within 2.1 ulp where ONNX Runtime's operator is
    up to 7 ulp off, and within 3.5 ulp below 0.55. The last subnormal number becomes zero.

    In float32 the operator drops subnormal numbers, and ``tanh(x) = x / (x coth(x))`` with
    ``x coth(x)`` a polynomial in ``(2x)**2``. Beyond 0.55, where the result is at least one half,
    the subtraction in ``1 - 2 / (exp(2|x|) + 1)`` loses nothing.
    """
    one, two, half = (constant(x, number) for number in (1.0, 2.0, 0.5))
    if x.dtype == "float64":
        t = pt.tanh(half * x)
        return (t + t) / (one + t * t)
    size, double = pt.abs(x), x + x
    square = double * double
    near = x / (one + half * square * polynomial(square, HALF_COTH))
    far = pt.sign(x) * (one - two / (pt.exp(size + size) + one))
    return pt.switch(size > constant(x, 0.55), far, near)


def _halved_exponentials(x: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """``exp(|x|) / 2`` and ``exp(-|x|) / 2``.

    The exponent is lowered by 13/16, for ``exp(|x|)`` would overflow 0.69 before its half does.
    The subtraction is exact where it matters, and ``exp(13/16) / 2`` happens to lie within 0.002
    ulp of a float64 and 0.03 ulp of a float32.
    """
    # At the bound half of the exponential is infinite, and infinity would make NaN.
    size = pt.minimum(pt.abs(x), constant(x, 710.5, float32=89.5))
    growing = times_exponential(constant(x, 1.1267673936066043), size - constant(x, 0.8125))
    return growing, constant(x, 0.25) / growing


@define(ArcSinh)
def arcsinh(x: TensorVariable) -> TensorVariable:
    """``sign(x) * log(|x| + sqrt(x**2 + 1))`` as ``log1p(|x| + x**2 / (1 + sqrt(1 + x**2)))``."""
    one = constant(x, 1.0)
    a = pt.abs(x)
    square = x * x
    value = _log1p_of_sum(a, a + square / (one + pt.sqrt(one + square)))
    return pt.switch(a > constant(x, 0.0), pt.sign(x) * value, x)


@define(ArcCosh)
def arccosh(x: TensorVariable) -> TensorVariable:
    """``log(x + sqrt(x**2 - 1))`` as ``log1p(t + sqrt(t (t + 2)))`` with ``t = x - 1``."""
    t = x - constant(x, 1.0)
    value = _log1p_of_sum(x, t + pt.sqrt(t * (t + constant(x, 2.0))))
    return pt.switch(t < constant(x, 0.0), constant(x, float("nan")), value)


@define(ArcTanh)
def arctanh(x: TensorVariable) -> TensorVariable:
    """``log((1 + x) / (1 - x)) / 2`` as ``log1p(2a / (1 - a)) / 2`` with ``a = |x|``."""
    a = pt.abs(x)
    value = constant(x, 0.5) * log1p((a + a) / (constant(x, 1.0) - a))
    return pt.switch(a > constant(x, 0.0), pt.sign(x) * value, x)


def _log1p_of_sum(a: TensorVariable, argument: TensorVariable) -> TensorVariable:
    """``log1p(argument)``, or ``log(2 a)`` where ``a`` is so large that ``1 + a`` is ``a``."""
    large = a > constant(a, 2.0**54, float32=2.0**25)
    log_two = constant(a, 0.6931471805599453)
    return log1p(pt.switch(large, a, argument)) + pt.switch(large, log_two, constant(a, 0.0))
