"""Temme's series of modified Bessel functions of the second kind, for small arguments.

N. M. Temme, J. Comput. Phys. 19 (1975) 324-337 and 21 (1976) 343-350.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.special.arithmetic import constant, polynomial
from pytensor_onnx.functions.special.bessel_coefficients import (
    LONG_SINE,
    TEMME_DIFFERENCE,
    TEMME_MEAN,
)
from pytensor_onnx.functions.special.coefficients import SINH
from pytensor_onnx.functions.special.exponential import exp
from pytensor_onnx.functions.special.power import log_of_normal_with_rest, product_with_rest


class Start(NamedTuple):
    """First terms of the recurrences of `temme_series`."""

    f: TensorVariable
    p: TensorVariable
    q: TensorVariable


def temme_coefficients(m: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """``(1 / gamma(1 - m) - 1 / gamma(1 + m)) / (2 m)``, and half the sum of the two."""
    square = m * m
    return polynomial(square, TEMME_DIFFERENCE), polynomial(square, TEMME_MEAN)


def temme_start(m: TensorVariable, x: TensorVariable) -> Start:
    """Return the first terms, for ``|m| <= 1/2`` and ``x <= 2``."""
    one, half = constant(x, 1.0), constant(x, 0.5)
    difference, mean = temme_coefficients(m)
    # Differences of runtimes would be amplified where parts cancel.
    logarithm, rest = log_of_normal_with_rest(x * constant(x, 2.0**60), constant(x, -61.0))
    log, angle = -logarithm, -m * logarithm
    growth = exp(*product_with_rest(-m, logarithm, rest))
    angle_square = angle * angle
    sinc = pt.switch(
        pt.abs(angle) > one,
        half * (growth - one / growth) / angle,
        one + angle_square * polynomial(angle_square, SINH),
    )
    turn = constant(x, math.pi) * m
    turn_square = turn * turn
    f = difference * (half * (growth + one / growth)) + mean * sinc * log
    f = f / (one + turn_square * polynomial(turn_square, LONG_SINE))
    p = half * growth / (mean - m * difference)
    q = half / growth / (mean + m * difference)
    return Start(f, p, q)


def temme_series(
    start: Start,
    m: TensorVariable,
    z: TensorVariable,
    terms: int,
) -> tuple[TensorVariable, TensorVariable]:
    """Add the series of the function of order ``m``, and of ``x / 2`` times that of ``m + 1``.

    Parameters
    ----------
    start
        First terms.
    m
        Order, at most one half.
    z
        ``x**2 / 4``.
    terms
        Number of terms after the first one.
    """

    def step(
        k: TensorVariable,
        terms: Start,
        factor: TensorVariable,
        total: TensorVariable,
        following: TensorVariable,
        m: TensorVariable,
        z: TensorVariable,
    ) -> list[Any]:
        f, p, q = terms
        f = (k * f + p + q) / (k * k - m * m)
        factor = factor * z / k
        p, q = p / (k - m), q / (k + m)
        term = factor * f
        return [Start(f, p, q), factor, total + term, following + (factor * p - k * term)]

    *_, total, following = iterate(
        step,
        [start, pt.ones_like(z), start.f, start.p],
        [m, z],
        sequences=[pt.constant(np.arange(1.0, terms + 1))],
        n_steps=terms,
    )
    return total, following
