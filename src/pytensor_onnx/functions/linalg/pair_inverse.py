"""Closed formulas for Sylvester's equation of blocks of at most two rows."""

from typing import NamedTuple

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable


class PairInverse(NamedTuple):
    """``α + β N + γ M + δ N M``, the inverse of ``Y -> σ Y + N Y + Y M``.

    N and M are the elements of blocks in standard form beside the diagonal; their squares are
    negative numbers -ω² and -ν².

    Attributes
    ----------
    alpha, beta, gamma, delta
        The factors.
    distance
        The smallest magnitude ``|σ + i (ω - ν)|`` of an eigenvalue.
    """

    alpha: TensorVariable
    beta: TensorVariable
    gamma: TensorVariable
    delta: TensorVariable
    distance: TensorVariable


def pair_inverse(sigma: TensorVariable, omega: TensorVariable, nu: TensorVariable) -> PairInverse:
    """Return the inverse for sums of diagonal elements and for the numbers ω and ν.

    It is the product of ``σ ± N ± M`` with the three other choices of signs, divided by the
    determinant, which is a number.

    Examples
    --------
    >>> numbers = [pt.scalar(name) for name in "abc"]
    >>> inverse = pair_inverse(*numbers)
    >>> [float(x.eval(dict(zip(numbers, (2.0, 1.0, 0.0))))) for x in inverse[:2]]
    [0.4, -0.2]
    """
    largest = pt.abs(sigma) + omega + nu
    divisor = pt.switch(pt.eq(largest, 0.0), 1.0, largest)
    s, w, v = sigma / divisor, omega / divisor, nu / divisor
    apart, together = w - v, w + v
    smallest = s * s + apart * apart
    determinant = smallest * (s * s + together * together)
    return PairInverse(
        s * (s * s + w * w + v * v) / determinant / divisor,
        -(s * s + apart * together) / determinant / divisor / divisor,
        -(s * s - apart * together) / determinant / divisor / divisor,
        2.0 * s / determinant / divisor / divisor / divisor,
        largest * pt.sqrt(smallest),
    )
