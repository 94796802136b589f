"""Draws of counts.

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

from pytensor_onnx.functions.random.streams import (
    count_unless,
    counter_uniforms,
    keys,
    positions,
    put,
    samples,
    taken,
    uniforms,
    until_drawn,
)
from pytensor_onnx.functions.special.arithmetic import constant, horner
from pytensor_onnx.ops.random.draws import StandardBinomial, StandardHypergeometric, StandardPoisson
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
    # Counts of refused attempts, which no number depends on, may be out of range.
    place = pt.switch((x >= 0) & (x < _TABLED), x, _TABLED - 1)
    small = pt.constant(_SMALL)[place.astype("int64")]
    large = pt.maximum(x, _TABLED)
    inverse = 1 / large
    series = horner(inverse * inverse, [constant(x, c) for c in _SERIES]) * inverse
    return pt.switch(x < _TABLED, small, 0.5 * portable.log(2 * np.pi * large) + series)


LARGE = 10.0
"""Means from which rejection is used."""


@samples(StandardBinomial, 2)
def standard_binomial(state: V, n: V, p: V) -> tuple[V, V]:
    """Draw the number of the rarer outcome; by inversion where the mean is small."""
    after, key, counters = keys(state, n.shape[0])
    is_flipped = p > 0.5
    rarer = pt.switch(is_flipped, 1 - p, p)
    is_large = n * rarer >= LARGE
    # No words are needed where no number is inverted.
    count = count_unless(is_large)
    x = _inverted_binomial(
        pt.zeros_like(n), counter_uniforms(state, count), *positions(~is_large, n, rarer)
    )
    x = _rejected_binomial(x, key, *positions(is_large, counters, n, rarer))
    return after, pt.switch(is_flipped, n - x, x)


def _inverted_binomial(result: V, first: V, where: V, elements: list[V]) -> V:
    """Subtract the probabilities of 0, 1, 2, … from a uniform number until it is negative."""
    n, p = elements
    odds = p / (1 - p)

    def step(k: V, u: V, probability: V, n: V, odds: V) -> tuple[V, V, list[V]]:
        number = k.astype("float64")
        rest = u - probability
        following = probability * odds * ((n - number) / (number + 1))
        # The probabilities sum up to one but for roundings; NaN is drawn at once.
        is_drawn = ~(rest > 0) | (number >= n)
        return pt.switch(pt.isnan(rest), rest, number), is_drawn, [rest, following, n, odds]

    start = [taken(first, where), portable.exp(n * portable.log1p(-p)), n, odds]
    return until_drawn(step, result, where, start)


def _rejected_binomial(result: V, key: V, where: V, elements: list[V]) -> V:
    """Draw from a transformed uniform distribution until a number is accepted.

    Algorithm BTRS of W. Hörmann, "The generation of binomial random variates", J. Statist.
    Comput. Simulation 46 (1993) 101-110.
    """
    counters, n, p = elements
    deviation = pt.sqrt(n * p * (1 - p))

    def attempt(k: V, key: V, counters: V, n: V, p: V, deviation: V) -> tuple[V, V, list[V]]:
        u, v = uniforms(k, key, counters, 2)
        u = u - 0.5
        b = 1.15 + 2.53 * deviation
        a = 0.0248 * b + 0.01 * p - 0.0873
        distance = 0.5 - pt.abs(u)
        x = pt.floor((2 * a / distance + b) * u + n * p + 0.5)
        is_drawn = (distance >= 0.07) & (v <= 0.92 - 4.2 / b)
        is_outside = (x < 0) | (x > n)
        where, (x_, v, a, b, n_, p_, deviation_, distance) = positions(
            ~(is_drawn | is_outside), x, v, a, b, n, p, deviation, distance
        )
        height = v * (2.83 + 5.1 / b) * deviation_ / (a / (distance * distance) + b)
        mode = pt.floor((n_ + 1) * p_)
        exponent = _log_binomial(x_, n_, p_) - _log_binomial(mode, n_, p_)
        is_drawn = put(is_drawn, where, portable.log(height) <= exponent)
        return x, is_drawn, [counters, n, p, deviation]

    return until_drawn(attempt, result, where, [counters, n, p, deviation], [key])


def _log_binomial(x: V, n: V, p: V) -> V:
    mean = n * p
    difference = x - mean
    return log_probability([(x, mean, difference), (n - x, n * (1 - p), -difference)])


@samples(StandardPoisson, 1)
def standard_poisson(state: V, mean: V) -> tuple[V, V]:
    """Draw Poisson numbers; by inversion where the mean is small."""
    after, key, counters = keys(state, mean.shape[0])
    is_large = mean >= LARGE
    # No words are needed where no number is inverted.
    count = count_unless(is_large)
    x = _inverted_poisson(
        pt.zeros_like(mean), counter_uniforms(state, count), *positions(~is_large, mean)
    )
    return after, _rejected_poisson(x, key, *positions(is_large, counters, mean))


def _inverted_poisson(result: V, first: V, where: V, elements: list[V]) -> V:
    """Subtract the probabilities of 0, 1, 2, … from a uniform number until it is negative."""
    (mean,) = elements

    def step(k: V, u: V, probability: V, mean: V) -> tuple[V, V, list[V]]:
        rest = u - probability
        following = probability * mean / (k + 1).astype("float64")
        # NaN is drawn at once; zero and it have no other numbers.
        number = pt.switch(pt.isnan(mean), mean, k.astype("float64"))
        return number, ~(rest > 0), [rest, following, mean]

    return until_drawn(step, result, where, [taken(first, where), portable.exp(-mean), mean])


def _rejected_poisson(result: V, key: V, where: V, elements: list[V]) -> V:
    """Draw from a transformed uniform distribution until a number is accepted.

    Algorithm PTRS of W. Hörmann, "The transformed rejection method for generating Poisson random
    variables", Insurance: Mathematics and Economics 12 (1993) 39-45.
    """
    counters, mean = elements
    b = 0.931 + 2.53 * pt.sqrt(mean)

    def attempt(k: V, key: V, counters: V, mean: V, b: V) -> tuple[V, V, list[V]]:
        u, v = uniforms(k, key, counters, 2)
        u = u - 0.5
        a = 0.02483 * b - 0.059
        distance = 0.5 - pt.abs(u)
        x = pt.floor((2 * a / distance + b) * u + mean + 0.43)
        is_drawn = (distance >= 0.07) & (v <= 0.9277 - 3.6224 / (b - 2))
        is_refused = (x < 0) | ((distance < 0.013) & (v > distance))
        where, (x_, v, a, b_, mean_, distance) = positions(
            ~(is_drawn | is_refused), x, v, a, b, mean, distance
        )
        hat = (1.1239 + 1.1328 / (b_ - 3.4)) / (a / (distance * distance) + b_)
        difference = x_ - mean_
        exponent = difference + log_probability([(x_, mean_, difference)])
        is_drawn = put(is_drawn, where, portable.log(v * hat) <= exponent)
        return x, is_drawn, [counters, mean, b]

    return until_drawn(attempt, result, where, [counters, mean, b], [key])


FEW = 10.0
"""Sizes of samples that are drawn one element after the other."""


@samples(StandardHypergeometric, 3)
def standard_hypergeometric(state: V, good: V, bad: V, sample: V) -> tuple[V, V]:
    """Draw the count of the rarer kind, in the sample or outside of it, whichever is smaller."""
    after, key, counters = keys(state, good.shape[0])
    total = good + bad
    is_flipped, is_rest = good > bad, 2 * sample > total
    rarer, commoner = pt.minimum(good, bad), pt.maximum(good, bad)
    drawn = pt.switch(is_rest, total - sample, sample)
    are_many = drawn > FEW
    x = _count(pt.zeros_like(good), key, *positions(~are_many, counters, rarer, total, drawn))
    x = _rejected_hypergeometric(x, key, *positions(are_many, counters, rarer, commoner, drawn))
    x = pt.switch(is_rest, rarer - x, x)
    return after, pt.switch(is_flipped, sample - x, x)


def _count(result: V, key: V, where: V, elements: list[V]) -> V:
    """Draw one element after the other, two in a step."""
    counters, rarer, total, drawn = elements

    def step(k: V, key: V, counters: V, found: V, *sizes: V) -> tuple[V, V, list[V]]:
        rarer, total, drawn = sizes
        number = 2 * k.astype("float64")
        for u in uniforms(k, key, counters, 2):
            is_one = (u * (total - number) < rarer - found) & (number < drawn)
            found, number = found + is_one.astype("float64"), number + 1
        return found, number >= drawn, [counters, found, *sizes]

    start = [counters, pt.zeros_like(rarer), rarer, total, drawn]
    return until_drawn(step, result, where, start, [key])


def _rejected_hypergeometric(result: V, key: V, where: V, elements: list[V]) -> V:
    """Draw by the ratio of uniform numbers until a number is accepted.

    Algorithm HRUA* of E. Stadlober, "The ratio of uniforms approach for generating discrete random
    variates", J. Comput. Appl. Math. 31 (1990) 181-189, as NumPy has it.
    """
    counters, rarer, commoner, drawn = elements
    total = rarer + commoner
    share = rarer / total
    variance = (total - drawn) / (total - 1) * drawn * share * (commoner / total)
    width = 1.7155277699214135 * pt.sqrt(variance + 0.5) + 0.8989161620588988
    shape = [rarer, commoner, drawn, width]

    def attempt(k: V, key: V, counters: V, *shape: V) -> tuple[V, V, list[V]]:
        rarer, commoner, drawn, width = shape
        u, v = uniforms(k, key, counters, 2)
        mean = drawn * (rarer / (rarer + commoner))
        x = pt.floor(mean + 0.5 + width * (v - 0.5) / u)
        is_inside = (x >= 0) & (x <= pt.minimum(drawn, rarer))
        where, (x_, u, *sizes) = positions(is_inside, x, u, rarer, commoner, drawn)
        rarer, commoner, drawn = sizes
        mode = pt.floor((drawn + 1) * ((rarer + 1) / (rarer + commoner + 2)))
        exponent = _log_hypergeometric(x_, *sizes) - _log_hypergeometric(mode, *sizes)
        is_drawn = put(is_inside, where, 2 * portable.log(u) <= exponent)
        return x, is_drawn, [counters, *shape]

    return until_drawn(attempt, result, where, [counters, *shape], [key])


def _log_hypergeometric(x: V, rarer: V, commoner: V, drawn: V) -> V:
    """Sum over the four cells of the table of kinds and draws."""
    share = drawn / (rarer + commoner)
    expected = rarer * share
    d = x - expected
    rest = 1 - share
    return log_probability(
        [
            (x, expected, d),
            (rarer - x, rarer * rest, -d),
            (drawn - x, commoner * share, -d),
            (commoner - drawn + x, commoner * rest, d),
        ]
    )
