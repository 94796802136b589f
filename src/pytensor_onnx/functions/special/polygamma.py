"""The derivatives of the digamma function of any order."""

import math

import numpy as np
import pytensor.tensor as pt
from pytensor.conditional.op import ifelse
from pytensor.scalar.math import PolyGamma
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import constant, horner, stacked
from pytensor_onnx.functions.special.exponential import exp
from pytensor_onnx.functions.special.portable_formulas import log_of_normal
from pytensor_onnx.functions.special.power import log_with_rest, power_of_logarithm
from pytensor_onnx.functions.special.psi import psi
from pytensor_onnx.functions.special.wide_evaluation import in_float64, of_few, where_any

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
