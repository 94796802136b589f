"""Poisson numbers."""

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable as V

from pytensor_onnx.functions.random.counts import log_probability
from pytensor_onnx.functions.random.samplers import open_double
from pytensor_onnx.functions.random.streams import (
    keys,
    positions,
    samples,
    uniforms,
    until_drawn,
)
from pytensor_onnx.ops import portable
from pytensor_onnx.ops.samplers import StandardPoisson

LARGE = 10.0
"""Means from which rejection is used."""


@samples(StandardPoisson, 1)
def standard_poisson(state: V, mean: V) -> tuple[V, V]:
    """Draw Poisson numbers, those of small means by inversion."""
    after, *words = keys(state, mean.shape[0])
    is_large = mean >= LARGE
    x = _invert(pt.zeros_like(mean), *positions(~is_large, *words, mean))
    return after, _reject(x, *positions(is_large, *words, mean))


def _invert(result: V, where: V, elements: list[V]) -> V:
    """Subtract the probabilities of 0, 1, 2, … from a uniform number until it is negative."""
    first, second, mean = elements

    def step(k: V, u: V, probability: V, mean: V) -> tuple[V, V, list[V]]:
        rest = u - probability
        following = probability * mean / (k + 1).astype("float64")
        # NaN is drawn at once; zero and it have no other numbers.
        number = pt.switch(pt.isnan(mean), mean, k.astype("float64"))
        return number, ~(rest > 0), [rest, following, mean]

    start = [open_double(first, second), portable.exp(-mean), mean]
    return until_drawn(step, result, where, start)


def _reject(result: V, where: V, elements: list[V]) -> V:
    """Draw from a transformed uniform distribution until a number is accepted.

    Algorithm PTRS of W. Hörmann, "The transformed rejection method for generating Poisson random
    variables", Insurance: Mathematics and Economics 12 (1993) 39-45.
    """
    first, second, mean = elements
    b = 0.931 + 2.53 * pt.sqrt(mean)

    def attempt(k: V, first: V, second: V, mean: V, b: V) -> tuple[V, V, list[V]]:
        u, v = uniforms(k, first, second, 2)
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
        return x, is_drawn, [first, second, mean, b]

    return until_drawn(attempt, result, where, [first, second, mean, b])
