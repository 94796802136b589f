"""The derivatives of the digamma function of any order."""

import math

import numpy as np
import pytensor.tensor as pt
from pytensor.conditional.op import ifelse
from pytensor.scalar.math import PolyGamma
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import constant, horner
from pytensor_onnx.functions.special.evaluation import in_float64, where_any
from pytensor_onnx.functions.special.psi import psi

_TERMS = 10
# The largest product of the order and twice the distance to a point halfway between poles where
# differences of terms are computed as one.
_HALFWAY = 0.125
# Orders up to the largest one whose factorial is in the range of float64, and one beyond.
_ORDERS = 172
# Powers of two whose power `n + 1` is just above the inverse of the factorial of `n`, or just below
# it for numbers from two on. Powers of numbers times these are within the range of float64 where
# products with the factorial are.
_EXPONENTS = [math.log2(math.factorial(n)) // (n + 1) for n in range(_ORDERS - 1)]
_SCALES = 2.0 ** -np.array([*_EXPONENTS, 0.0, *(m + 1 for m in _EXPONENTS), 0.0])
_FACTORIALS = np.array([*(float(math.factorial(n)) for n in range(_ORDERS - 1)), math.inf] * 2)
_SCALED_FACTORIALS = _FACTORIALS * _SCALES ** np.tile(np.arange(1, _ORDERS + 1), 2)
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
)


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
    sums = _zeta(s[None], numbers, scale[None])
    # Halfway between the poles the first two cancel for even orders.
    nearest = sums[0] + sign * sums[-2]
    halfway = x - (floor + constant(x, 0.5))
    angle = s * (halfway + halfway)
    is_halfway = below_zero & (sign < zero) & (pt.abs(angle) < constant(x, _HALFWAY))
    nearest = where_any(is_halfway, _difference(s, halfway) * pt.pow(scale, -s), nearest)
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
    first = pt.pow(product, constant(x, -0.5) * s) * sine

    orders = [s + constant(x, j) for j in range(1, 8)]
    odd = pt.stack(orders[::2])
    zetas = _zeta(odd, constant(x, 1.5))
    term, rest = s * x, constant(x, 0.0)
    for j in range(4):
        rest = rest + term * zetas[j]
        if j < 3:
            rising = orders[2 * j] * orders[2 * j + 1]
            term = term * (rising * (x * x)) * constant(x, 1 / ((2 * j + 2) * (2 * j + 3)))
    return constant(x, -2.0) * (first + rest)


def _zeta(
    s: TensorVariable, x: TensorVariable, scale: TensorVariable | None = None
) -> TensorVariable:
    """Sum ``((x + k) scale)**-s`` over all ``k >= 0``, for ``s >= 2`` and ``x >= 0``.

    The first ten terms, and the Euler-Maclaurin formula for the others (DLMF 25.11.28).
    """
    one = constant(x, 1.0)
    numbers = [x, *(x + constant(x, k) for k in range(1, _TERMS + 1))]
    scaled = numbers if scale is None else [number * scale for number in numbers]
    first, *powers = (pt.pow(number, -s) for number in scaled[:-1])
    total = powers[0]
    for power in powers[1:]:
        total = total + power
    reciprocal = one / numbers[-1]
    square = reciprocal * reciprocal
    factor = s * reciprocal
    rest = constant(x, 0.5)
    for j, bernoulli in enumerate(_BERNOULLI, start=1):
        rest = rest + factor * constant(x, bernoulli)
        if j < len(_BERNOULLI):
            rising = (s + constant(x, 2 * j - 1)) * (s + constant(x, 2 * j))
            factor = factor * (rising * square)
    # Where powers of the exponent -s underflow, the integral may not.
    before = one - s
    power = pt.pow(scaled[-1], before)
    integral = power / (before if scale is None else before * scale)
    return first + (total + (power / scaled[-1] * rest - integral))
