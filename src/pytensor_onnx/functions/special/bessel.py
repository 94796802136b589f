"""Bessel functions of the first kind of the orders 0 and 1."""

import math

import pytensor.tensor as pt
from pytensor.scalar.math import J0, J1
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import (
    add_with_error,
    constant,
    polynomial,
    ratios,
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
from pytensor_onnx.functions.special.coefficients import Coefficients
from pytensor_onnx.functions.special.evaluation import in_float64, where_any
from pytensor_onnx.functions.special.trigonometric import (
    subtract_many_turns,
    subtract_turns,
)

# The first roots, as rounded, and the rest of each.
_ROOT_0 = 2.404825557695773, -1.176691651530894e-16
_ROOT_1 = 3.8317059702075125, -1.5269184090088067e-16
# The last arguments from which quarter turns are subtracted exactly, in one way and another.
_LIMIT, _FAR_LIMIT = 2.0**19, 2.0**39
_INVERSE_ROOT_PI = 0.5641895835477563
_J0_FAR = ((J0_MODULUS_TOP, J0_MODULUS_BOTTOM), (J0_PHASE_TOP, J0_PHASE_BOTTOM))
_J1_FAR = ((J1_MODULUS_TOP, J1_MODULUS_BOTTOM), (J1_PHASE_TOP, J1_PHASE_BOTTOM))


@define(J0)
@in_float64
def j0(x: TensorVariable) -> TensorVariable:
    """Compute the Bessel function of the first kind of order 0; NaN at infinity, as in SciPy.

    Notes
    -----
    A polynomial in ``x**2`` up to 1.5, one around the first root up to 4, and beyond
    ``M(x) cos(x - pi/4 + phi(x))`` with slowly varying functions ``M`` and ``phi`` (DLMF 10.18).
    The error is small beside ``M``, next to roots too. Computed in float64 also for float32.
    """
    a = pt.abs(x)
    half = a * constant(a, 0.5)
    square = half * half
    small = constant(a, 1.0) + square * polynomial(square, J0_SMALL)
    near = _near_root(a, *_ROOT_0, J0_NEAR_ROOT)
    t = _inverse_square(a)
    excess, phase = ratios(t, _J0_FAR)
    modulus = constant(a, _INVERSE_ROOT_PI) + t * excess
    far = modulus / pt.sqrt(a * constant(a, 0.5)) * _shifted_sine(a, phase / a, 1)
    return pt.switch(a > constant(a, 4.0), far, pt.switch(a > constant(a, 1.5), near, small))


@define(J1)
@in_float64
def j1(x: TensorVariable) -> TensorVariable:
    """Bessel function of the first kind of order 1, computed as `j0`."""
    a = pt.abs(x)
    half = x * constant(x, 0.5)
    square = half * half
    small = half * (constant(x, 1.0) + square * polynomial(square, J1_SMALL))
    near = _near_root(a, *_ROOT_1, J1_NEAR_ROOT)
    t = _inverse_square(a)
    excess, phase = ratios(t, _J1_FAR)
    modulus = constant(a, _INVERSE_ROOT_PI) + t * excess
    far = modulus / pt.sqrt(a * constant(a, 0.5)) * _shifted_sine(a, phase / a, -1)
    large = pt.sign(x) * pt.switch(a > constant(a, 5.0), far, near)
    return pt.switch(a > constant(a, 2.0), large, small)


def _near_root(
    a: TensorVariable, root: float, rest: float, coefficients: Coefficients
) -> TensorVariable:
    """Evaluate a polynomial in the distance from a root, times the distance."""
    distance = (a - constant(a, root)) - constant(a, rest)
    return distance * polynomial(distance, coefficients)


def _inverse_square(a: TensorVariable) -> TensorVariable:
    reciprocal = constant(a, 1.0) / a
    return reciprocal * reciprocal


def _shifted_sine(a: TensorVariable, phase: TensorVariable, quarters: float) -> TensorVariable:
    """Sine of ``a + phase + quarters * pi/4`` for a small phase, and an odd number of quarters.

    Half turns are subtracted as in `sin`, and the phase is added exactly. Arguments that are too
    large for that are seldom; beyond the second limit the operators of the runtime answer, with
    errors small beside one.
    """
    half = constant(a, 0.5 * quarters)
    count = pt.round((a + phase) * constant(a, 1 / math.pi) + half * constant(a, 0.5))
    turns = count + count - half
    near = _sine_of_rest(*subtract_turns(a, turns), phase, count)
    far = _sine_of_rest(*subtract_many_turns(a, turns), phase, count)
    sine, cosine = pt.sin(a), pt.cos(a)
    total, difference = sine + cosine, sine - cosine
    turned = total - phase * difference if quarters > 0 else difference + phase * total
    shifted = constant(a, math.sqrt(0.5)) * turned
    far = pt.switch(a > constant(a, _FAR_LIMIT), shifted, far)
    return where_any(a > constant(a, _LIMIT), far, near)


def _sine_of_rest(
    r: TensorVariable, rest: TensorVariable, phase: TensorVariable, count: TensorVariable
) -> TensorVariable:
    """Sine of ``r + rest + phase`` and a count of half turns, for a sum of at most pi/2."""
    one, half = constant(r, 1.0), constant(r, 0.5)
    r, error = add_with_error(r, phase)
    square = r * r
    # The derivative of the sine, roughly.
    slope = one - square * constant(r, 0.4)
    sine = r + ((rest + error) * slope + r * (square * polynomial(square, LONG_SINE)))
    pairs = count * half
    return pt.switch(pt.eq(pairs, pt.floor(pairs)), sine, -sine)
