"""The integral of the beta density up to a point, by one quadrature for all parameters.

With ``t = x exp(-u) / (y + x exp(-u))``, where ``y = 1 - x``, the incomplete beta function is

    I_x(a, b) = x**a y**b / B(a, b) * integral of exp(-g(u)) over u > 0
    g(u) = a u + (a + b) log(y + x exp(-u))

(Euler's integral, DLMF 15.6.1, in terms of the logit of ``t``). The integrand is analytic for
``|Im u| < pi`` and ``g`` is convex, increasing where ``x`` is at most ``a / (a + b)``. If ``a`` is
not small, a Gauss-Legendre formula on the interval where ``g <= 36`` is exact to rounding errors,
for any ``b``. A small ``a`` is raised by positive terms (DLMF 8.17.20).
"""

import math
from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.conditional.op import ifelse
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.special.arithmetic import constant, split_rows
from pytensor_onnx.functions.special.beta_density import density
from pytensor_onnx.functions.special.evaluation import where_any
from pytensor_onnx.functions.special.gammainc import log1p_less_argument
from pytensor_onnx.functions.special.portable import portable_expm1, portable_log, power_of_exp
from pytensor_onnx.ops import precise

# The integrand is left out where it is below exp(-36) of its largest value.
_LAST = 36.0
# Steps of Newton's method for the point where it is so small.
_SEARCHES = 2
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
# On the interval from 0 to 1, with du = 8 dq / (1 - q**2).
_POSITIONS, _SHARES = (_NODES + 1) / 2, 4 * _WEIGHTS
# As many steps as positions, so that one loop does both.
RAISED = float(len(_POSITIONS))
# The part of an exponent that `power_of_exp` takes.
_PART = 1 / 64
# Up to this sum of both parameters nothing is lost where logarithms cancel.
_MODEST = 150.0
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

    def power(self, a: TensorVariable) -> TensorVariable:
        """``x**-a``, corrected to first order where ``x`` rounds to one."""
        one = constant(self.x, 1.0)
        return pt.pow(self.x, -a) * pt.exp(a * (self.y - (one - self.x)))


def split(a: TensorVariable, b: TensorVariable, x: TensorVariable, y: TensorVariable) -> Split:
    """Limit the quadrature to ``y >= 1 / a`` where ``b <= 1``: the interval would be long."""
    zero, one = constant(x, 0.0), constant(x, 1.0)
    is_raised = a < constant(x, RAISED)
    top = pt.switch(is_raised, a + constant(x, RAISED), a)
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
) -> tuple[TensorVariable, TensorVariable]:
    """Compute ``I_x(a, b)``, where ``b <= 1`` or ``x <= a / (a + b)``, and the density."""
    parts = split(a, b, x, y)
    top, is_beyond, ratio = parts.top, parts.is_beyond, parts.ratio
    at_split = density(a, b, parts.x, parts.y, factor)
    sums = integrate(a, b, parts.x, parts.y, top)
    raised = sums.total + sums.term * top * sums.integral
    value = pt.switch(parts.is_raised, raised, a * sums.integral) * (at_split / a)
    more = at_split * parts.power(a) * _beyond(a, b, parts.y, ratio)
    beyond = pt.pow(pt.switch(is_beyond, x / parts.x, constant(x, 1.0)), a) * pt.pow(ratio, b)
    return where_any(is_beyond, value + more, value), at_split * beyond


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
    end, slope = _widest(d, mass), two * (mass + other)
    for _ in range(_SEARCHES):
        end = _closer_end(end, d, slope, *curve)

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
        n_steps=len(_POSITIONS),
        sequences=[pt.constant(v) for v in (np.arange(RAISED), _POSITIONS, _SHARES)],
    )
    found = (exponent < constant(x, -30 * _PART)) & (exponent > constant(x, -60 * _PART))
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
    end: TensorVariable, d: TensorVariable, slope: TensorVariable, *curve: TensorVariable
) -> TensorVariable:
    """Move closer to where the integrand is left out, by Newton's method."""
    point = _integrand(end, *curve)
    excess = (point.exponent + constant(end, _LAST * _PART)) * point.divisor * point.rest
    return end + constant(end, 0.125 / _PART) * excess / (d * point.whole + slope * point.t)


def _widest(d: TensorVariable, mass: TensorVariable) -> TensorVariable:
    """Guess ``tanh(u/8)`` where ``g`` is 36, from ``36 = d u`` or ``exp(u) - 1 = s + sqrt(s)``."""
    one = constant(d, 1.0)
    spread = constant(d, 2 * _LAST) / mass
    spread = spread + pt.sqrt(spread)
    root = pt.sqrt(one + spread)
    divisor = one + pt.sqrt(root)
    wide = spread / ((one + root) * (divisor * divisor))
    return pt.minimum(wide, constant(d, _LAST / 8) / pt.maximum(d, constant(d, 0.0)))


def _beyond(
    a: TensorVariable, b: TensorVariable, y: TensorVariable, ratio: TensorVariable
) -> TensorVariable:
    """Integrate ``(1 - s)**(a-1) (s/y)**b / s`` from ``ratio * y`` to ``y``, for ``a y <= 1``.

    The first factor is expanded in powers of ``s``.
    """
    one = constant(y, 1.0)

    def step(
        number: TensorVariable,
        total: TensorVariable,
        coefficient: TensorVariable,
        power: TensorVariable,
        a: TensorVariable,
        b: TensorVariable,
        y: TensorVariable,
        ratio: TensorVariable,
    ) -> list[TensorVariable]:
        coefficient = coefficient * ((number - a) * y / number)
        power = power * ratio
        return [total + coefficient * (one - power) / (b + number), coefficient, power]

    first = -portable_expm1(b * portable_log(ratio)) / b
    total, *_ = iterate(
        step,
        [first, pt.ones_like(y), pt.pow(ratio, b)],
        [a, b, y, ratio],
        n_steps=TERMS,
        sequences=[pt.constant(np.arange(1.0, TERMS + 1))],
    )
    return total
