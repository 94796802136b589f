"""The inverse of the regularized incomplete beta function."""

import math

import pytensor.tensor as pt
from pytensor.scalar.math import BetaIncInv
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import constant
from pytensor_onnx.functions.special.beta_density import stirling_factor
from pytensor_onnx.functions.special.beta_integral import both
from pytensor_onnx.functions.special.beta_quadrature import LONG
from pytensor_onnx.functions.special.evaluation import in_float64
from pytensor_onnx.functions.special.gammaincinv import normal_quantile
from pytensor_onnx.functions.special.log1p import log1p
from pytensor_onnx.functions.special.portable import keep_upper_bits, portable_exp
from pytensor_onnx.ops import precise

# Steps after which elements that have not converged are NaN.
_STEPS = 40


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
    """Solve where the result is not next to 0 or 1, where one term of a series has all digits."""
    one, half = constant(p, 1.0), constant(p, 0.5)
    q = one - p
    factor = stirling_factor(a, b)
    # log(a B(a, b)); b B(a, b) is that times b / a.
    beta = -(a * log1p(b / a) + b * log1p(a / b) + pt.log(factor / a))
    least = (pt.log(p) + beta) / a
    rest = (pt.log(q) + (beta + pt.log(b / a))) / b
    x, y = pt.exp(least), pt.exp(rest)
    is_tiny = least < constant(p, -600.0)
    is_next_to_one = y * y * pt.maximum(a, one) < constant(p, 2e-17)
    is_known = is_tiny | is_next_to_one
    guess = _guess(a, b, p, q, x, y)
    # Of the uniform distribution the median is found at once.
    a, b, guess = (pt.switch(is_known, one, v) for v in (a, b, guess))
    p, q = (pt.switch(is_known, half, v) for v in (p, q))
    odds = _solve(a, b, p, q, guess, pt.switch(is_known, constant(p, 0.25), factor))
    value = pt.switch(is_next_to_one, one - y, odds / (one + odds))
    return pt.switch(is_tiny, x, value)


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
    rounded = pt.switch(a + b > constant(p, 1e9), guess, keep_upper_bits(guess))
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
) -> TensorVariable:
    """Guess ``x / (1 - x)`` from the first term ``x`` or ``y`` of a series next to 0 or 1.

    Where neither is small, from a normal quantile (M. Abramowitz and I. Stegun, Handbook of
    Mathematical Functions, 1964, 26.5.22).
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
    guess = pt.switch(near_one & ~(near_zero & below), (one - y) / y, inner)
    guess = pt.switch(near_zero & (below | ~near_one), x / (one - x), guess)
    return pt.clip(guess, constant(p, 1e-270), constant(p, 1e18))
