"""Special functions of complex numbers."""

import math

import numpy as np
import pytensor.tensor as pt
from pytensor.scalar.math import erf as scalar_erf, gamma as scalar_gamma, psi as scalar_psi
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.complex import complex_arithmetic
from pytensor_onnx.functions.complex.complex_arithmetic import (
    PairOfParts,
    Parts,
    chosen,
    is_finite,
    of_complex,
    quotient,
)
from pytensor_onnx.functions.complex.elementary import log
from pytensor_onnx.functions.special.arithmetic import constant
from pytensor_onnx.functions.special.psi import is_even, sine_pi

# The gamma function of complex numbers and the derivative of its logarithm.
#
# Stirling's series serves all numbers, after ten steps of the recurrence near the origin and the
# reflection on the left (DLMF 5.5 and 5.11).

_RADIUS = 10.0
"""Absolute value from which ten terms of the series are exact in float64, for positive parts."""
# B(2k) / (2k), from k = 1 on; B are Bernoulli's numbers.
_PSI_SERIES = (
    *(1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12),
    *(-3617 / 8160, 43867 / 14364, -174611 / 6600),
)
_GAMMA_SERIES = tuple(value / (2 * k - 1) for k, value in enumerate(_PSI_SERIES, 1))
# k (9 - k) for the pairs of factors z + k and z + 9 - k, whose product is z (z + 9) more.
_STEPS = (0.0, 8.0, 14.0, 18.0, 20.0)
_LARGEST = 1e300
"""Bound of parts, whose products with logarithms are finite; gamma is zero or infinite there."""
_LARGEST_EXPONENT = 700.0
"""Bound of half the exponent of gamma: its exponential is finite, and the square infinite."""
_EXACT_HYPERBOLIC = 8.0
"""Argument from which ``coth(pi y)`` is one in float64."""
_LEAST_IMAGINARY = 16.0
"""Imaginary part from which SciPy gives psi a limit at minus infinity."""


@of_complex(scalar_gamma.impl, "ComplexGamma")
def gamma(x: TensorVariable, y: TensorVariable) -> complex_arithmetic.PairOfParts:
    """Return the gamma function, computed in float64; NaN at poles and for infinite parts.

    The error relative to the absolute value is that of the exponent: below 2e-14 for ``|z| < 10``,
    1e-13 for ``|z| < 50``, and ``5e-16 |z log(z)|`` beyond. Real numbers have the results of the
    real function.

    Examples
    --------
    >>> [round(v.eval().item(), 6) for v in gamma(pt.constant(1.0), pt.constant(2.0))]
    [0.151904, 0.019805]
    """
    dtype = x.type.dtype
    z = Parts(pt.cast(x, "float64"), pt.cast(y, "float64"))
    largest = pt.constant(_LARGEST, dtype="float64")
    bounded = Parts(*(pt.clip(part, -largest, largest) for part in z))
    is_left, right = _reflected(bounded)
    product, _, far = _recurrence(right)
    exponent = _stirling_exponent(far)
    angle = math.pi * pt.abs(bounded.imag)
    exponent = chosen(is_left, Parts(-exponent.real - angle, -exponent.imag), exponent)
    one = Parts(pt.ones_like(x, dtype="float64"), pt.zeros_like(x, dtype="float64"))
    sine = _scaled_sine(bounded)
    factor = quotient(chosen(is_left, product, one), chosen(is_left, sine, product))
    # The two factors of the exponential are finite where their product with the rest is.
    root = pt.exp(pt.minimum(0.5 * exponent.real, _LARGEST_EXPONENT))
    turned = factor * Parts(root * pt.cos(exponent.imag), root * pt.sin(exponent.imag))
    is_real = pt.eq(z.imag, 0.0)
    real = pt.switch(is_real, pt.gamma(z.real), turned.real * root)
    imag = pt.switch(is_real, z.imag, turned.imag * root)
    is_defined = is_finite(z.real) & is_finite(z.imag) & ~_is_pole(z)
    return tuple(pt.cast(pt.switch(is_defined, part, np.nan), dtype) for part in (real, imag))


@of_complex(scalar_psi.impl, "ComplexPsi")
def psi(x: TensorVariable, y: TensorVariable) -> complex_arithmetic.PairOfParts:
    """Return the derivative of the logarithm of the gamma function, computed in float64.

    The error is a few units in the last place of the function or of one, whichever is larger; real
    numbers have the accuracy of the real function. Poles give NaN, infinite parts the limits of the
    logarithm.

    Examples
    --------
    >>> [round(v.eval().item(), 6) for v in psi(pt.constant(1.0), pt.constant(2.0))]
    [0.714592, 1.320807]
    """
    dtype = x.type.dtype
    z = Parts(pt.cast(x, "float64"), pt.cast(y, "float64"))
    is_left, right = _reflected(z)
    product, derivative, far = _recurrence(right)
    inverse = quotient(Parts(pt.ones_like(far.real), pt.zeros_like(far.real)), far)
    square = inverse * inverse
    value = Parts(*log(*far)) - inverse.scaled(pt.constant(0.5))
    value = value - square * _polynomial(square, _PSI_SERIES) - quotient(derivative, product)
    value = chosen(is_left, value - _cotangent(z), value)
    is_real = pt.eq(z.imag, 0.0)
    is_limit = pt.isinf(z.real) | pt.isinf(z.imag)
    limit = chosen(is_limit, Parts(*log(*z)), value)
    real = pt.switch(is_real & ~is_limit, pt.psi(z.real), limit.real)
    imag = pt.switch(is_real & ~is_limit, z.imag, limit.imag)
    is_oscillating = pt.eq(z.real, -np.inf) & (pt.abs(z.imag) < _LEAST_IMAGINARY)
    is_undefined = _is_pole(z) | is_oscillating | pt.isnan(real)
    return tuple(pt.cast(pt.switch(is_undefined, np.nan, part), dtype) for part in (real, imag))


def _reflected(z: Parts) -> tuple[TensorVariable, Parts]:
    """Return which numbers are left of 1/2, and all numbers with those mirrored at 1/2."""
    is_left = pt.lt(z.real, 0.5)
    return is_left, chosen(is_left, Parts(1.0 - z.real, -z.imag), z)


def _recurrence(z: Parts) -> tuple[Parts, Parts, Parts]:
    """Return ``z (z + 1) ... (z + 9)``, its derivative and ``z + 10``; 1, 0 and z far from 0."""
    is_near = z.real * z.real + z.imag * z.imag < _RADIUS**2
    zero, one = pt.zeros_like(z.real), pt.ones_like(z.real)
    near = chosen(is_near, z, Parts(one, zero))
    base = near * Parts(near.real + 9.0, near.imag)
    product, slope = base, Parts(one, zero)
    for step in _STEPS[1:]:
        factor = Parts(base.real + step, base.imag)
        slope = slope * factor + product
        product = product * factor
    derivative = slope * Parts(2.0 * near.real + 9.0, 2.0 * near.imag)
    far = Parts(pt.switch(is_near, z.real + 10.0, z.real), z.imag)
    one_or = chosen(is_near, product, Parts(one, zero))
    return one_or, chosen(is_near, derivative, Parts(zero, zero)), far


def _stirling_exponent(z: Parts) -> Parts:
    """Return ``log(gamma(z))`` far from zero, without multiples of ``2 pi i`` taken off."""
    logarithm = Parts(*log(*z))
    inverse = quotient(Parts(pt.ones_like(z.real), pt.zeros_like(z.real)), z)
    series = inverse * _polynomial(inverse * inverse, _GAMMA_SERIES)
    power = Parts(z.real - 0.5, z.imag) * Parts(logarithm.real - 1.0, logarithm.imag)
    constant = 0.5 * math.log(2 * math.pi) - 0.5
    return Parts(power.real + (series.real + constant), power.imag + series.imag)


def _polynomial(z: Parts, coefficients: tuple[float, ...]) -> Parts:
    """Evaluate a polynomial by Horner's rule, the lowest degree first."""
    *lower, highest = coefficients
    value = Parts(pt.full_like(z.real, highest), pt.zeros_like(z.real))
    for coefficient in reversed(lower):
        value = value * z
        value = Parts(value.real + coefficient, value.imag)
    return value


def _scaled_sine(z: Parts) -> Parts:
    """Return ``sin(pi z) exp(-pi |y|) / pi``, exactly zero at integers."""
    n = pt.round(z.real)
    r = z.real - n
    sign = pt.switch(is_even(n), 0.5, -0.5)
    rest = pt.expm1(-2.0 * math.pi * pt.abs(z.imag))
    real = sign * sine_pi(r) * (2.0 + rest)
    imag = sign * pt.cos(math.pi * r) / math.pi * pt.abs(rest)
    return Parts(real, pt.switch(pt.lt(z.imag, 0.0), -imag, imag))


def _cotangent(z: Parts) -> Parts:
    """Return ``pi cot(pi z)``."""
    r = z.real - pt.round(z.real)
    y = math.pi * pt.clip(z.imag, -_EXACT_HYPERBOLIC, _EXACT_HYPERBOLIC)
    sine, cosine = sine_pi(r), pt.cos(math.pi * r)
    odd, even = pt.sinh(y), pt.cosh(y)
    return quotient(
        Parts(cosine * even, -math.pi * sine * odd), Parts(sine * even, cosine * odd / math.pi)
    )


def _is_pole(z: Parts) -> TensorVariable:
    return pt.eq(z.imag, 0.0) & pt.le(z.real, 0.0) & pt.eq(z.real, pt.round(z.real))


_RADIUS_OF_ERF = 6.5
"""Absolute value from which 26 terms of the asymptotic series are exact in float64."""
_N_ASYMPTOTIC = 26
_N_TRAPEZOIDAL = 26
"""Number of terms: they are largest at ``n = 2 |y|``, at most 13, and vanish 12 or 13 later."""


@of_complex(scalar_erf.impl, "ComplexErf")
def erf(x: TensorVariable, y: TensorVariable) -> PairOfParts:
    """Return the error function, computed in float64.

    Relative to its absolute value the error is a few units in the last place near the origin, and
    that of ``exp(-z**2)`` far from it. Near a complex zero of the function it is larger.

    Examples
    --------
    >>> [round(v.eval().item(), 6) for v in erf(pt.constant(1.0), pt.constant(2.0))]
    [-0.536644, -5.049144]
    """
    dtype = x.type.dtype
    x, y = pt.cast(x, "float64"), pt.cast(y, "float64")
    is_near = x * x + y * y < _RADIUS_OF_ERF**2
    near = _near_origin(pt.switch(is_near, x, 1.0), pt.switch(is_near, y, 1.0))
    far = _far_from_origin(
        pt.switch(is_near, _RADIUS_OF_ERF, x), pt.switch(is_near, _RADIUS_OF_ERF, y)
    )
    real, imag = (pt.switch(is_near, a, b) for a, b in zip(near, far, strict=True))
    is_real, is_imaginary = pt.eq(y, 0.0), pt.eq(x, 0.0)
    real = pt.switch(is_real, pt.erf(x), pt.switch(is_imaginary, x, real))
    imag = pt.switch(is_real, y, imag)
    return pt.cast(real, dtype), pt.cast(imag, dtype)


def _near_origin(x: TensorVariable, y: TensorVariable) -> PairOfParts:
    """Return the sum of the trapezoidal rule, which does not cancel.

    H. E. Salzer, "Formulas for calculating the error function of a complex variable", MTAC 5
    (1951); Abramowitz and Stegun 7.1.29.
    """
    angle = x * y
    sine, cosine = pt.sin(angle), pt.cos(angle)
    sine_2, cosine_2 = 2.0 * sine * cosine, 1.0 - 2.0 * sine * sine
    is_zero = pt.eq(angle, 0.0)
    ratio = y * pt.switch(is_zero, 1.0, sine / pt.switch(is_zero, 1.0, angle))
    scale = pt.exp(-x * x)
    real, imag = sine * ratio / math.pi, cosine * ratio / math.pi
    for n in range(1, _N_TRAPEZOIDAL + 1):
        weight = 2.0 / math.pi * math.exp(-n * n / 4) / (n * n + 4.0 * x * x)
        half, grown, sinh = pt.sinh(n * y / 2), pt.cosh(n * y), pt.sinh(n * y)
        # 1 - cosh(n y) cos(2 x y), which cancels near the axes.
        rest = 2.0 * sine * sine * grown - 2.0 * half * half
        real += weight * (2.0 * x * rest + n * sinh * sine_2)
        imag += weight * (2.0 * x * grown * sine_2 + n * sinh * cosine_2)
    return pt.erf(x) + scale * real, scale * imag


def _far_from_origin(x: TensorVariable, y: TensorVariable) -> PairOfParts:
    """Return ``±1 - exp(-z**2) / (z sqrt(pi)) (1 - 1 / (2 z**2) + 3 / (2 z**2)**2 - ...)``."""
    # Of larger numbers the result is 1, -1 or infinite.
    exponent = (y - x) * (y + x)
    limit = constant(x, 1e150)
    x, y = pt.clip(x, -limit, limit), pt.clip(y, -limit, limit)
    larger = pt.maximum(pt.abs(x), pt.abs(y))
    a, b = x / larger, y / larger
    norm = (a * a + b * b) * larger
    p, q = a / norm, -b / norm
    real_square, imag_square = p * p - q * q, 2.0 * p * q
    real, imag = pt.ones_like(p), pt.zeros_like(p)
    for n in range(_N_ASYMPTOTIC, 0, -1):
        factor = -(2 * n - 1) / 2
        real, imag = (
            1.0 + factor * (real_square * real - imag_square * imag),
            factor * (real_square * imag + imag_square * real),
        )
    real, imag = p * real - q * imag, p * imag + q * real
    angle = 2.0 * x * y
    size = pt.exp(exponent) / math.sqrt(math.pi)
    cosine, sine = pt.cos(angle), -pt.sin(angle)
    sign = pt.switch(pt.lt(x, 0.0), -1.0, 1.0)
    vanishes = pt.lt(exponent, -750.0)
    return (
        pt.switch(vanishes, sign, sign - size * (cosine * real - sine * imag)),
        pt.switch(vanishes, 0.0, -size * (cosine * imag + sine * real)),
    )
