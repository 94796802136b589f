"""Bessel functions of large arguments or orders, by Hankel's and Debye's expansions."""

import math

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.special.arithmetic import constant
from pytensor_onnx.functions.special.debye import debye_sums
from pytensor_onnx.functions.special.debye_exponent import decay
from pytensor_onnx.functions.special.inverse_trigonometric import arctan
from pytensor_onnx.functions.special.large_angles import quarter_turns
from pytensor_onnx.functions.special.trigonometric import (
    in_quadrant,
    sine_and_cosine,
    subtract_many_turns,
)
from pytensor_onnx.functions.special.wide_evaluation import of_few, where_any

# With so many terms Debye's expansions are exact to 1e-16 where `is_debye` holds, and Hankel's to
# 6e-17 from this argument on.
_DEBYE_TERMS, _HANKEL_TERMS, _HANKEL = 11, 29, 21.0
# Arguments from which quarter turns are subtracted first, where Debye's expansions end, as squares
# of arguments must be finite, and where Hankel's end, as six times an argument must be less than
# the square of the largest order of `jv`.
_FAR, _FARTHEST, _LAST = 2.0**39, 1e150, 1e300
# The largest quotient of the square of the order by an argument beyond `_FAR`, where phases are
# small.
_MOST = 100.0


def is_hankel(v: TensorVariable, x: TensorVariable) -> TensorVariable:
    """Tell where Hankel's expansion serves, whose terms are at most 4.5."""
    is_large = (x >= constant(x, _HANKEL)) & (x < constant(x, _LAST))
    return is_large & (v * v <= constant(x, 6.0) * x)


def is_debye(v: TensorVariable, x: TensorVariable) -> TensorVariable:
    """Tell where the first term that is left out is negligible, for ``v >= 0`` and ``x >= 0``.

    The k-th term is about ``gamma(k) / (2 pi (2 F)**k)``, where ``F`` is the phase or the exponent.
    That is about 50 or more here: with ``w**2 = |v**2 - x**2|`` at least ``5 w**3 / (15 v**2 +
    9 w**2)`` where the functions oscillate, and ``w**3 / (3 v**2)`` elsewhere.
    """
    w = distance(v, x)
    ratio = v / w
    is_small = (x < constant(x, _FARTHEST)) & (v * v < constant(x, _MOST) * x)
    is_exact = w - constant(w, 60.0) > constant(w, 150.0) * ratio * ratio
    return is_exact & (is_small | (x < constant(x, _FAR)))


def distance(v: TensorVariable, x: TensorVariable) -> TensorVariable:
    """Return the root of ``|v**2 - x**2|``."""
    return pt.sqrt(pt.abs((v - x) * (v + x)))


def expansions(
    v: TensorVariable, x: TensorVariable, by_hankel: TensorVariable, by_debye: TensorVariable
) -> tuple[TensorVariable, TensorVariable]:
    """Bessel functions of the first and the second kind, by Hankel's or else Debye's expansion.

    That is DLMF 10.17.3-4, or 10.19.3-6.
    """
    one, half = constant(x, 1.0), constant(x, 0.5)
    z = one / ((v - x) * (v + x))
    w = pt.sqrt(pt.abs(one / z))
    even, odd = debye_sums(v * v * z, z, _DEBYE_TERMS)
    sums = zip(_hankel_sums(v, x), (even, odd / w), strict=True)
    even, odd = (pt.switch(by_hankel, of, other) for of, other in sums)
    amplitude = pt.sqrt(constant(x, 2 / math.pi) / pt.switch(by_hankel, x, w))

    sine, cosine = _waves(v, x, w, by_hankel)
    is_oscillating = x > v
    root = where_any(by_debye & ~is_oscillating, decay(v, x, w).root, w)
    small = half * amplitude * (even + odd) * root * root
    large = amplitude * (odd - even) / root / root
    first = pt.switch(is_oscillating, amplitude * (cosine * even + sine * odd), small)
    return first, pt.switch(is_oscillating, amplitude * (sine * even - cosine * odd), large)


def _hankel_sums(v: TensorVariable, x: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """Real and imaginary part of ``1 + i t(1) (1 + i t(2) (1 + ...))`` (DLMF 10.17.1).

    Here ``t(k) = ((2 k - 1)**2 - 4 v**2) / (8 k x)``.
    """

    def step(
        first: TensorVariable,
        second: TensorVariable,
        real: TensorVariable,
        imaginary: TensorVariable,
        square: TensorVariable,
        reciprocal: TensorVariable,
    ) -> list[TensorVariable]:
        t = (first - second * square) * reciprocal
        return [constant(t, 1.0) - t * imaginary, t * real]

    k = np.arange(_HANKEL_TERMS - 1, 0, -1.0)
    sequences = [pt.constant((2 * k - 1) ** 2 / (8 * k)), pt.constant(0.5 / k)]
    start = [pt.ones_like(x), pt.zeros_like(x)]
    real, imaginary = iterate(
        step, start, [v * v, constant(x, 1.0) / x], sequences=sequences, n_steps=len(k)
    )
    return real, imaginary


def _waves(
    v: TensorVariable, x: TensorVariable, w: TensorVariable, by_hankel: TensorVariable
) -> tuple[TensorVariable, TensorVariable]:
    """Sine and cosine of ``x + v (2 arctan(s) - s) - pi/2 (v + 1/2)`` for ``s = v / (x + w)``.

    That is ``w - v arccos(v / x) - pi/4``, without the cancellation of large numbers. Hankel's
    expansion is without the second term.
    """
    half, turn = constant(x, 0.5), constant(x, math.pi / 2)
    s = pt.minimum(v / (x + w), constant(x, 1.0))
    angle = arctan(s)
    moved = pt.switch(by_hankel, constant(x, 0.0), v * (angle + angle - s))
    quarters = pt.round(v)
    phase = moved - turn * (v - quarters)
    x, quarters = of_few(x >= constant(x, _FAR), _subtract_quarters, [x, quarters], [])
    turns = pt.round((x + phase) * constant(x, 2 / math.pi) - half)
    r, rest = subtract_many_turns(x, turns + half)
    sine, cosine = sine_and_cosine(r + phase, rest)
    turns = turns - quarters
    one = constant(x, 1.0)
    return in_quadrant(turns, sine, cosine), in_quadrant(turns + one, sine, cosine)


def _subtract_quarters(x: TensorVariable, quarters: TensorVariable) -> list[TensorVariable]:
    """Subtract the nearest number of quarter turns from both, and whole turns."""
    coarse, fine = quarter_turns(x)
    turns, four = pt.round(coarse), constant(x, 4.0)
    # Numbers of quarters from 2**53 on would swallow the turns.
    quarters = quarters - four * pt.floor(quarters / four)
    return [((coarse - turns) + fine) * constant(x, math.pi / 2), quarters - turns]
