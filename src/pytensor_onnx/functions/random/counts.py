"""Logarithms of the probabilities of counts, accurate for counts up to 2**53.

They are sums over cells: a count ``x``, the expected count ``e`` and their difference. The
logarithms of factorials would lose the digits that decide: of a mean of 1e9 all but five. In C.
Loader's form ("Fast and accurate computation of binomial probabilities", 2000) a cell adds ``x
log(x / e)``, whose logarithm is that of one plus a small number.
"""

import math
from collections.abc import Sequence

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable as V

from pytensor_onnx.functions.special.arithmetic import constant, horner
from pytensor_onnx.ops.special import portable

Cell = tuple[V, V, V]

_TABLED = 16
# log(x!) - x log(x) + x
_SMALL = np.array([0, *(math.log(math.factorial(x) / x**x) + x for x in range(1, _TABLED))])
# The series of Stirling (DLMF 5.11.1) in 1 / x**2, right to 1e-15 from 16 on.
_SERIES = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)


def log_probability(cells: Sequence[Cell]) -> V:
    """Return the logarithm of a probability, but for a term that all counts have in common.

    Parameters
    ----------
    cells
        Counts, expected counts and differences; for a binomial number those of the successes and
        of the failures.
    """
    counts, expected, differences = (pt.stack(list(x)) for x in zip(*cells, strict=True))
    # A count of zero has a logarithm of minus infinity, which nothing multiplies.
    ratio = pt.maximum(differences / expected, -1 + 2.0**-50)
    terms = counts * portable.log1p(ratio) + _log_factorial_rest(counts)
    total = terms[0]
    for i in range(1, len(cells)):
        total = total + terms[i]
    return -total


def _log_factorial_rest(x: V) -> V:
    """Return ``log(x!) - x log(x) + x``."""
    small = pt.constant(_SMALL)[pt.minimum(x, _TABLED - 1).astype("int64")]
    large = pt.maximum(x, _TABLED)
    inverse = 1 / large
    series = horner(inverse * inverse, [constant(x, c) for c in _SERIES]) * inverse
    return pt.switch(x < _TABLED, small, 0.5 * portable.log(2 * np.pi * large) + series)
