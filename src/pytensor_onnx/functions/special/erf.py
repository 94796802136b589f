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
    """Error function, with ``1 - erfc(|x|)`` beyond one."""
    # At the bound the complement has long vanished beside one, and infinity would make NaN.
    a = pt.minimum(pt.abs(x), constant(x, 10.0))
    center, variation = _scaled_erfc(a)
    tail = pt.exp(-(a * a)) * (center + variation) / a
    far = pt.sign(x) * (constant(x, 1.0) - tail)
    return pt.switch(a > constant(x, 1.0), far, x + _erf_excess(x))


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
    center, variation = _scaled_erfc(a)
    # The correction joins the smaller addend, so that it costs no rounding of its own.
    corrected = center + (variation + (center + variation) * rest)
    tail = pt.pow(constant(x, math.e), -square) * (corrected / a)
    far = pt.switch(x < constant(x, 0.0), constant(x, 2.0) - tail, tail)
    # The first difference is exact between 1/2 and 1, where the second one cancels most.
    near = (constant(x, 1.0) - x) - _erf_excess(x)
    return pt.switch(a > constant(x, 1.0), far, near)


def _erf_excess(x: TensorVariable) -> TensorVariable:
    """``erf(x) - x`` for ``|x| <= 1``."""
    return x * polynomial(x * x, ERF)


def _scaled_erfc(a: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """Split ``a exp(a**2) erfc(a)`` for ``a >= 1`` into a constant and a smaller variable part.

    The function varies between 0.42 and 0.57 only, and is a polynomial in ``(a - 4) / (a + 4)``, a
    map used by M. M. Shepherd and J. G. Laframboise, Math. Comp. 36 (1981) 249-253.
    """
    four = constant(a, 4.0)
    t = (a - four) / (a + four)
    return constant(a, SCALED_ERFC[a.dtype][0]), t * polynomial(t, SCALED_ERFC, start=1)
