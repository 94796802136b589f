"""The density of the beta distribution in the logit of its variable."""

import math

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.special.arithmetic import add_with_error, constant, split_rows
from pytensor_onnx.functions.special.expm1 import expm1_near_zero
from pytensor_onnx.functions.special.exponential import exp, times_exponential
from pytensor_onnx.functions.special.gamma import scaled_gamma
from pytensor_onnx.functions.special.gamma_density import log1p_less_argument
from pytensor_onnx.functions.special.portable_formulas import portable_log
from pytensor_onnx.functions.special.power import (
    exponent_with_rest,
    log_of_normal_with_rest,
    log_with_rest,
    product_with_rest,
    quotient_with_rest,
)
from pytensor_onnx.functions.special.wide_evaluation import if_any_of_few
from pytensor_onnx.ops.special import precise

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
