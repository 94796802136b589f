"""The density of the gamma distribution in the logarithm of its variable."""

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.special.arithmetic import add_with_error, constant, polynomial
from pytensor_onnx.functions.special.exponential import exp
from pytensor_onnx.functions.special.gamma import gamma_plus_one, scaled_gamma
from pytensor_onnx.functions.special.gamma_coefficients import LOG_RATIO_WIDE
from pytensor_onnx.functions.special.portable_formulas import Logarithm
from pytensor_onnx.functions.special.power import (
    exponent_with_rest,
    log_of_normal_with_rest,
    log_with_rest,
    product_with_rest,
    quotient_with_rest,
)
from pytensor_onnx.functions.special.wide_evaluation import if_any_of_few
from pytensor_onnx.ops.special import precise

# Up to this size of an exponent and its parts roundings make errors of less than 1e-13.
_LARGE = 150.0


def log1p_less_argument(
    mu: TensorVariable, one_more: TensorVariable | None = None, log: Logarithm = precise.log
) -> TensorVariable:
    """``log(1 + mu) - mu``, accurately next to zero, as in `log_of_normal`.

    ``one_more`` is ``1 + mu`` where the sum would cancel.
    """
    near = log1p_less_argument_near_zero(mu)
    far = log(constant(mu, 1.0) + mu if one_more is None else one_more) - mu
    return pt.switch(pt.abs(mu) < constant(mu, 0.5), near, far)


def log1p_less_argument_near_zero(mu: TensorVariable) -> TensorVariable:
    """``log(1 + mu) - mu`` for ``|mu| < 1/2``."""
    s = mu / (constant(mu, 2.0) + mu)
    square = s * s
    return -s * (mu - square * polynomial(square, LOG_RATIO_WIDE))


def scaled_gamma_of_next(a: TensorVariable) -> TensorVariable:
    """``gamma(a + 1)`` for ``a`` below one, and else ``gamma(a + 1) exp(a) / a**a``."""
    one = constant(a, 1.0)
    small = a < one
    y = pt.switch(small, one, a)
    return pt.switch(small, gamma_plus_one(a), pt.sqrt(y) * scaled_gamma(y))


def gamma_density(
    a: TensorVariable,
    x: TensorVariable,
    mu: TensorVariable,
    exponent: TensorVariable,
    is_exact: bool,
) -> tuple[TensorVariable, TensorVariable]:
    """``log(x/y)`` and ``(x/y)**a exp(-(x - y))``.

    ``y`` is ``a``, or one for ``a`` below it. The rounding errors of ``x / y`` and ``x - y`` are
    left, which large exponents amplify.

    Parameters
    ----------
    a, x
        Parameter and argument.
    mu, exponent
        ``(x - a) / a``, and `log1p_less_argument_near_zero` of it.
    is_exact
        Whether to round no exponent where it is large, and the result beyond those of float32.
    """
    zero, one = constant(x, 0.0), constant(x, 1.0)
    small = a < one
    y, start = pt.switch(small, one, a), pt.switch(small, zero, a)
    base, difference = x / y, x - start
    # A quotient may underflow, and results of the largest are zero.
    normal = pt.clip(base, constant(x, 5e-324), constant(x, 1e270)) * constant(x, 2.0**60)
    logarithm, rest = log_of_normal_with_rest(normal, constant(x, -60.0))
    # Results of the largest parameters elsewhere are zero.
    near = ~small & ((pt.abs(mu) < constant(x, 0.5)) | (a > constant(x, 1e15)))
    far, rest = exponent_with_rest(a, logarithm, rest, -difference)
    exponent = pt.switch(near, a * exponent, far)
    decay = exp(exponent, pt.switch(near, zero, rest))
    if not is_exact:
        return logarithm, decay
    size = pt.switch(near, -exponent, pt.maximum(pt.abs(a * logarithm), pt.abs(difference)))
    is_large = (size > constant(x, _LARGE)) & (exponent > constant(x, -760.0))
    return logarithm, if_any_of_few(is_large, _exact_decay, decay, [a, x, y, start])


def _exact_decay(
    _: TensorVariable,
    a: TensorVariable,
    x: TensorVariable,
    y: TensorVariable,
    start: TensorVariable,
) -> TensorVariable:
    """``(x/y)**a exp(-(x - start))``, of an exponent that is not rounded."""
    base, base_rest = quotient_with_rest(x, constant(x, 0.0), y)
    logarithm, rest = log_with_rest(base)
    power, power_rest = product_with_rest(a, logarithm, rest + base_rest / base)
    difference, difference_rest = add_with_error(x, -start)
    total, total_rest = add_with_error(power, -difference)
    return exp(*add_with_error(total, total_rest + (power_rest - difference_rest)))
