"""Debye's expansions of Bessel functions, uniform in order and argument where both are not small.

The terms ``u_k(p) / v**k`` of DLMF 10.41.9 are polynomials in ``p**2`` times ``(p / v)**k``, so
that they serve small orders too: at order zero they are those of Hankel's expansion.
"""

from fractions import Fraction
from itertools import zip_longest

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.special.arithmetic import horner, split_rows, stacked


def debye_polynomials(count: int) -> list[tuple[float, ...]]:
    """Coefficients of ``u_k(p) / p**k`` in ``p**2``, by the recurrence of DLMF 10.41.9.

    Examples
    --------
    >>> debye_polynomials(2) == [(1.0,), (1 / 8, -5 / 24)]
    True
    """
    terms = {0: Fraction(1)}
    found = []
    for k in range(count):
        found.append(tuple(float(terms.get(k + 2 * j, 0)) for j in range(k + 1)))
        following: dict[int, Fraction] = {}
        for power, c in terms.items():
            low = c * (Fraction(power, 2) + Fraction(1, 8 * (power + 1)))
            high = c * (Fraction(power, 2) + Fraction(5, 8 * (power + 3)))
            following[power + 1] = following.get(power + 1, Fraction(0)) + low
            following[power + 3] = following.get(power + 3, Fraction(0)) - high
        terms = following
    return found


def debye_sums(
    t: TensorVariable, z: TensorVariable, count: int
) -> tuple[TensorVariable, TensorVariable]:
    """Add the terms of even and of odd index, ``z**(k // 2)`` times the polynomial of ``t``.

    Each operation computes four terms along a new first axis, which takes a fourth of the nodes.
    """
    polynomials = debye_polynomials(count)
    terms = []
    for first in range(0, count, 4):
        four = (polynomials[first : first + 4] + [()] * 3)[:4]
        rows = zip_longest(*four, fillvalue=0.0)
        terms.append(horner(t[None], [stacked(t, row) for row in rows]))
    square = z * z
    lower, upper = pt.split(horner(square[None], terms), [2, 2], n_splits=2, axis=0)
    even, odd = split_rows(lower + z[None] * upper, 2)
    return even, odd
