"""Powers and roots for norms and their gradients."""

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable


def absolute_power(x: TensorVariable, p: int) -> TensorVariable:
    """Return ``|x| ** p``."""
    return pt.abs(x) if p == 1 else pt.sqr(x) if p == 2 else pt.abs(x) ** p


def root(x: TensorVariable, p: int) -> TensorVariable:
    """Return the p-th root."""
    return x if p == 1 else pt.sqrt(x) if p == 2 else x ** np.asarray(1 / p, x.type.dtype)


def slope(x: TensorVariable, p: int) -> TensorVariable:
    """Return the derivative of ``|x| ** p / p``."""
    return x if p == 2 else pt.sign(x) if p == 1 else pt.sign(x) * pt.abs(x) ** (p - 1)


def over_power(gradient: TensorVariable, y: TensorVariable, p: int) -> TensorVariable:
    """Return ``gradient / y ** (p - 1)``, zero for y of zero."""
    if p == 1:
        return gradient
    return pt.switch(pt.eq(y, 0), pt.zeros_like(y), gradient / (y if p == 2 else y ** (p - 1)))
