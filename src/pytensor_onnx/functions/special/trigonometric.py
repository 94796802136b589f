"""Sine, cosine and tangent, with a careful reduction of the argument in float64."""

from typing import NamedTuple

import pytensor.tensor as pt
from pytensor.scalar.basic import Cos, Sin, Tan
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import add_with_error, constant, polynomial
from pytensor_onnx.functions.special.coefficients import COSINE, SINE

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
