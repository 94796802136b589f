"""The density of the gamma distribution in the logarithm of its variable."""

import pytensor.tensor as pt
from pytensor.conditional.op import ifelse
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.special.arithmetic import add_with_error, constant, polynomial
from pytensor_onnx.functions.special.evaluation import of_few
from pytensor_onnx.functions.special.exponential import exp
from pytensor_onnx.functions.special.gamma import gamma_plus_one, scaled_gamma
from pytensor_onnx.functions.special.gamma_coefficients import LOG_RATIO_WIDE
from pytensor_onnx.functions.special.portable import Logarithm, portable_log
from pytensor_onnx.functions.special.power import log_with_rest, product_with_rest
from pytensor_onnx.ops import precise

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

    ``y`` is ``a``, or one for ``a`` below it. Powers are more accurate than exponentials of
    products while the rounding of ``x / a`` is not raised to a high one, and they do not underflow.
    The others err by some roundings of the exponent, which are the same ones in all runtimes.

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
    logarithm = portable_log(base)
    log_power = a * logarithm
    near = ~small & (pt.abs(mu) < constant(x, 0.5))
    modest = ~near & (a < constant(x, 150.0)) & (difference < constant(x, 700.0))
    modest &= log_power > constant(x, -600.0)
    exponent = pt.switch(near, a * exponent, log_power - difference)
    exponential = exp(pt.switch(modest, -difference, exponent))
    decay = pt.switch(modest, pt.pow(base, a), one) * exponential
    if not is_exact:
        return logarithm, decay
    size = pt.switch(near, -exponent, pt.maximum(pt.abs(log_power), pt.abs(difference)))
    is_large = (size > constant(x, _LARGE)) & (exponent > constant(x, -760.0))
    [exact] = of_few(is_large, _exact_decay, [decay], [a, x, y, start])
    return logarithm, ifelse(pt.any(is_large), exact, decay)


def _exact_decay(
    _: TensorVariable,
    a: TensorVariable,
    x: TensorVariable,
    y: TensorVariable,
    start: TensorVariable,
) -> list[TensorVariable]:
    """``(x/y)**a exp(-(x - start))``, of an exponent that is not rounded."""
    base = x / y
    logarithm, rest = log_with_rest(base)
    product, error = product_with_rest(base, y, constant(x, 0.0))
    power, power_rest = product_with_rest(a, logarithm, rest + ((x - product) - error) / x)
    difference, difference_rest = add_with_error(x, -start)
    total, total_rest = add_with_error(power, -difference)
    return [exp(*add_with_error(total, total_rest + (power_rest - difference_rest)))]
