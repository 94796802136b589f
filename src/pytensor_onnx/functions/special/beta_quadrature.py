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
from pytensor_onnx.functions.special.portable import power_of_exp
from pytensor_onnx.ops import precise

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
        """Smallest first parameter that is not raised; smaller ones are raised by this number."""
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
    a: TensorVariable,
    b: TensorVariable,
    x: TensorVariable,
    y: TensorVariable,
    top: TensorVariable,
    is_first: TensorVariable | None = None,
    rule: Rule = PRECISE,
) -> Sums:
    """Sum the terms from ``a`` to ``top``, and integrate for ``top`` in the place of ``a``.

    The variable is ``q = tanh(u/8)``, in which everything is rational, and nothing cancels in
    ``g`` but the linear terms of two logarithms, of ``1 - y c`` and ``1 + x c``. With ``is_first``,
    the sums have derivatives by ``a`` where that is true, and by ``b`` elsewhere.
    """
    zero, one, two = (constant(x, n) for n in (0.0, 1.0, 2.0))
    mass, other = top * y, b * x
    d = mass - other
    is_large = pt.any(top + b > constant(x, _MODEST))
    part = constant(x, -_PART)
    curve = [
        two * (y - x),
        part * pt.switch(is_large, d, zero),
        part * pt.stack([top, b]),
        pt.stack([-y, x]),
        is_large,
    ]
    last = constant(x, rule.last)
    end, slope = _widest(d, mass, last), two * (mass + other)
    for _ in range(rule.searches):
        end = _closer_end(end, last, d, slope, *curve)

    def step(*values: TensorVariable) -> list[TensorVariable]:
        number, position, share, integral, _, total, term, *rest_of = values
        more, constants = rest_of[:n_more], rest_of[n_more:]
        both, after, x, end, *curve = constants[:9]
        point = _integrand(position * end, *curve)
        weight = share / point.rest * power_of_exp(point.exponent)
        if more:
            moment, logarithm, total_logarithm = more
            zero, is_large, is_first = constant(x, 0.0), curve[-1], constants[-1]
            logarithms = point.logarithms + pt.switch(is_large, point.z, zero)
            moment = moment + weight * pt.switch(is_first, *split_rows(logarithms, 2))
            total_logarithm = total_logarithm + term * logarithm
            less = pt.switch(is_first, constant(x, 1.0) / (after + number), zero)
            logarithm = logarithm + (constant(x, 1.0) / (both + number) - less)
            more = [moment, logarithm, total_logarithm]
        return [
            integral + weight,
            point.exponent,
            total + term,
            term * ((both + number) * x / (after + number)),
            *more,
        ]

    none = pt.zeros_like(x)
    n_more = 0 if is_first is None else 3
    integral, exponent, total, term, *more = iterate(
        step,
        [none, none, none, pt.ones_like(x), *[none] * n_more],
        [a + b, a + one, x, end, *curve, *([] if is_first is None else [is_first])],
        n_steps=rule.nodes,
        sequences=[pt.constant(v) for v in (np.arange(rule.raised), *rule.positions_and_shares())],
    )
    least, most = (constant(x, -_PART * share * rule.last) for share in (0.8, 1.7))
    found = (exponent < least) & (exponent > most)
    scale = pt.switch(found, end, constant(x, math.nan))
    moment, logarithm, total_logarithm = more or [none] * 3
    return Sums(total, term, scale * integral, scale * moment, logarithm, total_logarithm)


class _Integrand(NamedTuple):
    """A part of ``-g`` at a point ``q``, and the intermediate values of its formula."""

    exponent: TensorVariable
    rest: TensorVariable
    t: TensorVariable
    whole: TensorVariable
    divisor: TensorVariable
    z: TensorVariable
    logarithms: TensorVariable


def _integrand(
    q: TensorVariable,
    twice: TensorVariable,
    linear: TensorVariable,
    weights: TensorVariable,
    factors: TensorVariable,
    is_large: TensorVariable,
) -> _Integrand:
    one = constant(q, 1.0)
    square = q * q
    t = (q + q) / (one + square)
    whole = one + t * t
    divisor = whole + twice * t
    c = constant(q, 4.0) * t / divisor
    z = factors * c
    logarithms = ifelse(is_large, log1p_less_argument(z), precise.log(one + z))
    first, second = split_rows(weights * logarithms, 2)
    exponent = linear * c - (first + second)
    return _Integrand(exponent, one - square, t, whole, divisor, z, logarithms)


def _closer_end(
    end: TensorVariable,
    last: TensorVariable,
    d: TensorVariable,
    slope: TensorVariable,
    *curve: TensorVariable,
) -> TensorVariable:
    """Move closer to where the integrand is left out, by Newton's method."""
    point = _integrand(end, *curve)
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
