"""The digamma, trigamma and polygamma functions."""

import math

import numpy as np
import pytensor.tensor as pt
from pytensor.conditional.op import ifelse
from pytensor.scalar.math import PolyGamma, Psi, TriGamma
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import (
    constant,
    horner,
    in_float64,
    of_few,
    polynomial,
    stacked,
    where_any,
    widened,
)
from pytensor_onnx.functions.special.exponential import (
    exp,
    log_of_normal,
    log_with_rest,
    power_of_logarithm,
)
from pytensor_onnx.functions.special.gamma_coefficients import (
    COTANGENT_PI_BOTTOM,
    COTANGENT_PI_TOP,
    NEGATIVE_PSI_BOTTOM,
    NEGATIVE_PSI_TOP,
    PSI_BOTTOM,
    PSI_TAIL_BOTTOM,
    PSI_TAIL_TOP,
    PSI_TOP,
    SINE_PI,
    TRIGAMMA_BOTTOM,
    TRIGAMMA_TAIL,
    TRIGAMMA_TOP,
)
from pytensor_onnx.ops.special import precise

# The roots of psi next to zero, rounded, and what the rounding leaves out.
_ROOT = (1.4616321449683622, 9.549995429965697e-17)
_NEGATIVE_ROOT = (-0.5040830082644554, -8.15428206243813e-18)
# A number near 2.5 where the function fitted to psi has a value of few bits, which can be taken
# from larger ones exactly.
_SEAM = (2.4979449615263176, 0.7021484375)
# Below it nothing counts beside the reciprocal.
_TINY = 1e-20


@define(Psi)
@widened
def psi(x: TensorVariable) -> TensorVariable:
    """Differentiate the logarithm of the gamma function; NaN at negative integers.

    Notes
    -----
    A fitted function times the distance from a root serves up to 2.5, after a step by 1 below 1,
    the asymptotic series (DLMF 5.11.2) beyond, and below 0 the reflection
    ``psi(x) = psi(-x) - 1/x - pi / tan(pi x)`` (DLMF 5.5.2 and 5.5.4), but for another fitted
    function times the distance next to the root -0.504.
    """
    zero, one = constant(x, 0.0), constant(x, 1.0)
    y = pt.abs(x)
    positive = psi_of_positive(y)
    r = from_nearest_integer(y)
    square = r * r
    ratio = polynomial(square, COTANGENT_PI_TOP) / polynomial(square, COTANGENT_PI_BOTTOM)
    # Halfway between the poles, where the cotangent vanishes, one of the factors is exact.
    twice = r + r
    leading = (one - twice) * (one + twice) / r
    # The parts of order 1/x next to zero cancel first, before their sum could overflow.
    reflected = (positive + one / y) + (leading + leading * (square * ratio))
    reflected = pt.switch(is_pole(x), constant(x, math.nan), reflected)

    rest = polynomial(x, NEGATIVE_PSI_TOP) / polynomial(x, NEGATIVE_PSI_BOTTOM)
    distance = _distance(x, _NEGATIVE_ROOT)
    between = distance * (rest - constant(x, 2.0)) / (x + one) / x
    negative = pt.switch(pt.abs(distance) < constant(x, 0.25), between, reflected)
    # Of a zero the sign counts, which its absolute value has lost, and reciprocals may overflow.
    negative = pt.switch(y < constant(x, _TINY), -one / x, negative)
    return where_any(x <= zero, negative, positive)


def psi_of_positive(x: TensorVariable) -> TensorVariable:
    """``psi(x)`` for ``x > 0``."""
    one = constant(x, 1.0)
    # Numbers in place of selections, which take the runtime the time of five products: psi grows,
    # so that each part is constant where the other one serves.
    small = (x < one).astype(x.dtype)
    seam, value = (constant(x, number) for number in _SEAM)
    d = _distance(pt.minimum(x + small, seam), _ROOT)
    reciprocal = one / x
    excess = polynomial(d, PSI_TOP) / polynomial(d, PSI_BOTTOM)
    near = (d + d * excess) - small * reciprocal
    far = precise.log(x) - _log_less_psi(pt.minimum(reciprocal, constant(x, 1 / _SEAM[0])))
    return near + pt.maximum(far - value, constant(x, 0.0))


def log_less_psi(x: TensorVariable) -> TensorVariable:
    """``log(x) - psi(x)`` for ``x >= 2.5``."""
    reciprocal = constant(x, 1.0) / x
    return _log_less_psi(reciprocal)


def _log_less_psi(reciprocal: TensorVariable) -> TensorVariable:
    square = reciprocal * reciprocal
    rest = polynomial(square, PSI_TAIL_TOP) / polynomial(square, PSI_TAIL_BOTTOM)
    return constant(square, 0.5) * reciprocal + square * rest


def _distance(x: TensorVariable, root: tuple[float, float]) -> TensorVariable:
    """Subtract a root that is given in two parts."""
    high, low = root
    return (x - constant(x, high)) - constant(x, low)


@define(TriGamma)
@widened
def trigamma(x: TensorVariable) -> TensorVariable:
    """Differentiate `psi`; infinite at the poles.

    Notes
    -----
    ``(x + 1/2) / x**2`` and a fitted function serve to 8, the asymptotic series (DLMF 5.15.8)
    beyond, and the reflection ``trigamma(x) = (pi / sin(pi x))**2 - trigamma(1 - x)`` (DLMF
    5.15.6) below 0.
    """
    one = constant(x, 1.0)
    negative = x < constant(x, 0.0)
    value = trigamma_of_positive(pt.switch(negative, one - x, x))
    cosecant = one / sine_pi(from_nearest_integer(x))
    reflected = cosecant * cosecant - value
    reflected = pt.switch(pt.isinf(x), constant(x, math.inf), reflected)
    return where_any(negative, reflected, value)


def trigamma_of_positive(x: TensorVariable) -> TensorVariable:
    """``trigamma(x)`` for ``x > 0``."""
    one, eight = constant(x, 1.0), constant(x, 8.0)
    rest = polynomial(x, TRIGAMMA_TOP) / polynomial(x, TRIGAMMA_BOTTOM)
    near = (x + (constant(x, 0.5) + rest)) / x / x
    reciprocal = one / x
    square = reciprocal * reciprocal
    rest = constant(x, 0.5) * square + square * reciprocal * polynomial(square, TRIGAMMA_TAIL)
    return pt.switch(x > eight, reciprocal + rest, near)


_TERMS = 6
# The largest product of the order and twice the distance to a point halfway between poles where
# differences of terms are computed as one.
_HALFWAY = 0.125
# Orders up to the largest one whose factorial is in the range of float64, and one beyond.
_ORDERS = 172
# Powers of two whose power `n + 1` is just above the inverse of the factorial of `n`, or just below
# it for numbers from two on. Powers of numbers times these are within the range of float64 where
# products with the factorial are.
_EXPONENTS = np.array([math.log2(math.factorial(n)) // (n + 1) for n in range(_ORDERS - 1)])
_SCALES = 2.0 ** -np.array([*_EXPONENTS, 0.0, *(_EXPONENTS + 1), 0.0])
_FACTORIALS = np.array([*(float(math.factorial(n)) for n in range(_ORDERS - 1)), math.inf] * 2)
_SCALED_FACTORIALS = _FACTORIALS * _SCALES ** np.tile(np.arange(1, _ORDERS + 1), 2)
# Quotients of factorials and scaled factorials, for numbers below two.
_DIVISORS = np.tile([*2.0 ** (_EXPONENTS * np.arange(1, _ORDERS)), 1.0], 2)
# Bernoulli numbers of even index over factorials, B(2j) / (2j)!, from j = 1 on (DLMF 24.2.1).
_BERNOULLI = (
    1 / 12,
    -1 / 720,
    1 / 30240,
    -1 / 1209600,
    1 / 47900160,
    -691 / 1307674368000,
    1 / 74724249600,
    -3617 / 10670622842880000,
    43867 / 5109094217170944000,
    -174611 / 802857662698291200000,
    77683 / 14101100039391805440000,
    -236364091 / 1693824136731743669452800000,
    657931 / 186134520519971831808000000,
)


def _sums_of_powers() -> np.ndarray:
    """Sum ``(k + 3/2)**-s`` over all ``k >= 0``, for ``s`` from 4 on, as `_zeta` does."""
    count = 100
    s = np.arange(4, _ORDERS + 8.0)
    end = count + 1.5
    rest = 0.5 + end / (s - 1) + s / end * (1 / 12 - (s + 1) * (s + 2) / end**2 / 720)
    return np.sum((np.arange(count) + 1.5)[:, None] ** -s, axis=0) + end**-s * rest


_SUMS = _sums_of_powers()


@define(PolyGamma)
@in_float64
def polygamma(n: TensorVariable, x: TensorVariable) -> TensorVariable:
    """Differentiate `psi` ``n`` times; NaN where ``n`` is negative.

    Notes
    -----
    ``(-1)**(n+1) n!`` times the sum of ``(x + k)**-(n+1)`` over all ``k >= 0`` (DLMF 5.15.1). Below
    0 the negative ones of the ``x + k`` are summed apart.
    """
    zero, one = constant(x, 0.0), constant(x, 1.0)
    s = n + one
    half = s * constant(x, 0.5)
    sign = pt.switch(pt.eq(half, pt.floor(half)), one, -one)
    index = pt.clip(n, zero, constant(x, _ORDERS - 1))
    index = (index + pt.switch(x < constant(x, 2.0), zero, constant(x, _ORDERS))).astype("int64")
    factorial, scale = pt.constant(_SCALED_FACTORIALS)[index], pt.constant(_SCALES)[index]
    below_zero = x < zero
    # Sums of three numbers each where any is negative, and otherwise of the number alone.
    floor = pt.floor(x)
    three = pt.stack([pt.switch(below_zero, x - floor, pt.abs(x)), pt.ceil(x) - x, one - x])
    any_below_zero = pt.any(below_zero)
    numbers = ifelse(any_below_zero, three, pt.abs(x)[None])
    exponents = pt.broadcast_to(s[None], numbers.shape)
    sums = _zeta(exponents, numbers, scale[None])
    # Halfway between the poles the first two cancel for even orders.
    nearest = sums[0] + sign * sums[-2]
    halfway = x - (floor + constant(x, 0.5))
    angle = s * (halfway + halfway)
    is_halfway = below_zero & (sign < zero) & (pt.abs(angle) < constant(x, _HALFWAY))
    nearest = where_any(
        is_halfway, _difference(s, halfway) * pt.constant(_DIVISORS)[index], nearest
    )
    beyond = nearest - sign * sums[-1]
    beyond = pt.switch(pt.eq(x, floor), constant(x, math.inf), beyond)
    # The sign of a zero counts as little as it does in SciPy.
    zeta = ifelse(any_below_zero, pt.switch(below_zero, beyond, sums[0]), sums[0])
    value = sign * factorial * zeta
    value = pt.switch(n < zero, constant(x, math.nan), value)
    return where_any(pt.eq(n, zero), psi(x), value)


def _difference(s: TensorVariable, x: TensorVariable) -> TensorVariable:
    """``zeta(s, 1/2 + x) - zeta(s, 1/2 - x)`` for small ``s x``.

    The difference of first terms is computed by the logarithm of their quotient, that of the others
    by their Taylor series from ``3/2``, of odd terms (DLMF 25.11.10).
    """
    one = constant(x, 1.0)
    twice = x + x
    square = twice * twice
    # The hyperbolic sine of s times the inverse hyperbolic tangent of 2 x.
    angle = twice * horner(square, [constant(x, 1 / (2 * j + 1)) for j in range(5)]) * s
    factorials = [constant(x, 1 / math.factorial(2 * j + 1)) for j in range(5)]
    sine = angle * horner(angle * angle, factorials)
    product = constant(x, 0.25) * (one - square)
    first = power_of_logarithm(constant(x, -0.5) * s, *log_with_rest(product)) * sine

    bounded = pt.clip(s, constant(s, 3.0), constant(s, _ORDERS))
    orders = [bounded + constant(x, j) for j in range(1, 8)]
    zetas = [pt.constant(_SUMS)[order.astype("int64") - np.int64(4)] for order in orders[::2]]
    term, rest = s * x, constant(x, 0.0)
    for j in range(4):
        rest = rest + term * zetas[j]
        if j < 3:
            rising = orders[2 * j] * orders[2 * j + 1]
            term = term * (rising * (x * x)) * constant(x, 1 / ((2 * j + 2) * (2 * j + 3)))
    return constant(x, -2.0) * (first + rest)


def _zeta(s: TensorVariable, x: TensorVariable, scale: TensorVariable) -> TensorVariable:
    """Sum ``((x + k) scale)**-s`` over all ``k >= 0``, for ``s >= 2`` and ``x >= 0``.

    The Euler-Maclaurin formula (DLMF 25.11.28), after six terms for numbers that are small beside
    the exponent. All is relative to the first term, and that computed from the power of ``1 - s``:
    where powers of ``-s`` underflow, the sum may not.
    """
    zero, one = constant(x, 0.0), constant(x, 1.0)
    before = s - one
    power = power_of_logarithm(-before, *log_with_rest(x * scale))
    is_small = x < s + constant(x, 7.0)
    total, last = of_few(is_small, _first_terms, [pt.zeros_like(x), pt.ones_like(x)], [s, x])
    end = x + pt.switch(is_small, constant(x, _TERMS), zero)
    square = one / (end * end)
    series = constant(x, _BERNOULLI[-1])
    for j in range(len(_BERNOULLI) - 1, 0, -1):
        rising = (s + constant(x, 2 * j - 1)) * (s + constant(x, 2 * j))
        series = series * (rising * square) + constant(x, _BERNOULLI[j - 1])
    rest = constant(x, 0.5) + (end / before + s / end * series)
    first = one / x
    value = power * ((total + last * rest) / x) / scale
    return pt.switch((first > zero) & (first < constant(x, math.inf)), value, first)


def _first_terms(
    total: TensorVariable, last: TensorVariable, s: TensorVariable, x: TensorVariable
) -> tuple[TensorVariable, TensorVariable]:
    """Return the sum of ``(x / (x + k))**s`` for ``k`` from 0 to 5, and the term of 6."""
    one = constant(x, 1.0)
    # At the bound the power vanishes.
    change = pt.minimum(stacked(x, range(1, _TERMS + 1)) / x, constant(x, 1e30))
    ratio = one + change
    logarithm = log_of_normal(ratio) + (change - (ratio - one)) / ratio
    terms, last = pt.split(exp(-s * logarithm), [_TERMS - 1, 1], n_splits=2, axis=0)
    return one + pt.sum(terms, axis=0), pt.squeeze(last, axis=0)


def from_nearest_integer(x: TensorVariable) -> TensorVariable:
    """Return ``x`` less the nearest integer, which is exact, and -0.5 or 0.5 halfway."""
    return x - pt.round(x)


def from_nearest_even(x: TensorVariable) -> TensorVariable:
    """Return the number from -1/2 to 1/2 with the same sine of its product with pi, exactly."""
    turns = pt.round(x * constant(x, 0.5))
    distance = x - (turns + turns)
    bound = constant(x, 0.5)
    near = pt.maximum(pt.minimum(distance, bound), -bound)
    # Beyond a distance of 1/2 the result falls again: twice the bound, less the distance.
    return (near + near) - distance


def sine_pi(r: TensorVariable) -> TensorVariable:
    """``sin(pi r) / pi`` for ``|r| <= 1/2``."""
    return r + r * sine_pi_excess(r)


def sine_pi_excess(r: TensorVariable) -> TensorVariable:
    """``sin(pi r) / (pi r) - 1`` for ``|r| <= 1/2``."""
    square = r * r
    return square * polynomial(square, SINE_PI)


def alternating_sine_pi(x: TensorVariable) -> TensorVariable:
    """``sin(pi x) / pi``."""
    return sine_pi(from_nearest_even(x))


def is_even(count: TensorVariable) -> TensorVariable:
    """Tell even integers."""
    half = count * constant(count, 0.5)
    return pt.eq(half, pt.floor(half))


def is_pole(x: TensorVariable) -> TensorVariable:
    """Tell negative integers, minus infinity among them."""
    return (x < constant(x, 0.0)) & pt.eq(x, pt.round(x))
