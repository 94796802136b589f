"""Gauss-Legendre quadrature of the beta density, as `beta_integral` needs it.

The formula is exact to rounding errors on the interval where ``g <= 36``, for a first parameter of
24 and more.
"""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.conditional.op import ifelse
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.special.arithmetic import constant, split_rows
from pytensor_onnx.functions.special.gamma_density import log1p_less_argument
from pytensor_onnx.functions.special.portable_formulas import power_of_exp
from pytensor_onnx.ops.special import precise

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
