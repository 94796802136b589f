"""The derivatives of the regularized incomplete beta function.

By a parameter, PyTensor differentiates a continued fraction in 200 steps, which are too few for
parameters of 1e6, and loses digits. Here the quadrature of `beta_quadrature` has the derivative of
the logarithm of its integrand as a further factor. Up to the mean, that and the derivative of the
factor before the integral have the same sign. By the third argument, PyTensor takes differences of
logarithms of the gamma function.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Variable
from pytensor.scalar.basic import float64
from pytensor.scalar.math import betainc, betainc_grad
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.operation import operation
from pytensor_onnx.functions.special.arithmetic import (
    constant,
    if_any_of_few,
    in_float64,
    split_rows,
    where_any,
)
from pytensor_onnx.functions.special.betainc import (
    PRECISE,
    TERMS,
    Split,
    density,
    distance_from_mean,
    integrate,
    split,
    stirling_factor,
)
from pytensor_onnx.functions.special.exponential import log1p, portable_log
from pytensor_onnx.functions.special.gamma import LARGEST_STEP, psi_growth
from pytensor_onnx.functions.special.gammainc import log1p_less_argument
from pytensor_onnx.functions.special.psi import log_less_psi


def derivative(index: int, arguments: Sequence[Variable]) -> Variable:
    """Return the scalar graph that PyTensor has for the derivative by one of the arguments."""
    if index < 2:
        return betainc_grad(*arguments, index == 0)
    result = betainc(*arguments)
    product = betainc.pullback(arguments, [result], [result.type()])[index]
    return product.owner.inputs[1]


@cache
def _compiled(index: int) -> Callable[..., Any]:
    arguments = [float64(name) for name in "abx"]
    return pytensor.function(arguments, derivative(index, arguments), mode=Mode("py", None))


def _of_pytensor(index: int, *arguments: Any) -> Any:
    return _compiled(index)(*arguments)


@operation(reference=partial(_of_pytensor, 0), name="BetaIncByFirst")
@in_float64
def betainc_by_first(a: TensorVariable, b: TensorVariable, x: TensorVariable) -> TensorVariable:
    """Differentiate the regularized incomplete beta function by its first parameter.

    NaN outside of the domain, and where a parameter is zero or infinite.
    """
    return _derivative(a, b, x, is_first=True)


@operation(reference=partial(_of_pytensor, 1), name="BetaIncBySecond")
@in_float64
def betainc_by_second(a: TensorVariable, b: TensorVariable, x: TensorVariable) -> TensorVariable:
    """Differentiate by the second parameter, with the remarks of `betainc_by_first`."""
    return _derivative(a, b, x, is_first=False)


@operation(reference=partial(_of_pytensor, 2), name="BetaIncByThird")
@in_float64
def betainc_by_third(a: TensorVariable, b: TensorVariable, x: TensorVariable) -> TensorVariable:
    """Differentiate by the third argument: the density of the beta distribution.

    NaN outside of the domain, and where a parameter is zero or infinite.
    """
    zero, one, half = (constant(x, n) for n in (0.0, 1.0, 0.5))
    infinity, nan = constant(x, math.inf), constant(x, math.nan)
    positive = (pt.minimum(a, b) > zero) & (pt.maximum(a, b) < infinity)
    inside = positive & (x > zero) & (x < one)
    is_zero, is_one = pt.eq(x, zero), pt.eq(x, one)
    here, other = pt.switch(is_zero, a, b), pt.switch(is_zero, b, a)
    at_end = pt.switch(here < one, infinity, pt.switch(here > one, zero, other))
    at_end = pt.switch(positive & (is_zero | is_one), at_end, nan)
    a, b = (pt.switch(inside, v, one) for v in (a, b))
    x = pt.switch(inside, x, half)
    y = one - x
    # Of the power of x below, the rest of a parameter below 2 is taken here.
    start = pt.maximum(x, constant(x, 1e-100))
    is_upper = a * y < b * start
    value = _density(
        pt.switch(is_upper, b, a),
        pt.switch(is_upper, a, b),
        pt.switch(is_upper, y, start),
        pt.switch(is_upper, start, y),
    )
    value = value * pt.pow(x / start, a - one)
    return pt.switch(inside, value, at_end)


def _density(
    a: TensorVariable, b: TensorVariable, x: TensorVariable, y: TensorVariable
) -> TensorVariable:
    """``x**(a-1) y**(b-1) / B(a, b)``, by the power ``x**(a-1)`` from ``a = 2`` on.

    The power ``x**a`` would underflow before the result does.
    """
    one = constant(x, 1.0)
    is_lowered = a >= constant(x, 2.0)
    c = pt.switch(is_lowered, a - one, a)
    factor = pt.switch(is_lowered, (c + b) / c, one / x)
    d = distance_from_mean(c, b, x, y)
    return density(c, b, x, y, d, stirling_factor(c, b) * (factor / y), is_exact=True)


def _derivative(
    a: TensorVariable, b: TensorVariable, x: TensorVariable, *, is_first: bool
) -> TensorVariable:
    zero, one, half = (constant(x, n) for n in (0.0, 1.0, 0.5))
    positive = (pt.minimum(a, b) > zero) & (pt.maximum(a, b) < constant(x, math.inf))
    inside = positive & (x > zero) & (x < one)
    a, b = (pt.switch(inside, v, one) for v in (a, b))
    at_end = positive & (pt.eq(x, zero) | pt.eq(x, one))
    x = pt.switch(inside, x, half)
    y = one - x
    is_upper = a * y < b * x
    near, far, point = (pt.switch(is_upper, *of) for of in ((b, a), (a, b), (y, x)))
    # Of a small parameter the weight is at its own end, also on this side of the mean. The rest of
    # it, beyond a tiny point, depends on that point far more than on the other parameter.
    distance = point * pt.maximum(far, one)
    growth = near * pt.log(distance)
    has_weight = (near < far) & (near < constant(x, 0.125))
    has_weight &= (growth > -half) & (distance > -growth)
    is_upper = pt.neq(is_upper, has_weight)
    value = _of_lower(
        pt.switch(is_upper, b, a),
        pt.switch(is_upper, a, b),
        pt.switch(is_upper, y, x),
        pt.switch(is_upper, x, y),
        ~is_upper if is_first else is_upper,
    )
    value = pt.switch(is_upper, -value, value)
    return pt.switch(inside, value, pt.switch(at_end, zero, constant(x, math.nan)))


def _of_lower(
    a: TensorVariable,
    b: TensorVariable,
    x: TensorVariable,
    y: TensorVariable,
    is_first: TensorVariable,
) -> TensorVariable:
    """Differentiate ``I_x(a, b)`` by ``a``, or else by ``b``, in the parts it is computed in."""
    zero, one = constant(x, 0.0), constant(x, 1.0)
    parts = split(a, b, x, y)
    top, is_raised = parts.top, parts.is_raised
    of_start = a, b, parts.x, parts.y
    d = distance_from_mean(*of_start)
    at_split = density(*of_start, d, stirling_factor(a, b), is_exact=True)
    sums = integrate(of_start, top, d, is_first)
    of_top = _of_logarithm(*of_start, top, d, is_first)
    chosen = pt.switch(is_first, one, zero)
    last = of_top * sums.integral + sums.moment
    first = of_top - sums.slope - chosen / top
    is_small = ~is_first & (a < constant(x, LARGEST_STEP))
    first = if_any_of_few(is_small, _of_small, first, [a, b, parts.x])
    raised = sums.total * first + sums.slopes + sums.term * top * last
    value = pt.switch(is_raised, raised, a * last) * (at_split / a)
    logarithms = parts.logarithms()
    growth, decrease = parts.growths(a, b, logarithms)
    log_x, log_ratio = logarithms
    of_power = pt.switch(is_raised, first + chosen / a, of_top) - chosen * log_x
    beyond = _beyond(a, b, parts, of_power, is_first, log_ratio, decrease)
    more = (at_split + at_split * growth) * beyond
    return where_any(parts.is_beyond, value + more, value)


def _of_small(
    _: TensorVariable, a: TensorVariable, b: TensorVariable, x: TensorVariable
) -> TensorVariable:
    """Differentiate ``log(x**a (1 - x)**b / B(a, b))`` by ``b`` for a small ``a``."""
    return log1p(-x) + psi_growth(b, a)


def _of_logarithm(
    a: TensorVariable,
    b: TensorVariable,
    x: TensorVariable,
    y: TensorVariable,
    top: TensorVariable,
    d: TensorVariable,
    is_first: TensorVariable,
) -> TensorVariable:
    """Differentiate ``log(x**c y**b / B(c, b))`` by ``c = top``, or by ``b``.

    That is ``log(x) - psi(c) + psi(c + b)``, or ``log(y) - psi(b) + psi(c + b)``.
    """
    zero, one, raise_by = (constant(x, n) for n in (0.0, 1.0, PRECISE.raised))
    is_small = b < raise_by
    other = pt.switch(is_small, b + raise_by, b)
    u, point = pt.switch(is_first, top, other), pt.switch(is_first, x, y)
    ratio = point * ((top + b) / u)
    d = pt.switch(top > a, top * y - b * x, d)
    z = pt.switch(is_first, -d / top, pt.switch(is_small, ratio - one, d / b))
    logarithm = z + log1p_less_argument(z, ratio, portable_log)
    of_one, of_both = split_rows(log_less_psi(pt.stack([u, top + b])), 2)
    # What psi grows by from b to the raised one.
    [growth] = iterate(
        lambda number, total, b: [total + one / (b + number)],
        [pt.zeros_like(b)],
        [b],
        n_steps=PRECISE.nodes,
        sequences=[pt.constant(np.arange(PRECISE.raised))],
    )
    return logarithm + (of_one - of_both) + pt.switch(~is_first & is_small, growth, zero)


class _Series(NamedTuple):
    """Parameters of the series of `_beyond`."""

    a: TensorVariable
    b: TensorVariable
    y: TensorVariable
    ratio: TensorVariable
    logarithm: TensorVariable
    is_first: TensorVariable


class _Terms(NamedTuple):
    """Sums of the terms of a series and of their derivatives, and the factors of the last ones."""

    total: TensorVariable
    slopes: TensorVariable
    c: TensorVariable
    slope: TensorVariable
    power: TensorVariable


def _beyond(
    a: TensorVariable,
    b: TensorVariable,
    parts: Split,
    of_power: TensorVariable,
    is_first: TensorVariable,
    logarithm: TensorVariable,
    decrease: TensorVariable,
) -> TensorVariable:
    """Differentiate the series beyond the quadrature, for a derivative of its factor's logarithm.

    Its terms are ``c (1 - v**(b+n)) / (b + n)``, where ``c`` depends on ``a``. ``logarithm`` and
    ``decrease`` are the logarithm of ``v`` and ``v**b - 1``.
    """
    one, zero = constant(b, 1.0), constant(b, 0.0)
    y, ratio = parts.y, parts.ratio

    def step(number: TensorVariable, before: _Terms, of: _Series) -> list[_Terms]:
        growth = of.y / number
        slope = before.slope * ((number - of.a) * growth) - before.c * growth
        c = before.c * ((number - of.a) * growth)
        power = before.power * of.ratio
        term = (one - power) / (of.b + number)
        by_second = -c * (power * of.logarithm + term) / (of.b + number)
        slopes = before.slopes + pt.switch(of.is_first, slope * term, by_second)
        return [_Terms(before.total + c * term, slopes, c, slope, power)]

    first, power = -decrease / b, one + decrease
    by_second = -(power * logarithm + first) / b
    slopes = pt.switch(is_first, zero, by_second)
    [terms] = iterate(
        step,
        [_Terms(first, slopes, pt.ones_like(y), pt.zeros_like(y), power)],
        [_Series(a, b, y, ratio, logarithm, is_first)],
        n_steps=TERMS,
        sequences=[pt.constant(np.arange(1.0, TERMS + 1))],
    )
    return of_power * terms.total + terms.slopes
