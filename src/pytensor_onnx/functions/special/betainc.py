"""The regularised incomplete beta function."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.conditional.op import ifelse
from pytensor.scalar.math import BetaInc
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import (
    add_with_error,
    constant,
    if_any_of_few,
    split_rows,
    where_any,
    widened,
)
from pytensor_onnx.functions.special.exponential import (
    exp,
    expm1,
    expm1_near_zero,
    exponent_with_rest,
    log1p,
    log_of_normal_with_rest,
    log_with_rest,
    portable_log,
    power_of_exp,
    product_with_rest,
    quotient_with_rest,
    times_exponential,
)
from pytensor_onnx.functions.special.gamma import scaled_gamma
from pytensor_onnx.functions.special.gammainc import log1p_less_argument
from pytensor_onnx.ops.special import precise

# Gauss-Legendre quadrature of the beta density, as `beta_integral` needs it.
#
# The formula is exact to rounding errors on the interval where ``g <= 36``, for a first parameter
# of 24 and more.

# The part of an exponent that `power_of_exp` takes.
_PART = 1 / 64
# Up to this sum of both parameters nothing is lost where logarithms cancel.
_MODEST = 150.0


@dataclass(frozen=True)
class Rule:
    """A formula, and the interval for it.

    Attributes
    ----------
    nodes
        Number of points, and of the terms by which a small parameter is raised: one loop does both.
    last
        The range ends where the integrand is below ``exp(-last)`` of its largest value.
    searches
        Steps of Newton's method for that end.
    is_exact
        Whether tiny results have all digits.
    """

    nodes: int
    last: float
    searches: int
    is_exact: bool = False

    @property
    def raised(self) -> float:
        """Parameters ``a`` below this bound are increased by it."""
        return float(self.nodes)

    def positions_and_shares(self) -> tuple[np.ndarray, np.ndarray]:
        """Return points between 0 and 1, and weights for ``du = 8 dq / (1 - q**2)``."""
        nodes, weights = np.polynomial.legendre.leggauss(self.nodes)
        return (nodes + 1) / 2, 4 * weights


PRECISE = Rule(nodes=24, last=36.0, searches=2, is_exact=True)
# For steps of iterations.
LONG = replace(PRECISE, is_exact=False)
# For results of float32: within 1e-9.
SHORT = Rule(nodes=14, last=22.0, searches=1)


class Sums(NamedTuple):
    """Terms that raise ``a``, and the integral for the raised ``a``.

    The others are what derivatives need: the integral times the derivative of the logarithm of the
    integrand, the derivative of the logarithm of the last term, and the terms times theirs.
    """

    total: TensorVariable
    term: TensorVariable
    integral: TensorVariable
    moment: TensorVariable
    slope: TensorVariable
    slopes: TensorVariable


def integrate(
    of: tuple[TensorVariable, TensorVariable, TensorVariable, TensorVariable],
    top: TensorVariable,
    d: TensorVariable,
    is_first: TensorVariable | None = None,
    rule: Rule = PRECISE,
) -> Sums:
    """Sum the terms from ``a`` to ``top``, and integrate for ``top`` in the place of ``a``.

    The operands ``a``, ``b``, ``x`` and ``y = 1 - x`` are given together.
    The variable is ``q = tanh(u/8)``, in which everything is rational, and nothing cancels in
    ``g`` but the linear terms of two logarithms, of ``1 - y c`` and ``1 + x c``. With ``is_first``,
    the sums have derivatives by ``a`` where that is true, and by ``b`` elsewhere. ``d`` is
    ``a y - b x``.
    """
    a, b, x, y = of
    none = pt.zeros_like(x)
    end, curve = _interval(b, x, y, top, pt.switch(top > a, top * y - b * x, d), rule)
    sums, slopes = _Partial(none, none, none, pt.ones_like(x)), _Slopes(none, none, none)
    operands = _Operands(a + b, a + constant(x, 1.0), x, end, curve)
    steps = [pt.constant(v) for v in (np.arange(rule.raised), *rule.positions_and_shares())]
    if is_first is None:
        [sums] = iterate(_add, [sums], [operands], sequences=steps, n_steps=rule.nodes)
    else:
        start, constants = [sums, slopes], [operands, is_first]
        sums, slopes = iterate(
            _add_with_slopes, start, constants, sequences=steps, n_steps=rule.nodes
        )
    least, most = (constant(x, -_PART * share * rule.last) for share in (0.8, 1.7))
    found = (sums.exponent < least) & (sums.exponent > most)
    scale = pt.switch(found, end, constant(x, math.nan))
    return Sums(
        sums.total,
        sums.term,
        scale * sums.integral,
        scale * slopes.moment,
        slopes.logarithm,
        slopes.total,
    )


class _Curve(NamedTuple):
    """The numbers of the formula for ``g``."""

    twice: TensorVariable
    linear: TensorVariable
    weights: TensorVariable
    factors: TensorVariable
    is_large: TensorVariable


class _Operands(NamedTuple):
    """The numbers that are the same at all nodes: ``a + b``, ``a + 1``, ``x``, the interval."""

    both: TensorVariable
    after: TensorVariable
    x: TensorVariable
    end: TensorVariable
    curve: _Curve


class _Partial(NamedTuple):
    """Sums up to a node, the last exponent and the next term."""

    integral: TensorVariable
    exponent: TensorVariable
    total: TensorVariable
    term: TensorVariable


class _Slopes(NamedTuple):
    """The moment of the integral, the slope of the next term, and the sum of those before."""

    moment: TensorVariable
    logarithm: TensorVariable
    total: TensorVariable


def _interval(
    b: TensorVariable,
    x: TensorVariable,
    y: TensorVariable,
    top: TensorVariable,
    d: TensorVariable,
    rule: Rule,
) -> tuple[TensorVariable, _Curve]:
    """Return the end of the interval, and the curve of the integrand."""
    zero, two = constant(x, 0.0), constant(x, 2.0)
    mass, other = top * y, b * x
    is_large = pt.any(top + b > constant(x, _MODEST))
    part = constant(x, -_PART)
    curve = _Curve(
        twice=two * (y - x),
        linear=part * pt.switch(is_large, d, zero),
        weights=part * pt.stack([top, b]),
        factors=pt.stack([-y, x]),
        is_large=is_large,
    )
    last = constant(x, rule.last)
    end, slope = _widest(d, mass, last), two * (mass + other)
    for _ in range(rule.searches):
        end = _closer_end(end, last, d, slope, curve)
    return end, curve


def _add(
    number: TensorVariable,
    position: TensorVariable,
    share: TensorVariable,
    sums: _Partial,
    operands: _Operands,
) -> list[_Partial]:
    """Add a term, and a node of the quadrature."""
    point = _integrand(position * operands.end, operands.curve)
    return [_next_sums(number, _weight(share, point), point.exponent, sums, operands)]


def _add_with_slopes(
    number: TensorVariable,
    position: TensorVariable,
    share: TensorVariable,
    sums: _Partial,
    slopes: _Slopes,
    operands: _Operands,
    is_first: TensorVariable,
) -> list[_Partial | _Slopes]:
    """Add a term and a node with their derivatives."""
    zero, one = constant(share, 0.0), constant(share, 1.0)
    point = _integrand(position * operands.end, operands.curve)
    weight = _weight(share, point)
    logarithms = point.logarithms + pt.switch(operands.curve.is_large, point.z, zero)
    less = pt.switch(is_first, one / (operands.after + number), zero)
    following = _Slopes(
        moment=slopes.moment + weight * pt.switch(is_first, *split_rows(logarithms, 2)),
        logarithm=slopes.logarithm + (one / (operands.both + number) - less),
        total=slopes.total + sums.term * slopes.logarithm,
    )
    return [_next_sums(number, weight, point.exponent, sums, operands), following]


def _weight(share: TensorVariable, point: "_Integrand") -> TensorVariable:
    """Return the integrand at a node times its weight."""
    return share / point.rest * power_of_exp(point.exponent)


def _next_sums(
    number: TensorVariable,
    weight: TensorVariable,
    exponent: TensorVariable,
    sums: _Partial,
    operands: _Operands,
) -> _Partial:
    ratio = (operands.both + number) * operands.x / (operands.after + number)
    return _Partial(
        integral=sums.integral + weight,
        exponent=exponent,
        total=sums.total + sums.term,
        term=sums.term * ratio,
    )


class _Integrand(NamedTuple):
    """A part of ``-g`` at a point ``q``, and the intermediate values of its formula."""

    exponent: TensorVariable
    rest: TensorVariable
    t: TensorVariable
    whole: TensorVariable
    divisor: TensorVariable
    z: TensorVariable
    logarithms: TensorVariable


def _integrand(q: TensorVariable, curve: _Curve) -> _Integrand:
    one = constant(q, 1.0)
    square = q * q
    t = (q + q) / (one + square)
    whole = one + t * t
    divisor = whole + curve.twice * t
    c = constant(q, 4.0) * t / divisor
    z = curve.factors * c
    logarithms = ifelse(curve.is_large, log1p_less_argument(z), precise.log(one + z))
    first, second = split_rows(curve.weights * logarithms, 2)
    exponent = curve.linear * c - (first + second)
    return _Integrand(exponent, one - square, t, whole, divisor, z, logarithms)


def _closer_end(
    end: TensorVariable,
    last: TensorVariable,
    d: TensorVariable,
    slope: TensorVariable,
    curve: _Curve,
) -> TensorVariable:
    """Move closer to where the integrand is left out, by Newton's method."""
    point = _integrand(end, curve)
    excess = (point.exponent + constant(end, _PART) * last) * point.divisor * point.rest
    return end + constant(end, 0.125 / _PART) * excess / (d * point.whole + slope * point.t)


def _widest(d: TensorVariable, mass: TensorVariable, last: TensorVariable) -> TensorVariable:
    """Guess ``tanh(u/8)`` where ``g`` is ``last``.

    It follows from ``last = d u`` or ``exp(u) - 1 = s + sqrt(s)``.
    """
    one = constant(d, 1.0)
    spread = (last + last) / mass
    spread = spread + pt.sqrt(spread)
    root = pt.sqrt(one + spread)
    divisor = one + pt.sqrt(root)
    wide = spread / ((one + root) * (divisor * divisor))
    return pt.minimum(wide, constant(d, 1 / 8) * last / pt.maximum(d, constant(d, 0.0)))


@define(BetaInc)
def betainc(a: TensorVariable, b: TensorVariable, x: TensorVariable) -> TensorVariable:
    """Regularized incomplete beta function, in float64 for float32 too, by a shorter quadrature.

    NaN outside of the domain, and where ``a`` and ``b`` are both zero or both infinite.
    """
    of_rule = partial(_betainc, SHORT if x.dtype == "float32" else PRECISE)
    return widened(of_rule)(a, b, x)


def _betainc(rule: Rule, a: TensorVariable, b: TensorVariable, x: TensorVariable) -> TensorVariable:
    zero, one, half = (constant(x, n) for n in (0.0, 1.0, 0.5))
    infinity, nan = constant(x, math.inf), constant(x, math.nan)
    smallest = pt.minimum(pt.minimum(a, b), x)
    inside = (smallest > zero) & (pt.maximum(a, b) < infinity) & (x < one)
    some_a, some_b, some = (pt.switch(inside, v, n) for v, n in ((a, one), (b, one), (x, half)))
    if x.dtype == "float32":
        value = betainc_of_float32(some_a, some_b, some)
    else:
        factor = stirling_factor(some_a, some_b)
        value = both(some_a, some_b, some, one - some, factor, rule).lower
    is_zero = pt.eq(a, infinity) | pt.eq(b, zero)
    is_one = pt.eq(b, infinity) | pt.eq(a, zero)
    is_valid = (smallest >= zero) & (x <= one) & ~(is_zero & is_one)
    is_zero = pt.eq(x, zero) | (is_zero & (x < one))
    is_one = pt.eq(x, one) | is_one
    value = pt.switch(is_zero, zero, pt.switch(is_one, one, value))
    return pt.switch(is_valid, value, nan)


# The integral of the beta density up to a point, by one quadrature for all parameters.
#
# With ``t = x exp(-u) / (y + x exp(-u))``, where ``y = 1 - x``, the incomplete beta function is
#
#     I_x(a, b) = x**a y**b / B(a, b) * integral of exp(-g(u)) over u > 0
#     g(u) = a u + (a + b) log(y + x exp(-u))
#
# (Euler's integral, DLMF 15.6.1, in terms of the logit of ``t``). The integrand is analytic for
# ``|Im u| < pi`` and ``g`` is convex, increasing where ``x`` is at most ``a / (a + b)``. If ``a``
# is not small, a Gauss-Legendre formula on an interval is exact to rounding errors, for any ``b``
# (`beta_quadrature`). A small ``a`` is raised by positive terms (DLMF 8.17.20).

TERMS = 18


class Both(NamedTuple):
    """``I_x(a, b)``, ``I_y(b, a)``, which is one less it, and the density in the logit of ``x``."""

    lower: TensorVariable
    upper: TensorVariable
    density: TensorVariable


def both(
    a: TensorVariable,
    b: TensorVariable,
    x: TensorVariable,
    y: TensorVariable,
    factor: TensorVariable,
    rule: Rule = PRECISE,
) -> Both:
    """Integrate the side of ``x`` that has less weight.

    ``y`` is ``1 - x``, and ``factor`` the `stirling_factor` of the parameters. Of a small parameter
    the weight is at its own end, also beyond the mean.
    """
    one = constant(x, 1.0)
    is_upper = (a * y < b * x) & ((b > one) | (a < b))
    is_upper |= (a < b) & (a <= one) & (a * pt.log(x) > constant(x, -0.5))
    part, slope = _lower(
        pt.switch(is_upper, b, a),
        pt.switch(is_upper, a, b),
        pt.switch(is_upper, y, x),
        pt.switch(is_upper, x, y),
        factor,
        rule,
    )
    rest = one - part
    return Both(pt.switch(is_upper, rest, part), pt.switch(is_upper, part, rest), slope)


class Split(NamedTuple):
    """Where the quadrature ends and a series begins, and the raised first parameter."""

    top: TensorVariable
    is_raised: TensorVariable
    x: TensorVariable
    y: TensorVariable
    ratio: TensorVariable
    is_beyond: TensorVariable

    def logarithms(self) -> list[TensorVariable]:
        """Logarithms of ``x`` and of ``ratio``."""
        return split_rows(portable_log(pt.stack([self.x, self.ratio])), 2)

    def growths(
        self, a: TensorVariable, b: TensorVariable, logarithms: Sequence[TensorVariable]
    ) -> list[TensorVariable]:
        """``x**-a - 1``, corrected where ``x`` rounds to one, and ``ratio**b - 1``."""
        log_x, log_ratio = logarithms
        rounding = self.y - (constant(self.x, 1.0) - self.x)
        return split_rows(expm1(pt.stack([a * (rounding - log_x), b * log_ratio])), 2)


def split(
    a: TensorVariable,
    b: TensorVariable,
    x: TensorVariable,
    y: TensorVariable,
    rule: Rule = PRECISE,
) -> Split:
    """Limit the quadrature to ``y >= 1 / a`` where ``b <= 1``: the interval would be long."""
    zero, one = constant(x, 0.0), constant(x, 1.0)
    raised = constant(x, rule.raised)
    is_raised = a < raised
    top = pt.switch(is_raised, a + raised, a)
    least = one / top
    is_beyond = (b <= one) & (y < least)
    start = pt.switch(is_beyond, one - least, x)
    # Exact complements, unless the first one rounds to one.
    rest = one - start
    rest = pt.switch(is_beyond, pt.switch(rest > zero, rest, least), y)
    return Split(top, is_raised, start, rest, pt.switch(is_beyond, y / rest, one), is_beyond)


def _lower(
    a: TensorVariable,
    b: TensorVariable,
    x: TensorVariable,
    y: TensorVariable,
    factor: TensorVariable,
    rule: Rule,
) -> tuple[TensorVariable, TensorVariable]:
    """Compute ``I_x(a, b)``, where ``b <= 1`` or ``x <= a / (a + b)``, and the density."""
    parts = split(a, b, x, y, rule)
    top, is_beyond, ratio = parts.top, parts.is_beyond, parts.ratio
    of_start = a, b, parts.x, parts.y
    d = distance_from_mean(*of_start) if rule.is_exact else a * parts.y - b * parts.x
    at_split = density(*of_start, d, factor, rule.is_exact)
    sums = integrate(of_start, top, d, rule=rule)
    raised = sums.total + sums.term * top * sums.integral
    value = pt.switch(parts.is_raised, raised, a * sums.integral) * (at_split / a)
    growth, decrease = parts.growths(a, b, parts.logarithms())
    scaled = at_split + at_split * growth
    more = scaled * _beyond(a, b, parts.y, ratio, decrease)
    # Not a power of x, which is rounded: a may be large.
    slope = (scaled + scaled * decrease) * pt.exp(a * log1p(-y))
    slope = pt.switch(is_beyond, slope, at_split)
    return where_any(is_beyond, value + more, value), slope


class _Series(NamedTuple):
    """Parameters of the series of `_beyond`."""

    a: TensorVariable
    b: TensorVariable
    y: TensorVariable
    ratio: TensorVariable


class _Terms(NamedTuple):
    """Sum of the terms of a series, and the factors of the last one."""

    total: TensorVariable
    coefficient: TensorVariable
    power: TensorVariable


def _beyond(
    a: TensorVariable,
    b: TensorVariable,
    y: TensorVariable,
    ratio: TensorVariable,
    decrease: TensorVariable,
) -> TensorVariable:
    """Integrate ``(1 - s)**(a-1) (s/y)**b / s`` from ``ratio * y`` to ``y``, for ``a y <= 1``.

    The first factor is expanded in powers of ``s``. ``decrease`` is ``ratio**b - 1``.
    """
    one = constant(y, 1.0)

    def step(number: TensorVariable, before: _Terms, of: _Series) -> list[_Terms]:
        coefficient = before.coefficient * ((number - of.a) * of.y / number)
        power = before.power * of.ratio
        total = before.total + coefficient * (one - power) / (of.b + number)
        return [_Terms(total, coefficient, power)]

    [terms] = iterate(
        step,
        [_Terms(-decrease / b, pt.ones_like(y), one + decrease)],
        [_Series(a, b, y, ratio)],
        n_steps=TERMS,
        sequences=[pt.constant(np.arange(1.0, TERMS + 1))],
    )
    return terms.total


# The incomplete beta function in float32, without loops, for files without float64.
#
# The formulas are those of `beta_integral` and `beta_quadrature`, at all nodes at once.

_NODES = SHORT.nodes


def betainc_of_float32(a: TensorVariable, b: TensorVariable, x: TensorVariable) -> TensorVariable:
    """``I_x(a, b)`` for positive parameters and ``0 < x < 1``.

    The error is below 5e-7 for parameters up to 100, and 3e-6 up to 10,000.
    """
    one = constant(x, 1.0)
    y = one - x
    # The side of less weight; a short one where the interval would be long.
    is_upper = (a * y < b * x) | ((b <= one) & (y * _raised(a) < one))
    part = _lower_of_float32(
        pt.switch(is_upper, b, a),
        pt.switch(is_upper, a, b),
        pt.switch(is_upper, y, x),
        pt.switch(is_upper, x, y),
    )
    return pt.switch(is_upper, one - part, part)


def _raised(a: TensorVariable) -> TensorVariable:
    count = constant(a, _NODES)
    return pt.switch(a < count, a + count, a)


def _lower_of_float32(
    a: TensorVariable, b: TensorVariable, x: TensorVariable, y: TensorVariable
) -> TensorVariable:
    """Sum the terms that raise a small ``a``, and integrate for the raised one."""
    top, term, total = _raised(a), pt.ones_like(x), pt.zeros_like(x)
    for number in range(_NODES):
        total = total + term
        ratio = (a + b + constant(x, number)) * x / (a + constant(x, number + 1))
        term = term * ratio
    integral = _integral(top, b, x, y)
    value = pt.switch(a < constant(a, _NODES), total + term * top * integral, a * integral)
    return value * (_density(a, b, x, y) / a)


def _density(
    a: TensorVariable, b: TensorVariable, x: TensorVariable, y: TensorVariable
) -> TensorVariable:
    """``x**a y**b / B(a, b)``, where linear terms of both logarithms cancel."""
    d = a * y - b * x
    part = d / a
    ratio = x * ((a + b) / a)
    # The logarithm of a small ratio cancels in the difference from one.
    logarithm = pt.switch(ratio < constant(x, 0.5), pt.log(ratio), pt.log1p(-part))
    exponent = b * _log1p_less_argument(d / b) + a * (logarithm + part)
    return pt.exp(exponent) * stirling_factor(a, b)


def _integral(
    top: TensorVariable, b: TensorVariable, x: TensorVariable, y: TensorVariable
) -> TensorVariable:
    """Integrate over ``q = tanh(u/8)`` up to an end that one step of Newton's method improves."""
    one, last = constant(x, 1.0), constant(x, SHORT.last)
    d, mass, other = top * y - b * x, top * y, b * x
    spread = (last + last) / mass
    spread = spread + pt.sqrt(spread)
    root = pt.sqrt(one + spread)
    divisor = one + pt.sqrt(root)
    end = spread / ((one + root) * (divisor * divisor))
    end = pt.minimum(end, constant(x, 0.125) * last / pt.maximum(d, constant(x, 0.0)))
    exponent, rest, t, whole, divisor = _integrand_of_float32(end, top, b, x, y, d)
    slope = (mass + other) + (mass + other)
    excess = (last + exponent) * divisor * rest
    end = end + constant(x, 0.125) * excess / (d * whole + slope * t)

    nodes, shares = (pt.constant(v.astype("float32")) for v in SHORT.positions_and_shares())
    points = end[..., None] * nodes
    exponent, rest, *_ = _integrand_of_float32(points, *(v[..., None] for v in (top, b, x, y, d)))
    return end * pt.sum(shares / rest * pt.exp(exponent), axis=-1)


def _integrand_of_float32(
    q: TensorVariable,
    top: TensorVariable,
    b: TensorVariable,
    x: TensorVariable,
    y: TensorVariable,
    d: TensorVariable,
) -> tuple[TensorVariable, ...]:
    """Return ``-g`` at ``q``, and the parts of its derivative."""
    one = constant(q, 1.0)
    square = q * q
    t = (q + q) / (one + square)
    whole = one + t * t
    divisor = whole + (y - x + (y - x)) * t
    c = constant(q, 4.0) * t / divisor
    exponent = top * _log1p_less_argument(-y * c) + b * _log1p_less_argument(x * c) - d * c
    return exponent, one - square, t, whole, divisor


def _log1p_less_argument(z: TensorVariable) -> TensorVariable:
    return pt.log1p(z) - z


# Up to this size of an exponent roundings make errors of less than 1e-13.
_LARGE = 60.0
# Roundings of ``a y - b x`` count where the sum of two large parameters is between these bounds.
_ROUNDED, _LARGEST = 1e3, 1e15


def distance_from_mean(
    a: TensorVariable, b: TensorVariable, x: TensorVariable, y: TensorVariable
) -> TensorVariable:
    """Compute ``a y - b x``, less its rounding errors and the error of ``y = 1 - x`` if they count.

    They are as large as the last bit of a parameter, and the standard deviation as the root of one.
    """
    both = a + b
    is_rounded = (both > constant(x, _ROUNDED)) & (both < constant(x, _LARGEST))
    is_rounded &= pt.minimum(a, b) > constant(x, 100.0)
    return if_any_of_few(is_rounded, _exact_distance, a * y - b * x, [a, b, x, y])


def _exact_distance(
    _: TensorVariable, a: TensorVariable, b: TensorVariable, x: TensorVariable, y: TensorVariable
) -> TensorVariable:
    products, errors = product_with_rest(pt.stack([a, b]), pt.stack([y, x]), constant(x, 0.0))
    (first, second), (first_error, second_error) = (split_rows(v, 2) for v in (products, errors))
    difference, error = add_with_error(first, -second)
    moved = pt.switch(x > y, -b, a) * _rounding_of_sum(x, y)
    return difference + (error + (first_error - second_error) + moved)


def _rounding_of_sum(x: TensorVariable, y: TensorVariable) -> TensorVariable:
    """``1 - (x + y)``, exactly. The larger one is rounded, if any."""
    total, error = add_with_error(x, y)
    return (constant(x, 1.0) - total) - error


def density(
    a: TensorVariable,
    b: TensorVariable,
    x: TensorVariable,
    y: TensorVariable,
    d: TensorVariable,
    factor: TensorVariable,
    is_exact: bool = False,
) -> TensorVariable:
    """``x**a y**b / B(a, b)``.

    With ``is_exact``, no exponent is rounded where it is large, and results are tiny. Elsewhere,
    with the `distance_from_mean` ``d``, ``x = p (1 - d/a)`` and ``y = q (1 + d/b)`` for ``p = a /
    (a + b)`` and ``q = 1 - p``. Linear terms of both logarithms cancel. The errors of the
    logarithms, which are amplified, are the same ones in all runtimes.
    """
    one = constant(x, 1.0)
    # In the order in which no quotient overflows.
    first, second = pt.switch(a < one, x, a + b), pt.switch(a < one, a + b, x)
    ratio = second * (first / a)
    above = d / b
    part = b / a
    logarithms = log1p_less_argument(
        pt.stack([above, -d / a, part]),
        pt.stack([one + above, ratio, one + part]),
        log=portable_log,
    )
    of_above, of_ratio, of_part = split_rows(logarithms, 3)
    rest = pt.switch(above < constant(x, 1e300), b * of_above, -d)
    whole = rest + a * of_ratio
    # The logarithm of a power has a rest where roundings of the base hardly count, or are none.
    is_slim = b <= one
    by_power = is_slim | (a <= constant(x, 64.0)) | (ratio < constant(x, 0.3))
    by_power &= a < constant(x, 1e15)
    is_slim &= by_power
    exponent = pt.switch(by_power, rest + d, whole)
    # Of the closer one to 1 the rounding counts.
    rounding = pt.switch(x > y, ((one - x) - y) / x, constant(x, 0.0))
    slim = exponent + (b + a * (of_part + rounding))
    # Of the largest parameters exponents are infinite, and have no rest.
    exponent = pt.maximum(pt.switch(is_slim, slim, exponent), constant(x, -1e300))
    base = pt.switch(by_power, pt.switch(is_slim, x, ratio), one)
    # A quotient may leave the range of floats.
    base = pt.clip(base, constant(x, 5e-324), constant(x, 1e270)) * constant(x, 2.0**60)
    logarithm = log_of_normal_with_rest(base, constant(x, -60.0))
    exponents = exponent_with_rest(pt.switch(by_power, a, one), *logarithm, exponent)
    value = exp(*exponents) * factor
    if not is_exact:
        return value
    is_large = (whole < constant(x, -_LARGE)) & (whole > constant(x, -740.0))
    return if_any_of_few(is_large, _exact_density, value, [a, b, x, y, factor])


def _exact_density(
    value: TensorVariable,
    a: TensorVariable,
    b: TensorVariable,
    x: TensorVariable,
    y: TensorVariable,
    factor: TensorVariable,
) -> TensorVariable:
    """Density by ``a log(x/p) + b log(y/q)``, with the rounding errors of all its parts."""
    zero = constant(x, 0.0)
    rounding = _rounding_of_sum(x, y)
    is_first = x > y
    both = add_with_error(a, b)
    roundings = pt.stack([pt.switch(is_first, rounding, zero), pt.switch(is_first, zero, rounding)])
    weights = pt.stack([a, b])
    logarithms = log_of_share(weights, pt.stack([x, y]), roundings, both)
    parts, rests = product_with_rest(weights, *logarithms)
    exponent, error = add_with_error(*split_rows(parts, 2))
    exponent, rest = add_with_error(exponent, error + pt.add(*split_rows(rests, 2)))
    exact = times_exponential(factor, exponent, rest)
    # Rounding errors of the tiniest and of the largest numbers have no floats.
    return pt.switch(pt.isnan(exact), value, exact)


def log_of_share(
    a: TensorVariable,
    x: TensorVariable,
    rounding: TensorVariable,
    both: tuple[TensorVariable, TensorVariable],
) -> tuple[TensorVariable, TensorVariable]:
    """Return ``log((x + rounding) (a + b) / a)`` in two parts, of two parts of ``a + b``."""
    product, error = product_with_rest(x, *both)
    base, base_rest = quotient_with_rest(product, error + rounding * both[0], a)
    logarithm, rest = log_with_rest(base)
    return logarithm, rest + base_rest / base


def stirling_factor(a: TensorVariable, b: TensorVariable) -> TensorVariable:
    """``x**a y**b / B(a, b)`` at ``x = a / (a + b)``, where that is the largest."""
    of_a, of_b, of_sum = split_rows(_stirling(pt.stack([a, b, a + b])), 3)
    return of_a * (of_b / of_sum)


def _stirling(y: TensorVariable) -> TensorVariable:
    """``y**y exp(-y) / gamma(y)``, from ``gamma(y + 1)`` if ``y < 1``."""
    one = constant(y, 1.0)
    is_small = y < one
    z = pt.switch(is_small, y + one, y)
    # The power ``(y/z)**y``, from 1/2 to 1.
    power = one + expm1_near_zero(y * precise.log(y / z))
    shifted = constant(y, math.e) * y * power
    return pt.switch(is_small, shifted, z) / (pt.sqrt(z) * scaled_gamma(z))
