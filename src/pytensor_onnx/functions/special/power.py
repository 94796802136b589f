"""Powers that are equal in every bit in all runtimes, as their logarithms in `portable_formulas`.

A power is the exponential of a product that loses no digit, of the exponent and of a logarithm in
two parts: ``exp(*product_with_rest(y, *log_with_rest(x)))``.
"""

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.special.arithmetic import add_with_error, constant, upper_half
from pytensor_onnx.functions.special.exponential import exp, log_2
from pytensor_onnx.functions.special.portable_formulas import binary_parts, log_ratio, to_normal


def power_of_logarithm(
    y: TensorVariable, logarithm: TensorVariable, rest: TensorVariable
) -> TensorVariable:
    """``x**y`` by the logarithm of ``x`` in two parts.

    By that of `log_of_normal_with_rest`, the relative error is 1 ulp and the lesser of 1.5e-17
    times ``y`` and 3.5e-17 times the logarithm of the result. Powers of the largest exponents have
    their limits.
    """
    y = pt.clip(y, constant(y, -1e300), constant(y, 1e300))
    product, rest = product_with_rest(y, logarithm, rest)
    # Where the power has a limit, the rest may be large.
    return exp(product, pt.clip(rest, constant(y, -1e-12), constant(y, 1e-12)))


def log_of_normal_with_rest(
    x: TensorVariable, exponent: TensorVariable | None = None
) -> tuple[TensorVariable, TensorVariable]:
    """`log_of_normal` in two parts, to 1.5e-17 and 3.5e-17 of its value.

    That is the error of ``s (f - R)``; the other parts are added without one. `log_with_rest` has
    more digits, and takes half as many operators again.
    """
    k, f = binary_parts(x, exponent)
    s = f / (constant(x, 2.0) + f)
    upper, lower = log_2(x)
    whole = k * upper
    total = whole + f
    rest = (f - (total - whole)) - (s * (f - log_ratio(s * s)) - k * lower)
    logarithm = total + rest
    return logarithm, rest - (logarithm - total)


def log_with_rest(x: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """Natural logarithm of positive finite float64 numbers in two parts, to about 1e-18.

    With ``x = 2**k (1 + f)`` and ``s = f / (2 + f)`` as in `log_of_normal`, the logarithm is
    ``k log(2) + 2 s`` and less than 0.004. The quotient and the sum have their rounding errors
    added, as in fdlibm's ``e_pow.c``.
    """
    two = constant(x, 2.0)
    k, f = binary_parts(*to_normal(x))
    bottom = two + f
    s = f / bottom
    first, bottom_first = upper_half(s), upper_half(bottom)
    bottom_second = f - (bottom_first - two)
    second = ((f - first * bottom_first) - first * bottom_second) / bottom
    upper, lower = log_2(x)
    whole = k * upper
    twice = first + first
    total = whole + twice
    rest = (twice - (total - whole)) + ((second + second) + (s * log_ratio(s * s) + k * lower))
    logarithm = total + rest
    return logarithm, rest - (logarithm - total)


def product_with_rest(
    y: TensorVariable, x: TensorVariable, rest: TensorVariable
) -> tuple[TensorVariable, TensorVariable]:
    """Return ``y * (x + rest)`` in two parts (T. J. Dekker, Numer. Math. 18 (1971) 224-242)."""
    product = y * x
    y_first, x_first = upper_half(y), upper_half(x)
    y_second, x_second = y - y_first, x - x_first
    error = (y_first * x_first - product) + y_first * x_second + y_second * x_first
    return product, (error + y_second * x_second) + y * rest


def quotient_with_rest(
    x: TensorVariable, rest: TensorVariable, y: TensorVariable
) -> tuple[TensorVariable, TensorVariable]:
    """Return ``(x + rest) / y`` in two parts."""
    quotient = x / y
    product, error = product_with_rest(quotient, y, constant(x, 0.0))
    return quotient, (((x - product) - error) + rest) / y


def root_of_exponential(
    a: TensorVariable, x: TensorVariable, rest: TensorVariable, shift: TensorVariable
) -> TensorVariable:
    """``exp((x + rest + shift) / a)``, of an exponent that is not rounded."""
    total, error = add_with_error(x, shift)
    quotient, rest = quotient_with_rest(total, error + rest, a)
    # Of infinite exponents, and of the largest parameters, the rest is NaN.
    rest = pt.switch(pt.isnan(rest), constant(x, 0.0), rest)
    exponent, rest = add_with_error(pt.maximum(quotient, constant(x, -1e300)), rest)
    # Far beyond the range of exponentials the rest may be large.
    return exp(exponent, pt.clip(rest, constant(x, -1e-3), constant(x, 1e-3)))


def exponent_with_rest(
    y: TensorVariable, x: TensorVariable, rest: TensorVariable, shift: TensorVariable
) -> tuple[TensorVariable, TensorVariable]:
    """Return ``y * (x + rest) + shift`` in two parts, for an exponential."""
    product, rest = product_with_rest(y, x, rest)
    total, error = add_with_error(product, shift)
    # Far beyond the range of exponentials the rest may be large.
    return total, pt.clip(error + rest, constant(x, -1e-3), constant(x, 1e-3))
