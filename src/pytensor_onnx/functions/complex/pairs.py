"""Complex numbers as two parts, and as pairs of these along a last axis."""

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

Parts = tuple[TensorVariable, TensorVariable]
"""Real and imaginary part."""


def paired(real: TensorVariable, imag: TensorVariable) -> TensorVariable:
    """Return the pairs of parts of equal shapes."""
    return pt.stack([real, imag], axis=-1)


def times(x: TensorVariable, y: TensorVariable) -> TensorVariable:
    """Return the products of complex numbers.

    Examples
    --------
    >>> times(pt.constant([[1.0, 2.0]]), pt.constant([[0.0, 3.0]])).eval()
    array([[-6.,  3.]])
    """
    a, b, c, d = x[..., 0], x[..., 1], y[..., 0], y[..., 1]
    return paired(a * c - b * d, a * d + b * c)


def conjugate(pairs: TensorVariable) -> TensorVariable:
    """Return the conjugates of complex numbers."""
    return paired(pairs[..., 0], -pairs[..., 1])
