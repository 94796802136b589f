"""The error function and its complement."""

import math

import pytensor.tensor as pt
from pytensor.scalar.math import Erf, Erfc
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import constant, polynomial, square_with_error
from pytensor_onnx.functions.special.coefficients import ERF, SCALED_ERFC

# The natural logarithm of the rounded base of natural logarithms, less one.
_LOG_E_REST = {"float64": -5.318237706605891e-17, "float32": -3.0367859981727844e-08}


@define(Erf)
def erf(x: TensorVariable) -> TensorVariable:
    """Error function, with ``1 - erfc(|x|)`` beyond one half."""
    # At the bound the complement has long vanished beside one, and infinity would make NaN.
    a = pt.minimum(pt.abs(x), constant(x, 10.0))
    far = pt.sign(x) * (constant(x, 1.0) - pt.exp(-(a * a)) * _scaled_erfc(a))
    return pt.switch(a > constant(x, 0.5), far, _erf_near_zero(x))


@define(Erfc)
def erfc(x: TensorVariable) -> TensorVariable:
    """Complement of the error function, accurate in its right tail until it underflows.

    Notes
    -----
    The tail is ``exp(-x**2)`` times a slowly varying function. The rounding error of ``x**2``,
    which the exponential would amplify, is taken out to first order; so is that of ``e`` as the
    base of a power, because ONNX Runtime rounds powers more accurately than exponentials.
    """
    # At the bound the tail is zero, and infinity would make NaN.
    a = pt.minimum(pt.abs(x), constant(x, 28.0, float32=10.5))
    square, error = square_with_error(a)
    rest = square * constant(x, _LOG_E_REST[x.dtype]) - error
    tail = pt.pow(constant(x, math.e), -square) * _scaled_erfc(a)
    tail = tail + tail * rest
    far = pt.switch(x < constant(x, 0.0), constant(x, 2.0) - tail, tail)
    return pt.switch(a > constant(x, 0.5), far, constant(x, 1.0) - _erf_near_zero(x))


def _erf_near_zero(x: TensorVariable) -> TensorVariable:
    """``erf(x)`` for ``|x| <= 1/2``."""
    return x + x * polynomial(x * x, ERF)


def _scaled_erfc(a: TensorVariable) -> TensorVariable:
    """``exp(a**2) erfc(a)`` for ``a >= 1/2``.

    ``a exp(a**2) erfc(a)`` varies between 0.3 and 0.57 only, and is a polynomial in
    ``(a - 4) / (a + 4)``, a map used by M. M. Shepherd and J. G. Laframboise, Math. Comp. 36 (1981)
    249-253.
    """
    four = constant(a, 4.0)
    return polynomial((a - four) / (a + four), SCALED_ERFC) / a
