"""The inverse of the regularized incomplete beta function."""

import math

import numpy as np
import pytensor.tensor as pt
from pytensor.scalar.math import BetaIncInv
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import (
    add_with_error,
    constant,
    if_any_of_few,
    in_float64,
    split_rows,
)
from pytensor_onnx.functions.special.betainc import LONG, both, log_of_share, stirling_factor
from pytensor_onnx.functions.special.exponential import (
    keep_upper_bits,
    log1p,
    portable_exp,
    root_of_exponential,
)
from pytensor_onnx.functions.special.gamma import LARGEST_STEP, log_of_scaled_beta
from pytensor_onnx.functions.special.gammainc import normal_quantile
from pytensor_onnx.ops.special import precise

# Squares of numbers up to this, multiplied by parameters, are lost beside one.
_NEAR = 1e-8
# Steps after which elements that have not converged are NaN.
_STEPS = 40
# Below it, both parameters amplify rounding errors of the function; terms of the series then.
_SMALL, _TERMS = 0.02, 50
# So much smaller than the first parameter, the second is that of a gamma distribution.
_SLIM = 0.1


@define(BetaIncInv)
@in_float64
def betaincinv(a: TensorVariable, b: TensorVariable, p: TensorVariable) -> TensorVariable:
    """Inverse of the regularized incomplete beta function in its third argument.

    NaN outside of the domain, and where a parameter is zero or, but for ``p`` of 0 and 1, infinite.
    """
    zero, one, half = (constant(p, n) for n in (0.0, 1.0, 0.5))
    parameters = pt.minimum(a, b) > zero
    inside = parameters & (pt.maximum(a, b) < constant(p, math.inf)) & (p > zero) & (p < one)
    some_a, some_b, some = (pt.switch(inside, v, n) for v, n in ((a, one), (b, one), (p, half)))
    value = pt.switch(inside, _inverse(some_a, some_b, some), constant(p, math.nan))
    at_end = parameters & (pt.eq(p, zero) | pt.eq(p, one))
    return pt.switch(at_end, p, value)


def _inverse(a: TensorVariable, b: TensorVariable, p: TensorVariable) -> TensorVariable:
    """Solve where no first terms of a series, next to 0 and 1, have all digits."""
    one, half = constant(p, 1.0), constant(p, 0.5)
    q = one - p
    factor = stirling_factor(a, b)
    # log(a B(a, b)); b B(a, b) is that times b / a.
    beta = -(a * log1p(b / a) + b * log1p(a / b) + pt.log(factor / a))
    x, y = _first_terms(a, b, p, q, beta)
    near_zero = x * pt.maximum(b, one) < constant(p, _NEAR)
    near_one = y * y * pt.maximum(a, one) < constant(p, _NEAR * _NEAR / 5)
    is_known = near_zero | near_one
    guess = _guess(a, b, p, q, x, y, beta)
    # Of the uniform distribution the median is found at once.
    some_a, some_b, guess = (pt.switch(is_known, one, v) for v in (a, b, guess))
    some_p, some_q = (pt.switch(is_known, half, v) for v in (p, q))
    factor = pt.switch(is_known, constant(p, 0.25), factor)
    odds = _solve(some_a, some_b, some_p, some_q, guess, factor)
    is_small = ~is_known & (pt.maximum(a, b) < constant(p, _SMALL))
    odds = if_any_of_few(is_small, _refined, odds, [a, b, x, y])
    value = pt.switch(near_one, one - y, odds / (one + odds))
    # By the second term of the series.
    x = x + x * (x * ((b - one) / (a + one)))
    return pt.switch(near_zero, x, value)


def _first_terms(
    a: TensorVariable,
    b: TensorVariable,
    p: TensorVariable,
    q: TensorVariable,
    beta: TensorVariable,
) -> list[TensorVariable]:
    """Solve by the first term of the series at 0, and of that at 1 for ``1 - x``.

    ``beta`` is ``log(a B(a, b))``. The results are exact where they, or the parameters, are small.
    """
    of_both = beta, beta + pt.log(b / a)
    a, b, p, q, beta = (pt.stack(of) for of in ((a, b), (b, a), (p, q), (q, p), of_both))
    x = pt.exp((pt.log(p) + beta) / a)
    counts = (a < constant(p, LARGEST_STEP)) | (x < constant(p, _NEAR))
    return split_rows(if_any_of_few(counts, _exact_term, x, [a, b, p, q, beta]), 2)


def _exact_term(
    value: TensorVariable,
    a: TensorVariable,
    b: TensorVariable,
    p: TensorVariable,
    q: TensorVariable,
    beta: TensorVariable,
) -> TensorVariable:
    """``(p a B(a, b))**(1/a)``, by an exponent that is not rounded.

    The beta function of a small ``a`` is ``(a + b) / b`` but for a factor that is nearly one.
    """
    zero, one, largest = (constant(p, n) for n in (0.0, 1.0, LARGEST_STEP))
    rounding = (one - p) - q
    both = add_with_error(a, b)
    is_small = a < largest
    some = pt.minimum(a, largest)
    beta = pt.switch(is_small, log_of_scaled_beta(some, b), beta)
    total, error = pt.switch(is_small, both[0], b), pt.switch(is_small, both[1], zero)
    logarithm, rest = log_of_share(b, p, rounding, (total, error))
    exact = root_of_exponential(a, logarithm, rest, beta)
    # Products of the tiniest and of the largest numbers have no floats.
    return pt.switch(pt.isnan(exact), value, exact)


def _refined(
    odds: TensorVariable,
    a: TensorVariable,
    b: TensorVariable,
    first_x: TensorVariable,
    first_y: TensorVariable,
) -> TensorVariable:
    """Improve ``x / (1 - x)`` for two small parameters: the result hardly depends on ``odds``.

    The logit of ``x`` is the logarithm of the first term of the series and a small rest.
    """
    one = constant(a, 1.0)
    is_upper = odds > one
    x = pt.minimum(odds, one / odds)
    x = x / (one + x)
    first = pt.switch(is_upper, first_y, first_x)
    a, b = pt.switch(is_upper, b, a), pt.switch(is_upper, a, b)

    def add(
        n: TensorVariable,
        total: TensorVariable,
        power: TensorVariable,
        a: TensorVariable,
        b: TensorVariable,
        x: TensorVariable,
    ) -> list[TensorVariable]:
        power = power * (x - b * x / n)
        return [total + power / (a + n), power]

    numbers = pt.constant(np.arange(1.0, _TERMS + 1))
    start = [pt.zeros_like(x), pt.ones_like(x)]
    total, _ = iterate(add, start, [a, b, x], sequences=[numbers], n_steps=_TERMS)
    smaller = first * pt.exp(-(log1p(a * total) / a + log1p(-x)))
    return pt.switch(is_upper, one / smaller, smaller)


def _solve(
    a: TensorVariable,
    b: TensorVariable,
    p: TensorVariable,
    q: TensorVariable,
    guess: TensorVariable,
    factor: TensorVariable,
) -> TensorVariable:
    """Solve for ``x / (1 - x)``, by the smaller one of both functions.

    The logarithms of both are concave functions of the logit of ``x``, so that Newton's method
    converges from one side. Their second and third derivatives follow from the first, and make it
    Householder's method of fourth order.
    """
    one, half, most = (constant(p, n) for n in (1.0, 0.5, 8.0))
    precision = constant(p, 1e-16)
    below, goal = p <= q, pt.minimum(p, q)

    def step(all_odds: TensorVariable, errors: TensorVariable, *constants: TensorVariable) -> tuple:
        # Elements that have converged take no further time.
        places = pt.nonzero(errors > precision)[0]
        odds, a, b, goal, below, factor = (x[places] for x in (all_odds, *constants))
        y = one / (one + odds)
        x = odds * y
        lower, upper, density = both(a, b, x, y, factor, LONG)
        found = pt.switch(below, lower, upper)
        slope = pt.switch(below, density, -density) / found
        newton = precise.log(goal / found) / slope
        distance = a * y - b * x
        bend = distance - slope
        second = newton * bend
        third = newton * newton * (bend * bend - (a + b) * x * y - slope * bend)
        size = pt.maximum(pt.abs(second), pt.sqrt(pt.abs(third)))
        higher = newton * (one + half * second) / (one + second + constant(p, 1 / 6) * third)
        tame = (size < one) & (pt.abs(higher) < most)
        change = pt.switch(tame, higher, newton)
        # Where the function underflows, or is so small that the quotient overflows.
        is_finite = pt.abs(change) < constant(p, math.inf)
        change = pt.switch(is_finite, change, pt.switch(below, one, -one))
        change = pt.clip(change, -most, most)
        # Of the next change, as a share of x.
        left = pt.switch(tame, pt.abs(change) * y * size * size * size, one)
        all_odds = all_odds[places].set(odds * portable_exp(change))
        errors = errors[places].set(left)
        return (all_odds, errors), until(~pt.any(left > precision))

    # Runtimes that differ in the last bits of a guess start from the same number. Of the largest
    # parameters it would be many standard deviations away.
    is_exact = (a + b > constant(p, 1e9)) | (guess < constant(p, 1e-270))
    rounded = pt.switch(is_exact, guess, keep_upper_bits(guess))
    start = [rounded.flatten(), pt.ones_like(p).flatten()]
    constants = [x.flatten() for x in (a, b, goal, below, factor)]
    odds, errors = iterate(step, start, constants, n_steps=_STEPS)
    odds = pt.switch(errors <= precision, odds, constant(p, math.nan))
    return odds.reshape(p.shape, ndim=p.ndim)


def _guess(
    a: TensorVariable,
    b: TensorVariable,
    p: TensorVariable,
    q: TensorVariable,
    x: TensorVariable,
    y: TensorVariable,
    beta: TensorVariable,
) -> TensorVariable:
    """Guess ``x / (1 - x)`` from the first term ``x`` or ``y`` of a series next to 0 or 1.

    Where neither is small, from a normal quantile (M. Abramowitz and I. Stegun, Handbook of
    Mathematical Functions, 1964, 26.5.22), and far below the mean of a large ``a`` beside ``b``
    from the tail of the gamma distribution.
    """
    one, two, half = (constant(p, n) for n in (1.0, 2.0, 0.5))
    below = p <= q
    s = normal_quantile(pt.minimum(p, q))
    s = pt.switch(below, s, -s)
    r, t = (one / (two * pt.maximum(v, one) - one) for v in (a, b))
    third = constant(p, 1 / 3)
    k = (s * s * third - one) * half
    h = two / (r + t)
    root = s * pt.sqrt(pt.maximum(h + k, constant(p, 0.0))) / h
    w = root - (t - r) * (k + constant(p, 5 / 6) - two * third / h)
    inner = a / b * pt.exp(-two * w)
    near_zero = x * pt.maximum(b, one) < half
    near_one = y * pt.maximum(a, one) < half
    tail = -(pt.log(p) + beta + (b - one) * pt.log(a))
    in_tail = below & (b < constant(p, _SLIM) * a) & (tail > b + constant(p, 20.0))
    z = tail
    for _ in range(2):
        z = tail + (b - one) * pt.log(pt.maximum(z, one))
    # About 1 / (exp(t) - 1).
    t = z / (a + half * (b - one))
    of_tail = pt.exp(-t) * (one / t + half + t * constant(p, 1 / 12))
    inner = pt.switch(in_tail, of_tail, inner)
    guess = pt.switch(near_one & ~(near_zero & below), (one - y) / y, inner)
    guess = pt.switch(near_zero & (below | ~near_one), x / (one - x), guess)
    return pt.clip(guess, constant(p, 1e-307), constant(p, 1e18))
