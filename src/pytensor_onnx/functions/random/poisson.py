"""Poisson numbers."""

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
from pytensor_onnx.ops.random.sampler_ops import StandardPoisson
from pytensor_onnx.ops.special import portable

LARGE = 10.0
"""Means from which rejection is used."""


@samples(StandardPoisson, 1)
def standard_poisson(state: V, mean: V) -> tuple[V, V]:
    """Draw Poisson numbers; by inversion where the mean is small."""
    after, key, counters = keys(state, mean.shape[0])
    is_large = mean >= LARGE
    # No words are needed where no number is inverted.
    count = pt.switch(pt.all(is_large), 0, mean.shape[0])
    x = _invert(pt.zeros_like(mean), counter_uniforms(state, count), *positions(~is_large, mean))
    return after, _reject(x, key, *positions(is_large, counters, mean))


def _invert(result: V, first: V, where: V, elements: list[V]) -> V:
    """Subtract the probabilities of 0, 1, 2, … from a uniform number until it is negative."""
    (mean,) = elements

    def step(k: V, u: V, probability: V, mean: V) -> tuple[V, V, list[V]]:
        rest = u - probability
        following = probability * mean / (k + 1).astype("float64")
        # NaN is drawn at once; zero and it have no other numbers.
        number = pt.switch(pt.isnan(mean), mean, k.astype("float64"))
        return number, ~(rest > 0), [rest, following, mean]

    return until_drawn(step, result, where, [first[where], portable.exp(-mean), mean])


def _reject(result: V, key: V, where: V, elements: list[V]) -> V:
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
        is_drawn = is_drawn[where].set(portable.log(v * hat) <= exponent)
        return x, is_drawn, [counters, mean, b]

    return until_drawn(attempt, result, where, [counters, mean, b], [key])
