"""Exponents beside Debye's expansions, in two parts.

A rounding of an exponent, of hundreds, would be an error of as many units of the exponential.
"""

from typing import NamedTuple

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.special.arithmetic import add_with_error, constant, upper_half
from pytensor_onnx.functions.special.exponential import exp
from pytensor_onnx.functions.special.power import (
    exponent_with_rest,
    log_of_normal_with_rest,
    log_with_rest,
)


class Decay(NamedTuple):
    """Half of an exponent in two parts, and the exponential of its negative as ``root``."""

    root: TensorVariable
    half: TensorVariable
    rest: TensorVariable


class Base(NamedTuple):
    """A number in two parts, with the linear term beside its logarithm in two parts."""

    base: TensorVariable
    lost: TensorVariable
    shift: TensorVariable
    shift_rest: TensorVariable


def decay(v: TensorVariable, x: TensorVariable, w: TensorVariable) -> Decay:
    """Decay by ``E = v log(b) - w`` for ``b = (v + w) / x`` and ``w**2 = v**2 - x**2``.

    Both terms are much larger than ``E`` where ``v`` is large, so that the logarithm needs more
    digits than that of `modified_decay`.
    """
    # At the bound the exponential is zero.
    x = pt.maximum(x, v * constant(x, 1e-30))
    base, lost, shift, shift_rest = _exact_base(v, x, w, (v + w) / x, is_modified=False)
    logarithm, rest = log_with_rest(base)
    exponent, error = exponent_with_rest(v, logarithm, rest + lost / base, shift)
    return _halved(exponent, error + shift_rest)


def modified_decay(v: TensorVariable, x: TensorVariable, w: TensorVariable) -> Decay:
    """Decay by ``E = v log(b) - (w - x)`` for ``b = (v + w) / x`` and ``w**2 = v**2 + x**2``."""
    s = v / (w + x)
    # At the bounds the exponential is zero, or one.
    v = pt.minimum(v, constant(x, 1e250))
    x = pt.minimum(pt.maximum(x, v * constant(x, 1e-30)), constant(x, 1e290))
    m = v * (constant(x, 1.0) + s) / x
    base, lost, shift, shift_rest = _exact_base(v, x, w, m, is_modified=True)
    of_base, rest = log_of_normal_with_rest(base)
    rest = rest + lost / base
    logarithm = of_base + rest
    rest = rest - (logarithm - of_base)
    exponent, error = exponent_with_rest(v, logarithm, rest, shift)
    # Where digits of the parts cancel, the first term is enough.
    is_short = w > constant(x, 1e19)
    exponent = pt.switch(is_short, v * s, exponent)
    return _halved(exponent, pt.switch(is_short, constant(x, 0.0), error + shift_rest))


def _exact_base(
    v: TensorVariable, x: TensorVariable, w: TensorVariable, m: TensorVariable, is_modified: bool
) -> Base:
    """Return ``b = (v + w) / x`` and ``-w``, of modified functions ``x - w``, from a rough ``m``.

    With ``a = v - x m``, which is the linear term, the number ``m = b`` solves ``m (a + v) = x``,
    and of modified functions ``m = b - 1`` solves ``m (a + v) + 2 a = 0``. From an ``m`` of few
    bits, whose products with the upper bits of ``x`` are exact, one step leads to the root.
    """
    m = upper_half(m)
    v_first, x_first = upper_half(v), upper_half(x)
    v_second, x_second = v - v_first, x - x_first
    first, second = v_first - x_first * m, v_second - x_second * m
    total_first = upper_half(first + v_first)
    total_second = (first - (total_first - v_first)) + (second + v_second)
    if is_modified:
        one = constant(x, 1.0)
        base, lost, outer = one + m, m - ((one + m) - one), one + (w - v) / x
        fixed_first, fixed_second = first + first, second + second
    else:
        base, lost, outer = m, constant(x, 0.0), (w - v) / x
        fixed_first, fixed_second = -x_first, -x_second
    residual = (fixed_first + m * total_first) + (fixed_second + m * total_second)
    step = residual / (m + outer) / x
    total = base + step
    lost = lost + (step - (total - base))
    return Base(total, lost, *add_with_error(first, second - x * step))


def _halved(exponent: TensorVariable, rest: TensorVariable) -> Decay:
    half, rest = constant(rest, 0.5) * exponent, constant(rest, 0.5) * rest
    return Decay(exp(-half, -rest), half, rest)
