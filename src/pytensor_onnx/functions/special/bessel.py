"""Bessel functions of the first kind of the orders 0 and 1."""

import math
from collections.abc import Sequence

import pytensor.tensor as pt
from pytensor.scalar.math import J0, J1
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import (
    constant,
    polynomial,
    polynomials,
)
from pytensor_onnx.functions.special.bessel_coefficients import (
    J0_MODULUS_BOTTOM,
    J0_MODULUS_TOP,
    J0_NEAR_ROOT,
    J0_PHASE_BOTTOM,
    J0_PHASE_TOP,
    J0_SMALL,
    J1_MODULUS_BOTTOM,
    J1_MODULUS_TOP,
    J1_NEAR_ROOT,
    J1_PHASE_BOTTOM,
    J1_PHASE_TOP,
    J1_SMALL,
    LONG_SINE,
)
from pytensor_onnx.functions.special.large_angles import quarter_turns
from pytensor_onnx.functions.special.trigonometric import HALF_PI, subtract_many_turns
from pytensor_onnx.functions.special.wide_evaluation import (
    in_float64,
    of_few,
    where_any,
    with_an_axis,
)

# The first roots, as rounded, and the rest of each.
_ROOT_0 = 2.404825557695773, -1.176691651530894e-16
_ROOT_1 = 3.8317059702075125, -1.5269184090088067e-16
# The last arguments from which quarter turns are subtracted exactly, in one way and another.
_LIMIT, _FAR_LIMIT = 2.0**19, 2.0**39
_INVERSE_ROOT_PI = 0.5641895835477563
# Polynomials of one length: numerators and denominators of modulus and phase in the inverse square,
# one around zero in the square, and even and odd powers around the first root in the square of the
# distance from it.
_J0_TABLES = (J0_MODULUS_TOP, J0_PHASE_TOP, J0_MODULUS_BOTTOM, J0_PHASE_BOTTOM, J0_SMALL)
_J1_TABLES = (J1_MODULUS_TOP, J1_PHASE_TOP, J1_MODULUS_BOTTOM, J1_PHASE_BOTTOM, J1_SMALL)
_J0_ROWS = [table["float64"] for table in _J0_TABLES]
_J0_ROWS += [J0_NEAR_ROOT["float64"][parity::2] for parity in (0, 1)]
_J1_ROWS = [table["float64"] for table in _J1_TABLES]
_J1_ROWS += [J1_NEAR_ROOT["float64"][parity::2] for parity in (0, 1)]


@define(J0)
@in_float64
@with_an_axis
def j0(x: TensorVariable) -> TensorVariable:
    """Compute the Bessel function of the first kind of order 0; NaN at infinity, as in SciPy.

    Notes
    -----
    A polynomial in ``x**2`` up to 1.5, one around the first root up to 4, and beyond
    ``M(x) cos(x - pi/4 + phi(x))`` with slowly varying functions ``M`` and ``phi`` (DLMF 10.18).
    The error is small beside ``M``, next to roots too. Computed in float64 also for float32.
    """
    a = pt.abs(x)
    small, near, modulus, phase = _parts(a, _ROOT_0, _J0_ROWS)
    far = modulus * _shifted_sine(a, phase, 1)
    near = pt.switch(a > constant(a, 1.5), near, constant(a, 1.0) + small)
    return pt.switch(a > constant(a, 4.0), far, near)


@define(J1)
@in_float64
@with_an_axis
def j1(x: TensorVariable) -> TensorVariable:
    """Bessel function of the first kind of order 1, computed as `j0`."""
    a = pt.abs(x)
    small, near, modulus, phase = _parts(a, _ROOT_1, _J1_ROWS)
    far = modulus * _shifted_sine(a, phase, -1)
    small = (constant(a, 1.0) + small) * (x * constant(x, 0.5))
    large = pt.sign(x) * pt.switch(a > constant(a, 5.0), far, near)
    return pt.switch(a > constant(a, 2.0), large, small)


def _parts(
    a: TensorVariable, root: tuple[float, float], rows: Sequence[Sequence[float]]
) -> list[TensorVariable]:
    """Return the excess around zero, the values around the first root, modulus and phase."""
    half = a * constant(a, 0.5)
    square = half * half
    distance = (a - constant(a, root[0])) - constant(a, root[1])
    reciprocal = constant(a, 1.0) / a
    t, distance_square = reciprocal * reciprocal, distance * distance
    points = [t, t, t, t, square, distance_square, distance_square]
    excess, phase, below, below_phase, small, even, odd = polynomials(points, rows)
    near = distance * (even + distance * odd)
    modulus = (constant(a, _INVERSE_ROOT_PI) + t * (excess / below)) / pt.sqrt(half)
    return [square * small, near, modulus, phase / (below_phase * a)]


def _shifted_sine(a: TensorVariable, phase: TensorVariable, quarters: float) -> TensorVariable:
    """Sine of ``a + phase + quarters * pi/4`` for a small phase, and an odd number of quarters.

    Half turns are subtracted in parts, multiples of the parts of pi/2; the last part joins the
    phase. Arguments that are too large for that are seldom; beyond the second limit
    `quarter_turns` answers, with errors small beside one.
    """
    half = constant(a, 0.5 * quarters)
    count = pt.round((a + phase) * constant(a, 1 / math.pi) + half * constant(a, 0.5))
    turns = count + count - half
    first, second, third = (constant(a, part) for part in HALF_PI[:3])
    # Next to a root, where the sum vanishes, it is exact.
    near = _sine_of_rest((a - turns * first) - turns * second, phase - turns * third, count)
    r, rest = subtract_many_turns(a, turns)
    far = _sine_of_rest(r, phase + rest, count)
    [far] = of_few(
        a > constant(a, _FAR_LIMIT),
        lambda _, a, phase: [_sine_of_large(a, phase, quarters)],
        [far],
        [a, phase],
    )
    return where_any(a > constant(a, _LIMIT), far, near)


def _sine_of_large(a: TensorVariable, phase: TensorVariable, quarters: float) -> TensorVariable:
    coarse, fine = quarter_turns(a)
    half = constant(a, 0.5)
    turns = coarse + constant(a, 0.5 * quarters)
    count = pt.round(turns * half)
    r = ((turns - (count + count)) + fine) * constant(a, math.pi / 2)
    return _sine_of_rest(r, phase, count)


def _sine_of_rest(r: TensorVariable, rest: TensorVariable, count: TensorVariable) -> TensorVariable:
    """Sine of ``r + rest`` and a count of half turns, for a sum of at most pi/2."""
    r = r + rest
    square = r * r
    sine = r + r * (square * polynomial(square, LONG_SINE))
    pairs = count * constant(r, 0.5)
    return pt.switch(pt.eq(pairs, pt.floor(pairs)), sine, -sine)
