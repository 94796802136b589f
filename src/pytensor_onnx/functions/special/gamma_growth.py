"""Growth of psi by a small step, where a difference has few digits."""

from collections.abc import Callable

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.special.arithmetic import constant, stacked
from pytensor_onnx.functions.special.psi import trigamma_of_positive

# Nodes for which the mean of the trigamma function over a step has all digits.
_NODES = 6
# The largest step, from 1 on, for which they have.
LARGEST_STEP = 0.25


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
