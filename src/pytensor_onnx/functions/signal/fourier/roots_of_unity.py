"""Roots of unity as constants, and products of pairs with them."""

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable


def roots(exponents: np.ndarray, n: int, sign: int) -> np.ndarray:
    """Return ``exp(sign 2 pi i exponents / n)`` in the longest precision.

    Examples
    --------
    >>> bool(abs(roots(np.arange(5), 5, -1).sum()) < 1e-18)
    True
    """
    pi = 4 * np.arctan(np.longdouble(1))
    angles = sign * 2 * pi * (exponents % n).astype("longdouble") / n
    return np.cos(angles) + 1j * np.sin(angles)


def multiply(pairs: TensorVariable, numbers: np.ndarray) -> TensorVariable:
    """Return the products of pairs with constant complex numbers.

    Examples
    --------
    >>> multiply(pt.constant([[1.0, 2.0]]), np.array([3j])).eval()
    array([[-6.,  3.]])
    """
    same = np.repeat(numbers.real[..., None], 2, axis=-1).astype(pairs.type.dtype)
    crossed = np.stack([-numbers.imag, numbers.imag], axis=-1).astype(pairs.type.dtype)
    return pairs * pt.constant(same) + pairs[..., ::-1] * pt.constant(crossed)
