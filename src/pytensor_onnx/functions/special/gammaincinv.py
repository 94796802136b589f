"""The inverses of the regularized incomplete gamma functions."""

import math

import pytensor.tensor as pt
from pytensor.scalar.math import GammaIncCInv, GammaIncInv
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import constant, polynomial
from pytensor_onnx.functions.special.coefficients import Coefficients
from pytensor_onnx.functions.special.gamma_density import scaled_gamma_of_next
from pytensor_onnx.functions.special.gammainc import lower_or_upper
from pytensor_onnx.functions.special.gammaln import gammaln_of_positive, log_gamma_plus_one
from pytensor_onnx.functions.special.log1p import log1p
from pytensor_onnx.functions.special.portable_formulas import keep_upper_bits, portable_exp
from pytensor_onnx.functions.special.power import log_with_rest, root_of_exponential
from pytensor_onnx.functions.special.wide_evaluation import if_any_of_few, in_float64
from pytensor_onnx.ops.special import precise

# Steps after which elements that have not converged are NaN.
_STEPS = 40
# Logarithm of the numbers whose squares are lost beside one.
_LOG_TINY = -18.5
# Rational approximation of the normal quantile within 4.5e-4 (M. Abramowitz and I. Stegun,
# Handbook of Mathematical Functions, 1964, 26.2.23).
_QUANTILE_TOP: Coefficients = {"float64": (2.515517, 0.802853, 0.010328)}
_QUANTILE_BOTTOM: Coefficients = {"float64": (1.0, 1.432788, 0.189269, 0.001308)}


@define(GammaIncInv)
@in_float64
def gammaincinv(a: TensorVariable, p: TensorVariable) -> TensorVariable:
    """Inverse of the regularized lower incomplete gamma function in its second argument."""
    return _inverse(a, p, constant(p, 1.0) - p)


@define(GammaIncCInv)
@in_float64
def gammainccinv(a: TensorVariable, q: TensorVariable) -> TensorVariable:
    """Inverse of the regularized upper incomplete gamma function in its second argument."""
    return _inverse(a, constant(q, 1.0) - q, q)


def _inverse(a: TensorVariable, p: TensorVariable, q: TensorVariable) -> TensorVariable:
    """Solve ``P(a, x) = p`` where ``p <= q``, and else ``Q(a, x) = q``.

    Notes
    -----
    The logarithms of both functions are concave functions of ``log(x)``, so that Newton's method
    converges from one side; the second derivative, which follows from the first, makes it Halley's.
    """
    zero, one, half = (constant(p, n) for n in (0.0, 1.0, 0.5))
    infinity, nan = constant(p, math.inf), constant(p, math.nan)
    inside = (p > zero) & (q > zero) & (a > zero) & (a < infinity)
    some = pt.switch(inside, a, one)
    some_p, some_q = pt.switch(inside, p, half), pt.switch(inside, q, half)
    value = _solve(some, some_p, some_q)
    # The limit: the weight of a parameter of zero is at zero.
    value = pt.switch(inside, value, pt.switch(pt.eq(a, zero), zero, nan))
    value = pt.switch(pt.eq(p, zero), zero, pt.switch(pt.eq(q, zero), infinity, value))
    outside = (p < zero) | (q < zero) | (a < zero) | pt.isnan(a + p)
    return pt.switch(outside, nan, value)


def _solve(a: TensorVariable, p: TensorVariable, q: TensorVariable) -> TensorVariable:
    one, two, half = (constant(p, n) for n in (1.0, 2.0, 0.5))
    below = p <= q
    goal = pt.minimum(p, q)
    precision, most, back = (constant(p, n) for n in (1e-9, 1.5, -0.15))
    # Beyond this it would overflow, and serves no guess.
    log_gamma = gammaln_of_positive(pt.minimum(a, constant(p, 1e300)))
    # Bound the logarithm of the solution from below, by the first term of the series. Both of its
    # parts are small if `a` is.
    near = log_gamma_plus_one(pt.minimum(a, one))
    of_next = pt.switch(a < one, near, log_gamma + pt.log(a))
    log_least = (pt.switch(below, pt.log(p), log1p(-q)) + of_next) / a
    tiny = log_least < constant(p, _LOG_TINY)
    guess = pt.switch(tiny, one, _guess(a, q, below, goal, log_gamma, pt.exp(log_least)))
    given, a, goal = a, pt.switch(tiny, one, a), pt.switch(tiny, half, goal)

    def step(
        x: TensorVariable,
        change: TensorVariable,
        a: TensorVariable,
        goal: TensorVariable,
        below: TensorVariable,
        of_next: TensorVariable,
    ) -> tuple:
        found, factor = lower_or_upper(a, x, below, of_next)
        slope = pt.switch(below, one, -one) * (a * factor / found)
        distance = precise.log(found / goal)
        newton = distance / slope
        bend = a - x - slope
        halley = newton / (one - half * newton * bend)
        tame = pt.abs(newton * bend) < one
        new = -pt.switch(tame, halley, newton)
        # Far beyond the solution the functions underflow.
        new = pt.clip(pt.switch(pt.isnan(new), back, new), -most, most)
        # The next change is of the size of the cube of this one, and not worth its step.
        done = pt.abs(change) <= precision
        new = pt.switch(done, change, new)
        x = pt.switch(done, x, x * portable_exp(new))
        return (x, new), until(pt.all(pt.abs(new) <= precision))

    # Runtimes that differ in the last bits of a guess start from the same number, unless the
    # other bits place it many standard deviations away.
    guess = pt.switch(a > constant(p, 1e9), guess, keep_upper_bits(guess))
    start = [guess, pt.ones_like(p) * two]
    constants = [a, goal, below, scaled_gamma_of_next(a)]
    x, change = iterate(step, start, constants, n_steps=_STEPS)
    value = pt.switch(pt.abs(change) <= precision, x, constant(p, math.nan))
    return if_any_of_few(tiny, _of_series, value, [given, p, q, of_next])


def _of_series(
    _: TensorVariable,
    a: TensorVariable,
    p: TensorVariable,
    q: TensorVariable,
    of_next: TensorVariable,
) -> TensorVariable:
    """Solve by two terms of the series, with an exponent that is not rounded.

    ``of_next`` is ``log(gamma(a + 1))``. The solution may underflow.
    """
    one = constant(p, 1.0)
    rounding = (one - p) - q
    logarithm, rest = log_with_rest(p)
    x = root_of_exponential(a, logarithm, rest + rounding / p, of_next)
    return x + x * (x / (a + one))


def normal_quantile(q: TensorVariable) -> TensorVariable:
    """Approximate the number that normal variates exceed with probability ``q <= 1/2``."""
    t = pt.sqrt(constant(q, -2.0) * pt.log(q))
    return t - polynomial(t, _QUANTILE_TOP) / polynomial(t, _QUANTILE_BOTTOM)


def _guess(
    a: TensorVariable,
    q: TensorVariable,
    below: TensorVariable,
    share: TensorVariable,
    log_gamma: TensorVariable,
    least: TensorVariable,
) -> TensorVariable:
    """Guess from quantiles of the gamma distribution, and next to infinity from its tail."""
    zero, one = constant(q, 0.0), constant(q, 1.0)
    s = normal_quantile(share)
    s = pt.switch(below, -s, s)
    # The cube root is nearly normal (E. B. Wilson and M. M. Hilferty, PNAS 17 (1931) 684-688).
    root = one - constant(q, 1 / 9) / a + s / (constant(q, 3.0) * pt.sqrt(a))
    cubed = pt.switch(a < one, zero, a * root * root * root)
    y = -(pt.log(q) + log_gamma)
    tail = y + (a - one) * pt.log(pt.maximum(y, one))
    tail = y + (a - one) * pt.log(pt.maximum(tail, one))
    in_tail = ~below & (y > pt.switch(a < one, one, a + constant(q, 20.0)))
    return pt.switch(in_tail, tail, pt.maximum(cubed, least))
