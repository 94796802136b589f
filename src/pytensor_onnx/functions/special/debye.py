"""Debye's expansions of Bessel functions, uniform in order and argument where both are not small.

The terms ``u_k(p) / v**k`` of DLMF 10.41.9 are polynomials in ``p**2`` times ``(p / v)**k``, so
that they serve small orders too: at order zero they are those of Hankel's expansion.
"""

import math
from fractions import Fraction
from itertools import zip_longest

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.special.arithmetic import constant, horner, split_rows, stacked
from pytensor_onnx.functions.special.evaluation import of_few
from pytensor_onnx.functions.special.inverse_trigonometric import arctan
from pytensor_onnx.functions.special.large_angles import quarter_turns
from pytensor_onnx.functions.special.trigonometric import (
    in_quadrant,
    sine_and_cosine,
    subtract_many_turns,
)

# With so many terms the expansions are exact to 1e-16 where `is_debye` holds.
_TERMS = 11
# The last arguments from which quarter turns are subtracted, and whose squares are finite; and the
# largest quotient of the square of the order by an argument between them, where phases are small.
_FAR, _FARTHEST, _MOST = 2.0**39, 1e150, 100.0


def debye_polynomials(count: int) -> list[tuple[float, ...]]:
    """Coefficients of ``u_k(p) / p**k`` in ``p**2``, by the recurrence of DLMF 10.41.9.

    Examples
    --------
    >>> debye_polynomials(2) == [(1.0,), (1 / 8, -5 / 24)]
    True
    """
    terms = {0: Fraction(1)}
    found = []
    for k in range(count):
        found.append(tuple(float(terms.get(k + 2 * j, 0)) for j in range(k + 1)))
        following: dict[int, Fraction] = {}
        for power, c in terms.items():
            low = c * (Fraction(power, 2) + Fraction(1, 8 * (power + 1)))
            high = c * (Fraction(power, 2) + Fraction(5, 8 * (power + 3)))
            following[power + 1] = following.get(power + 1, Fraction(0)) + low
            following[power + 3] = following.get(power + 3, Fraction(0)) - high
        terms = following
    return found


def debye_sums(
    t: TensorVariable, z: TensorVariable, count: int
) -> tuple[TensorVariable, TensorVariable]:
    """Add the terms of even and of odd index, ``z**(k // 2)`` times the polynomial of ``t``.

    Each operation computes both along a new first axis, which halves their number.
    """
    polynomials = debye_polynomials(count)
    terms = []
    for pair in zip_longest(polynomials[::2], polynomials[1::2], fillvalue=()):
        rows = zip_longest(*pair, fillvalue=0.0)
        terms.append(horner(t[None], [stacked(t, row) for row in rows]))
    even, odd = split_rows(horner(z[None], terms), 2)
    return even, odd


def distance(v: TensorVariable, x: TensorVariable) -> TensorVariable:
    """Return the root of ``|v**2 - x**2|``."""
    return pt.sqrt(pt.abs((v - x) * (v + x)))


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


def debye(
    v: TensorVariable, x: TensorVariable, root: TensorVariable
) -> tuple[TensorVariable, TensorVariable]:
    """Bessel functions of the first and the second kind where `is_debye` holds (DLMF 10.19.3-6).

    ``root`` is that of their exponential growth, which does not overflow before the result:
    ``((v + w) / x)**(v / 2) exp(-w / 2)`` with the `distance` ``w``.
    """
    is_oscillating = x > v
    z = constant(x, 1.0) / ((v - x) * (v + x))
    reciprocal = pt.sqrt(pt.abs(z))
    t = v * v * z
    even, odd = debye_sums(t, z, _TERMS)
    odd = odd * reciprocal
    amplitude = pt.sqrt(constant(x, 2 / math.pi) * reciprocal)

    w = constant(x, 1.0) / reciprocal
    sine, cosine = _waves(v, x, w)
    small = constant(x, 0.5) * amplitude * (even + odd) / root / root
    large = amplitude * (odd - even) * root * root
    first = pt.switch(is_oscillating, amplitude * (cosine * even + sine * odd), small)
    return first, pt.switch(is_oscillating, amplitude * (sine * even - cosine * odd), large)


def _waves(
    v: TensorVariable, x: TensorVariable, w: TensorVariable
) -> tuple[TensorVariable, TensorVariable]:
    """Sine and cosine of ``x + v (2 arctan(s) - s) - pi/2 (v + 1/2)`` for ``s = v / (x + w)``.

    That is ``w - v arccos(v / x) - pi/4``, without the cancellation of large numbers.
    """
    half, turn = constant(x, 0.5), constant(x, math.pi / 2)
    s = pt.minimum(v / (x + w), constant(x, 1.0))
    angle = arctan(s)
    quarters = pt.round(v)
    phase = v * (angle + angle - s) - turn * (v - quarters)
    x, quarters = of_few(x >= constant(x, _FAR), _subtract_quarters, [x, quarters], [])
    turns = pt.round((x + phase) * constant(x, 2 / math.pi) - half)
    r, rest = subtract_many_turns(x, turns + half)
    sine, cosine = sine_and_cosine(r + phase, rest)
    turns = turns - quarters
    one = constant(x, 1.0)
    return in_quadrant(turns, sine, cosine), in_quadrant(turns + one, sine, cosine)


def _subtract_quarters(x: TensorVariable, quarters: TensorVariable) -> list[TensorVariable]:
    """Subtract the nearest number of quarter turns from both."""
    coarse, fine = quarter_turns(x)
    turns = pt.round(coarse)
    return [((coarse - turns) + fine) * constant(x, math.pi / 2), quarters - turns]
