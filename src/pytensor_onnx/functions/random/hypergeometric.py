"""Hypergeometric numbers."""

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable as V

from pytensor_onnx.functions.random.counts import log_probability
from pytensor_onnx.functions.random.streams import (
    keys,
    positions,
    samples,
    uniforms,
    until_drawn,
)
from pytensor_onnx.ops.random.sampler_ops import StandardHypergeometric
from pytensor_onnx.ops.special import portable

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
    x = _reject(x, key, *positions(are_many, counters, rarer, commoner, drawn))
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


def _reject(result: V, key: V, where: V, elements: list[V]) -> V:
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
        exponent = _log_probability(x_, *sizes) - _log_probability(mode, *sizes)
        is_drawn = is_inside[where].set(2 * portable.log(u) <= exponent)
        return x, is_drawn, [counters, *shape]

    return until_drawn(attempt, result, where, [counters, *shape], [key])


def _log_probability(x: V, rarer: V, commoner: V, drawn: V) -> V:
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
