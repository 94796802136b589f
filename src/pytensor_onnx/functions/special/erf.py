"""The error function, its complement, and that without its exponential decay."""

import pytensor.tensor as pt
from pytensor.scalar.math import Erf, Erfc, Erfcx
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import (
    constant,
    is_short,
    polynomial,
    square_with_error,
    sum_of_powers,
)
from pytensor_onnx.functions.special.coefficients import ERF, SCALED_ERFC
from pytensor_onnx.functions.special.erf_coefficients import ERFCX
from pytensor_onnx.functions.special.exponential import exponential, times_exponential


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
    which the exponential would amplify, is taken out.
    """
    # At the bound the tail is zero, and infinity would make NaN.
    a = pt.minimum(pt.abs(x), constant(x, 27.3, float32=10.2))
    square, error = square_with_error(a)
    center, variation = _scaled_erfc(a)
    tail = times_exponential((center + variation) / a, -square, -error)
    far = pt.switch(x < constant(x, 0.0), constant(x, 2.0) - tail, tail)
    # The first difference is exact between 1/2 and 1, where the second one cancels most.
    near = (constant(x, 1.0) - x) - _erf_excess(x)
    return pt.switch(a > constant(x, 1.0), far, near)


@define(Erfcx)
def erfcx(x: TensorVariable) -> TensorVariable:
    """``exp(x**2) erfc(x)``, with ``2 exp(x**2) - erfcx(-x)`` for negative ``x``.

    The rounding error of ``x**2`` is taken out as in `erfc`.
    """
    right = erfcx_of_positive(pt.abs(x))
    # At the bound twice the exponential is infinite, half of it is not.
    square, error = square_with_error(pt.minimum(pt.abs(x), constant(x, 26.64, float32=9.41)))
    excess, half = exponential(square, error)
    quarter = half + (half * excess - constant(x, 0.25) * right)
    return pt.switch(x < constant(x, 0.0), constant(x, 4.0) * quarter, right)


def erfcx_of_positive(a: TensorVariable) -> TensorVariable:
    """``exp(a**2) erfc(a)`` for positive ``a``.

    Times ``a + 7/8`` it varies between 0.56 and 0.88 only, and is a polynomial in ``(a - 4) / (a +
    4)``, a map used by M. M. Shepherd and J. G. Laframboise, Math. Comp. 36 (1981) 249-253.
    """
    four = constant(a, 4.0)
    # At the bound the quotient is one, and infinity would make NaN.
    bounded = pt.minimum(a, constant(a, 1e20))
    t = (bounded - four) / (bounded + four)
    center = constant(a, ERFCX[a.dtype][0])
    evaluate = sum_of_powers if is_short(t) else polynomial
    return (center + t * evaluate(t, ERFCX, start=1)) / (a + constant(a, 0.875))


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
