"""Binomial numbers."""

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable as V

from pytensor_onnx.functions.random.counts import log_probability
from pytensor_onnx.functions.random.streams import (
    counter_uniforms,
    keys,
    positions,
    samples,
    uniforms,
    until_drawn,
)
from pytensor_onnx.ops.random.sampler_ops import StandardBinomial
from pytensor_onnx.ops.special import portable

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
    count = pt.switch(pt.all(is_large), 0, n.shape[0])
    x = _invert(pt.zeros_like(n), counter_uniforms(state, count), *positions(~is_large, n, rarer))
    x = _reject(x, key, *positions(is_large, counters, n, rarer))
    return after, pt.switch(is_flipped, n - x, x)


def _invert(result: V, first: V, where: V, elements: list[V]) -> V:
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

    start = [first[where], portable.exp(n * portable.log1p(-p)), n, odds]
    return until_drawn(step, result, where, start)


def _reject(result: V, key: V, where: V, elements: list[V]) -> V:
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
        exponent = _log_probability(x_, n_, p_) - _log_probability(mode, n_, p_)
        is_drawn = is_drawn[where].set(portable.log(height) <= exponent)
        return x, is_drawn, [counters, n, p, deviation]

    return until_drawn(attempt, result, where, [counters, n, p, deviation], [key])


def _log_probability(x: V, n: V, p: V) -> V:
    mean = n * p
    difference = x - mean
    return log_probability([(x, mean, difference), (n - x, n * (1 - p), -difference)])
