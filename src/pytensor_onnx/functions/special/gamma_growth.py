"""Growth of ``log(gamma)`` and of psi by a small step, where their difference has few digits."""

from collections.abc import Callable

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.special.arithmetic import constant, split_rows, stacked
from pytensor_onnx.functions.special.psi import psi_of_positive, trigamma_of_positive

# Nodes for which the mean of psi or its derivative over a step has all digits.
_NODES = 6
# The largest step, from 1 on, for which they have.
LARGEST_STEP = 0.25


def log_of_scaled_beta(a: TensorVariable, b: TensorVariable) -> TensorVariable:
    """``log(a b B(a, b) / (a + b))`` for a small ``a``.

    That is the growth of ``log(gamma)`` from 1 by ``a``, less that from ``1 + b``.
    """
    at_one, beyond = split_rows(_mean(psi_of_positive, pt.stack([pt.zeros_like(b), b]), a), 2)
    return a * (at_one - beyond)


def psi_growth(x: TensorVariable, step: TensorVariable) -> TensorVariable:
    """``psi(x + step) - psi(x)`` for positive numbers and small steps."""
    return step / x / (x + step) + step * _mean(trigamma_of_positive, x, step)


def _mean(
    function: Callable[[TensorVariable], TensorVariable], x: TensorVariable, step: TensorVariable
) -> TensorVariable:
    """Average a function from ``x + 1`` to ``x + 1 + step``, by Gauss-Legendre quadrature."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    points = (x + constant(x, 1.0)) + stacked(x, (nodes + 1) / 2) * step
    return pt.sum(stacked(x, weights / 2) * function(points), axis=0)
