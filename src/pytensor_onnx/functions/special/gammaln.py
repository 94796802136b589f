"""The logarithm of the absolute value of the gamma function."""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.scalar.math import GammaLn
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import constant, horner, polynomial, row
from pytensor_onnx.functions.special.coefficients import Coefficients
from pytensor_onnx.functions.special.gamma_coefficients import (
    FACTORIALS,
    LOG_GAMMA_BOTTOM,
    LOG_GAMMA_BOW_BOTTOM,
    LOG_GAMMA_BOW_TOP,
    LOG_GAMMA_TAIL_BOTTOM,
    LOG_GAMMA_TAIL_TOP,
    LOG_GAMMA_TOP,
)
from pytensor_onnx.functions.special.reflection import from_nearest_integer, sine_pi
from pytensor_onnx.functions.special.wide_evaluation import where_any, widened
from pytensor_onnx.ops.special import precise

# (log(2 pi) - 1) / 2, and log(4) - 1.
_OFFSET = 0.4189385332046727
_LOG_FOUR_LESS_ONE = 0.38629436111989062
# A number near 2.5 where the function fitted near zero has a value of few bits, which can be taken
# from larger ones exactly.
_SEAM = (2.4985892869249673, 0.28369140625)
_FIRST_FACTORIAL, _LAST_FACTORIAL = 4, 22


# The ratio of polynomials that is fitted near zero is the ratio of their first coefficients and the
# variable times a smaller one, whose rounding errors count less.
_FIRST = LOG_GAMMA_TOP["float64"][0]


def _less_first(top: Sequence[float], bottom: Sequence[float]) -> tuple[float, ...]:
    """Return the coefficients of ``(p(v) - _FIRST q(v)) / v``, rounded once."""
    pairs = zip(top[1:], bottom[1:], strict=True)
    return tuple(float(Fraction(p) - Fraction(_FIRST) * Fraction(q)) for p, q in pairs)


_LESS_FIRST_TOP: Coefficients = {
    "float64": _less_first(LOG_GAMMA_TOP["float64"], LOG_GAMMA_BOTTOM["float64"])
}


class Parts(NamedTuple):
    """Parts of ``log(gamma(x))``, ``near + weight * logarithm + rest``.

    The weight is -1 below 5/4, 0 up to 2.5, and ``x - 1/2`` beyond, where ``near`` is constant.
    """

    near: TensorVariable
    weight: TensorVariable
    logarithm: TensorVariable
    rest: TensorVariable
    below_half: TensorVariable
    below_five_quarters: TensorVariable


@define(GammaLn)
@widened
def gammaln(x: TensorVariable) -> TensorVariable:
    """Logarithm of the absolute value of the gamma function.

    Notes
    -----
    Negative arguments are reflected, ``gamma(x) gamma(-x) = -pi / (x sin(pi x))`` (DLMF 5.5.3).
    Their roots next to poles, where logarithms cancel, are those of ``log(n! sin(pi r) / pi)`` and
    a small rest, where ``r`` is the distance from the pole ``-n``.
    """
    one = constant(x, 1.0)
    a = pt.abs(x)
    parts = _parts(a)

    r = from_nearest_integer(a)
    n = a - r
    at_pole = (a > constant(x, _FIRST_FACTORIAL - 0.5)) & (a < constant(x, _LAST_FACTORIAL + 0.5))
    at_pole &= pt.abs(r) < constant(x, 0.125)
    factorial, rest = _factorials(pt.switch(at_pole, n, constant(x, _FIRST_FACTORIAL)), r)
    factor = pt.switch(parts.below_half, one / (one + a), one)
    factor = pt.switch(parts.below_five_quarters, factor, pt.switch(at_pole, factorial, a))
    logarithm = precise.log(pt.abs(sine_pi(r)) * factor)
    # Below 5/4 the logarithm is in the factor.
    weight = pt.maximum(parts.weight, constant(x, 0.0))
    summand = parts.near + (weight * parts.logarithm + parts.rest)
    # At the largest numbers, which are poles, both would be infinite.
    summand = pt.minimum(summand, constant(x, 1e308, float32=3e38))
    negative = -(pt.switch(at_pole, rest, summand) + logarithm)
    negative = pt.switch(pt.isinf(x), x, negative)
    return where_any(x < constant(x, 0.0), negative, _of_positive(parts))


def gammaln_of_positive(x: TensorVariable) -> TensorVariable:
    """``log(gamma(x))`` for ``x >= 0``."""
    return _of_positive(_parts(x))


def log_gamma_plus_one(x: TensorVariable) -> TensorVariable:
    """``log(gamma(x + 1))`` for ``0 <= x <= 1``, accurately next to zero."""
    bow = polynomial(x, LOG_GAMMA_BOW_TOP) / polynomial(x, LOG_GAMMA_BOW_BOTTOM)
    return x * (x - constant(x, 1.0)) * bow


def _of_positive(parts: Parts) -> TensorVariable:
    return parts.near + (parts.weight * parts.logarithm + parts.rest)


def _parts(x: TensorVariable) -> Parts:
    """Compute the parts of ``log(gamma(x))`` for ``x >= 0``.

    Near zero, where one or two steps of the recurrence (DLMF 5.5.1) lead to a number ``2 + d``,
    ``d (d + 1)`` times a fitted function serves; far from it, Stirling's formula with a fitted
    rest. There ``x`` is divided by 4 and the logarithm of 4 added, which leaves smaller errors of
    the logarithm to amplify, and the function is added to that of 2.5, nearly, to need no
    selection.
    """
    half, one, two = (constant(x, n) for n in (0.5, 1.0, 2.0))
    below_half, below_five_quarters = x < half, x < constant(x, 1.25)
    seam, value = _SEAM
    bound = constant(x, seam)
    is_far = x > bound
    # Numbers in place of selections, which take the runtime the time of five products.
    small, medium, large = (
        condition.astype(x.dtype) for condition in (below_half, below_five_quarters, is_far)
    )
    bounded = pt.minimum(x, bound)
    d = bounded - (two - (small + medium))
    v = d + half
    ratio = polynomial(v, _LESS_FIRST_TOP) / polynomial(v, LOG_GAMMA_BOTTOM)
    near = d * (d + one) * (constant(x, _FIRST) + v * ratio)

    factor = one + small * bounded - large * constant(x, 0.75)
    logarithm = precise.log(x * factor) + large * constant(x, _LOG_FOUR_LESS_ONE)
    weight = large * (x - half) - medium
    reciprocal = one / pt.maximum(x, bound)
    square = reciprocal * reciprocal
    ratio = polynomial(square, LOG_GAMMA_TAIL_TOP) / polynomial(square, LOG_GAMMA_TAIL_BOTTOM)
    rest = large * (constant(x, _OFFSET - value) + reciprocal * ratio)
    return Parts(near, weight, logarithm, rest, below_half, below_five_quarters)


def _factorials(n: TensorVariable, r: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """``n!`` and ``log(gamma(n+1+r) / n!)``, for ``n`` from 4 to 22 and ``|r| <= 1/8``."""
    table = pt.constant(np.array([row(n, c) for c in FACTORIALS], n.dtype))
    place = n.astype("int64") - pt.constant(_FIRST_FACTORIAL, dtype="int64")
    sizes = [1] * len(FACTORIALS)
    first, *others = pt.split(table[:, place], sizes, n_splits=len(sizes), axis=0)
    return first[0], (r[None] * horner(r[None], others))[0]
