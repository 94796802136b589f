"""Elementary functions of complex numbers."""

import math

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.complex.complex_arithmetic import (
    PairOfParts,
    hypotenuse,
    is_finite,
    of_complex,
    select,
    sqrt,
    with_sign,
)
from pytensor_onnx.functions.special.arithmetic import constant
from pytensor_onnx.functions.special.trigonometric import cos, sin
from pytensor_onnx.ops.complex import part_sum


@of_complex(np.exp, "ComplexExp")
def exp(a: TensorVariable, b: TensorVariable) -> PairOfParts:
    """Return ``exp(a) cos(b)`` and ``exp(a) sin(b)``, finite where ``exp(a)`` overflows alone.

    Infinities follow annex G of the C standard.

    Examples
    --------
    >>> [round(x.eval().item(), 6) for x in exp(pt.constant(1.0), pt.constant(2.0))]
    [-1.131204, 2.471727]
    """
    size, rest = scaled_exponential(a)
    return _at_angle(a, b, b, size, rest)


@of_complex(np.exp2, "ComplexExp2")
def exp2(a: TensorVariable, b: TensorVariable) -> PairOfParts:
    """Return ``2**a cos(b log 2)`` and ``2**a sin(b log 2)``.

    Examples
    --------
    >>> [x.eval().item() for x in exp2(pt.constant(3.0), pt.constant(0.0))]
    [8.0, 0.0]
    """
    angle = b * constant(b, math.log(2))
    return _at_angle(a, b, angle, pt.exp2(a), constant(a, 1.0))


@of_complex(np.expm1, "ComplexExpm1")
def expm1(a: TensorVariable, b: TensorVariable) -> PairOfParts:
    """Return ``expm1(a) cos(b) - 2 sin(b / 2)**2`` and ``exp(a) sin(b)``.

    Examples
    --------
    >>> [x.eval().item() for x in expm1(pt.constant(1e-20), pt.constant(0.0))]
    [1e-20, 0.0]
    """
    sine = sin(b * constant(b, 0.5))
    real = pt.expm1(a) * cos(b) - constant(a, 2.0) * sine * sine
    return real, pt.exp(a) * sin(b)


def scaled_exponential(a: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """Return two factors of the exponential that are finite where their product overflows."""
    is_large = a > constant(a, 700.0, float32=85.0)
    root = pt.exp(a * constant(a, 0.5))
    size = pt.switch(is_large, root, pt.exp(a))
    return size, pt.switch(is_large, root, constant(a, 1.0))


def _at_angle(
    a: TensorVariable,
    b: TensorVariable,
    angle: TensorVariable,
    size: TensorVariable,
    rest: TensorVariable,
) -> PairOfParts:
    """Return the number of an angle and of two factors of a size, with the limits at infinity."""
    zero, one, infinity = constant(a, 0.0), constant(a, 1.0), constant(a, math.inf)
    is_limit, is_real = pt.isinf(a) & ~is_finite(b), pt.eq(b, zero)
    real = (size * cos(angle)) * rest
    real = pt.switch(is_limit, pt.switch(a > zero, infinity, zero), real)
    imag = (pt.switch(is_real, one, size) * sin(angle)) * pt.switch(is_real, one, rest)
    return real, pt.switch(is_limit & (a < zero), zero, imag)


@of_complex(np.log, "ComplexLog")
def log(a: TensorVariable, b: TensorVariable) -> PairOfParts:
    """Return the logarithm of the absolute value, and the angle.

    Relative to the absolute value of the result the error is a few units in the last place; where
    the number is near the unit circle the real part alone is less accurate.

    Examples
    --------
    >>> [round(x.eval().item(), 6) for x in log(pt.constant(0.0), pt.constant(-2.0))]
    [0.693147, -1.570796]
    """
    return log_modulus(a, b), pt.arctan2(b, a)


def log_modulus(a: TensorVariable, b: TensorVariable) -> TensorVariable:
    """Return ``log(large) + log1p((small / large)**2) / 2``, which does not overflow."""
    a, b = pt.abs(a), pt.abs(b)
    large, small = pt.maximum(a, b), pt.minimum(a, b)
    one = constant(a, 1.0)
    ratio = small / pt.switch(pt.eq(large, constant(a, 0.0)), one, large)
    result = pt.log(large) + constant(a, 0.5) * pt.log1p(ratio * ratio)
    return pt.switch(pt.isinf(a) | pt.isinf(b), constant(a, math.inf), result)


@of_complex(np.log1p, "ComplexLog1p")
def log1p(a: TensorVariable, b: TensorVariable) -> PairOfParts:
    """Return ``log(1 + z)`` of a complex number.

    The real part of a small number is ``log1p(a (a + 2) + b**2) / 2``, which does not cancel.

    Examples
    --------
    >>> [x.eval().item() for x in log1p(pt.constant(1e-20), pt.constant(0.0))]
    [1e-20, 0.0]
    """
    one, half = constant(a, 1.0), constant(a, 0.5)
    is_small = pt.maximum(pt.abs(a), pt.abs(b)) < half
    near = half * pt.log1p(a * (a + constant(a, 2.0)) + b * b)
    far = log_modulus(one + a, b)
    return pt.switch(is_small, near, far), pt.arctan2(b, one + a)


# NumPy multiplies for whole exponents below 100.
_BITS = 7


@of_complex(np.power, "ComplexPower")
def power(
    a: TensorVariable, b: TensorVariable, c: TensorVariable, d: TensorVariable
) -> PairOfParts:
    """Return ``exp((c + d i) log(a + b i))``, by products for whole exponents below 100.

    The power of zero is one for an exponent of zero, zero for one with a positive real part, and
    NaN for others, as in NumPy.

    Examples
    --------
    >>> [x.eval().item() for x in power(*map(pt.constant, (1.0, 2.0, 3.0, 0.0)))]
    [-11.0, -2.0]
    """
    zero, one, nan = constant(a, 0.0), constant(a, 1.0), constant(a, math.nan)
    real, imag = exp.expression(*_times(c, d, *log.expression(a, b)))
    is_whole = pt.eq(d, zero) & pt.eq(c, pt.floor(c)) & (pt.abs(c) < constant(c, 100.0))
    by_products = _whole_power(a, b, pt.switch(is_whole, c, zero))
    real, imag = _select(~is_whole, (real, imag), by_products)
    is_zero = pt.eq(a, zero) & pt.eq(b, zero)
    limit = pt.switch(c > zero, zero, nan)
    real, imag = _select(is_zero, (limit, limit), (real, imag))
    is_one = pt.eq(c, zero) & pt.eq(d, zero)
    return _select(is_one, (one, zero), (real, imag))


def _whole_power(a: TensorVariable, b: TensorVariable, n: TensorVariable) -> PairOfParts:
    """Return the power by squares and products, one for each bit of the exponent."""
    one, zero, half = constant(a, 1.0), constant(a, 0.0), constant(a, 0.5)
    rest = pt.abs(n)
    result, square = (one, zero), (a, b)
    for bit in range(_BITS):
        next_rest = pt.floor(rest * half)
        is_odd = pt.neq(rest, next_rest + next_rest)
        result = _select(~is_odd, result, _times(*result, *square) if bit else square)
        rest = next_rest
        square = _times(*square, *square)
    return _select(n >= zero, result, quotient.expression(one, zero, *result))


def _times(
    a: TensorVariable, b: TensorVariable, c: TensorVariable, d: TensorVariable
) -> PairOfParts:
    return a * c - b * d, a * d + b * c


def _select(condition: TensorVariable, x: PairOfParts, y: PairOfParts) -> PairOfParts:
    return pt.switch(condition, x[0], y[0]), pt.switch(condition, x[1], y[1])


@of_complex(np.sinh, "ComplexSinh")
def sinh(a: TensorVariable, b: TensorVariable) -> PairOfParts:
    """Return ``sinh(a) cos(b)`` and ``cosh(a) sin(b)``.

    Examples
    --------
    >>> [x.eval().item() for x in sinh(pt.constant(0.0), pt.constant(0.0))]
    [0.0, 0.0]
    """
    zero, one = constant(a, 0.0), constant(a, 1.0)
    odd, even, rest = _halves(a)
    is_limit, is_real = ~is_finite(b) & pt.isinf(a), pt.eq(b, zero)
    cosine = pt.switch(pt.eq(a, zero) & ~is_finite(b), one, cos(b))
    real = pt.switch(is_limit, pt.abs(a), (odd * cosine) * rest)
    imag = (pt.switch(is_real, one, even) * sin(b)) * pt.switch(is_real, one, rest)
    return real, imag


@of_complex(np.cosh, "ComplexCosh")
def cosh(a: TensorVariable, b: TensorVariable) -> PairOfParts:
    """Return ``cosh(a) cos(b)`` and ``sinh(a) sin(b)``.

    Examples
    --------
    >>> [x.eval().item() for x in cosh(pt.constant(0.0), pt.constant(0.0))]
    [1.0, 0.0]
    """
    zero, one = constant(a, 0.0), constant(a, 1.0)
    odd, even, rest = _halves(a)
    is_limit, is_real = ~is_finite(b) & pt.isinf(a), pt.eq(b, zero)
    real = pt.switch(is_limit, pt.abs(a), (even * cos(b)) * rest)
    sine = pt.switch(pt.eq(a, zero) & ~is_finite(b), one, sin(b))
    # An infinite or unknown size has no part in a zero.
    odd = pt.switch(is_real & pt.isinf(a), pt.sign(a), pt.switch(is_real & pt.isnan(a), one, odd))
    return real, (odd * sine) * pt.switch(is_real, one, rest)


def _halves(a: TensorVariable) -> tuple[TensorVariable, TensorVariable, TensorVariable]:
    """Return sinh and cosh over a common factor, which is one unless they overflow."""
    size, half, one = pt.abs(a), constant(a, 0.5), constant(a, 1.0)
    power, rest = scaled_exponential(size)
    growing = power * half
    decaying = pt.switch(size > constant(a, 40.0), constant(a, 0.0), half / power)
    far = growing - decaying
    odd = pt.switch(size > one, pt.switch(a > constant(a, 0.0), far, -far), pt.sinh(a))
    return odd, growing + decaying, rest


@of_complex(np.tanh, "ComplexTanh")
def tanh(a: TensorVariable, b: TensorVariable) -> PairOfParts:
    """Return the hyperbolic tangent.

    W. Kahan, "Branch cuts for complex elementary functions" (1987): with ``t = tan(b)`` and
    ``s = sinh(a)`` the parts are ``(1 + t**2) sqrt(1 + s**2) s`` and ``t`` over
    ``1 + (1 + t**2) s**2``. For large ``|a|`` they are one and ``4 sin(b) cos(b) exp(-2 |a|)``.

    Examples
    --------
    >>> [x.eval().item() for x in tanh(pt.constant(1000.0), pt.constant(1.0))]
    [1.0, 0.0]
    """
    zero, one = constant(a, 0.0), constant(a, 1.0)
    size = pt.abs(a)
    is_far = size > constant(a, 22.0, float32=11.0)
    sine = pt.sinh(pt.switch(is_far, zero, a))
    tangent = pt.switch(pt.isinf(a) & ~is_finite(b), zero, pt.tan(b))
    slope = pt.switch(pt.eq(a, zero) & ~is_finite(b), zero, tangent)
    secant = one + slope * slope
    divisor = one + secant * sine * sine
    real = secant * pt.sqrt(one + sine * sine) * sine / divisor
    real = pt.switch(is_far, pt.switch(a > zero, one, -one), real)
    cosine = pt.switch(pt.eq(tangent, zero), one, cos(b))
    tail = constant(a, 4.0) * cosine * cosine * pt.exp(constant(a, -2.0) * size)
    factor = pt.switch(is_far, tail, one / pt.switch(pt.eq(b, zero), one, divisor))
    return real, tangent * factor


# Inverses of hyperbolic and trigonometric functions of complex numbers.
#
# W. Kahan, "Branch cuts for complex elementary functions, or: much ado about nothing's sign bit",
# in The State of the Art in Numerical Analysis (1987). Products of square roots are sums of
# positive numbers, so that nothing cancels; far from the origin the functions are logarithms. The
# angles' inverses are these, turned by ``i``.


@of_complex(np.arcsinh, "ComplexArcSinh")
def arcsinh(a: TensorVariable, b: TensorVariable) -> PairOfParts:
    """Return the inverse of the hyperbolic sine, with cuts on the imaginary axis beyond ``i``.

    Examples
    --------
    >>> [round(x.eval().item(), 6) for x in arcsinh(pt.constant(1.0), pt.constant(2.0))]
    [1.469352, 1.06344]
    """
    zero, one = constant(a, 0.0), constant(a, 1.0)
    (p, q), (r, s) = sqrt.expression(one - b, -a), sqrt.expression(one + b, a)
    is_far = _is_far(a, b)
    real = pt.switch(is_far, with_sign(_log_twice(a, b), a), pt.arcsinh(p * s - q * r))
    x = pt.switch(is_far, pt.abs(a), p * r - q * s)
    return real, pt.arctan2(b, pt.switch(pt.eq(b, zero) & pt.isnan(a), one, x))


@of_complex(np.arccosh, "ComplexArcCosh")
def arccosh(a: TensorVariable, b: TensorVariable) -> PairOfParts:
    """Return the inverse of the hyperbolic cosine, with a cut on the real axis below one.

    Examples
    --------
    >>> [round(x.eval().item(), 6) for x in arccosh(pt.constant(-2.0), pt.constant(-0.0))]
    [1.316958, -3.141593]
    """
    one = constant(a, 1.0)
    (p, q), (r, s) = sqrt.expression(a - one, b), sqrt.expression(a + one, b)
    is_far = _is_far(a, b)
    real = pt.switch(is_far, _log_twice(a, b), pt.arcsinh(p * r + q * s))
    y = with_sign(pt.switch(is_far, pt.abs(b), pt.abs(q)), b)
    times = pt.switch(is_far, one, constant(a, 2.0))
    imag = times * pt.arctan2(y, pt.switch(is_far, a, r))
    is_half = pt.eq(a, constant(a, 0.0)) & pt.isnan(b)
    return real, pt.switch(is_half, constant(a, math.pi / 2), imag)


@of_complex(np.arccos, "ComplexArcCos")
def arccos(a: TensorVariable, b: TensorVariable) -> PairOfParts:
    """Return the inverse of the cosine, with cuts on the real axis beyond one.

    Examples
    --------
    >>> [round(x.eval().item(), 6) for x in arccos(pt.constant(1.0), pt.constant(2.0))]
    [1.143718, -1.528571]
    """
    one = constant(a, 1.0)
    (p, q), (r, s) = sqrt.expression(one - a, -b), sqrt.expression(one + a, b)
    is_far = _is_far(a, b)
    real = constant(a, 2.0) * pt.arctan2(p, r)
    imag = pt.arcsinh(r * q - s * p)
    real = pt.switch(is_far, pt.arctan2(pt.abs(b), a), real)
    real = pt.switch(pt.eq(a, constant(a, 0.0)), constant(a, math.pi / 2), real)
    return real, pt.switch(is_far, -with_sign(_log_twice(a, b), b), imag)


@of_complex(np.arctanh, "ComplexArcTanh")
def arctanh(a: TensorVariable, b: TensorVariable) -> PairOfParts:
    """Return the inverse of the hyperbolic tangent, with cuts on the real axis beyond one.

    Examples
    --------
    >>> [round(x.eval().item(), 6) for x in arctanh(pt.constant(2.0), pt.constant(-0.0))]
    [0.549306, -1.570796]
    """
    zero, half, one = constant(a, 0.0), constant(a, 0.5), constant(a, 1.0)
    is_far = _is_far(a, b)
    x = pt.switch(is_far, zero, pt.abs(a))
    y = pt.switch(is_far, zero, b)
    distance = hypotenuse.expression(one - x, y)
    is_pole = distance < constant(a, 1e-9, float32=1e-5)
    square = pt.switch(is_pole, one, distance * distance)
    near = pt.switch(
        is_pole,
        half * pt.log(constant(a, 2.0) / distance),
        constant(a, 0.25) * pt.log1p(constant(a, 4.0) * x / square),
    )
    imag = half * pt.arctan2(constant(a, 2.0) * y, (one - x) * (one + x) - y * y)
    p, q = _reciprocal(pt.abs(a), pt.abs(b))
    size = pt.switch(is_far, p, pt.switch(pt.eq(a, zero), zero, near))
    turned = with_sign(constant(a, math.pi / 2) - q, b)
    imag = pt.switch(is_far, pt.switch(pt.isnan(b), b, turned), imag)
    return with_sign(size, a), imag


def _reciprocal(a: TensorVariable, b: TensorVariable) -> PairOfParts:
    """Return the absolute values of the parts of the reciprocal of a large number."""
    zero, one = constant(a, 0.0), constant(a, 1.0)
    large = pt.maximum(a, b)
    p, q = a / large, b / large
    size = large * (p * p + q * q)
    is_infinite = pt.isinf(a) | pt.isinf(b)
    size = pt.switch(is_infinite, one, size)
    return pt.switch(is_infinite, zero, p / size), pt.switch(is_infinite, zero, q / size)


def _is_far(a: TensorVariable, b: TensorVariable) -> TensorVariable:
    limit = constant(a, 1e9, float32=1e4)
    return (pt.abs(a) > limit) | (pt.abs(b) > limit)


def _log_twice(a: TensorVariable, b: TensorVariable) -> TensorVariable:
    """Return the logarithm of twice the absolute value."""
    return log_modulus(a, b) + constant(a, math.log(2))


# Quotients and reciprocals of complex numbers.
#
# R. L. Smith, "Algorithm 116: Complex division", Commun. ACM 5 (1962), in the form of NumPy: the
# results are NumPy's to the last bit, at zeros, infinities and NaN as well.


@of_complex(np.true_divide, "ComplexQuotient")
def quotient(
    a: TensorVariable, b: TensorVariable, c: TensorVariable, d: TensorVariable
) -> PairOfParts:
    """Return the parts of ``(a + b i) / (c + d i)``.

    Examples
    --------
    >>> [part.eval().item() for part in quotient(*map(pt.constant, (1e300, 2e300, 4e300, 0.0)))]
    [0.25, 0.5]
    """
    is_zero = pt.eq(c, constant(c, 0.0)) & pt.eq(d, constant(c, 0.0))
    is_imag = pt.abs(c) < pt.abs(d)
    large, small = select(is_imag, d, c), select(is_imag, c, d)
    ratio = small / large
    scale = constant(c, 1.0) / (large + small * ratio)
    real = select(is_imag, part_sum(a * ratio, b) * scale, (a + b * ratio) * scale)
    imag = select(is_imag, (b * ratio - a) * scale, (b - a * ratio) * scale)
    zero = pt.abs(c)
    return pt.switch(is_zero, a / zero, real), pt.switch(is_zero, b / zero, imag)


@of_complex(np.reciprocal, "ComplexReciprocal")
def reciprocal(c: TensorVariable, d: TensorVariable) -> PairOfParts:
    """Return the parts of ``1 / (c + d i)``; both are NaN at zero.

    Examples
    --------
    >>> [part.eval().item() for part in reciprocal(pt.constant(0.0), pt.constant(4.0))]
    [0.0, -0.25]
    """
    is_imag = pt.abs(d) > pt.abs(c)
    large, small = select(is_imag, d, c), select(is_imag, c, d)
    ratio = small / large
    divisor = large + small * ratio
    one = constant(c, 1.0)
    return select(is_imag, ratio, one) / divisor, select(is_imag, -one, -ratio) / divisor
