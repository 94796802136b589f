"""The integral of the beta density up to a point, by one quadrature for all parameters.

With ``t = x exp(-u) / (y + x exp(-u))``, where ``y = 1 - x``, the incomplete beta function is

    I_x(a, b) = x**a y**b / B(a, b) * integral of exp(-g(u)) over u > 0
    g(u) = a u + (a + b) log(y + x exp(-u))

(Euler's integral, DLMF 15.6.1, in terms of the logit of ``t``). The integrand is analytic for
``|Im u| < pi`` and ``g`` is convex, increasing where ``x`` is at most ``a / (a + b)``. If ``a`` is
not small, a Gauss-Legendre formula on an interval is exact to rounding errors, for any ``b``
(`beta_quadrature`). A small ``a`` is raised by positive terms (DLMF 8.17.20).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.special.arithmetic import constant, split_rows
from pytensor_onnx.functions.special.beta_density import density, distance_from_mean
from pytensor_onnx.functions.special.beta_quadrature import PRECISE, Rule, integrate
from pytensor_onnx.functions.special.expm1 import expm1
from pytensor_onnx.functions.special.log1p import log1p
from pytensor_onnx.functions.special.portable_formulas import portable_log
from pytensor_onnx.functions.special.wide_evaluation import where_any

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
