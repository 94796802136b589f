"""Gamma numbers, the source of most distributions that are drawn by rejection."""

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable as V

from pytensor_onnx.functions.random.streams import (
    counter_uniforms,
    keys,
    normals,
    positions,
    samples,
    spare_uniform,
    uniforms,
    until_drawn,
)
from pytensor_onnx.ops.random.sampler_ops import LogGamma, StandardGamma
from pytensor_onnx.ops.special import portable


@samples(StandardGamma, 1)
def standard_gamma(state: V, shape: V) -> tuple[V, V]:
    """Draw gamma numbers; small shapes are drawn as logarithms, which do not underflow."""
    after, x, where, small = _gammas(state, shape)
    return after, x[where].set(portable.exp(portable.log(x[where]) + small))


@samples(LogGamma, 1)
def log_gamma(state: V, shape: V) -> tuple[V, V]:
    """Draw logarithms of the same gamma numbers."""
    after, x, where, small = _gammas(state, shape)
    x = portable.log(x)
    return after, x[where].set(x[where] + small)


def _gammas(state: V, shape: V) -> tuple[V, V, V, V]:
    """Return the next state, gamma draws, and the factors that correct draws of shapes below one.

    For a shape below one, a number is drawn for the shape plus one. The corrections are the
    positions of these numbers and the logarithms of their factors ``u**(1 / shape)``.
    """
    after, key, counters = keys(state, shape.shape[0])
    u = counter_uniforms(state, shape.shape[0])
    x = _of_large_shape(key, counters, u, shape)
    where, (few, small) = positions(shape < 1, counters, shape)
    return after, x, where, portable.log(spare_uniform(key, few)) / small


def _of_large_shape(key: V, counters: V, first: V, shape: V) -> V:
    """Draw gamma numbers; for shapes below one, draw with the shape plus one.

    From G. Marsaglia and W. W. Tsang, "A simple method for generating gamma variables", ACM Trans.
    Math. Softw. 26 (2000) 363-372. Of 100 attempts 95 succeed at least, most by the squeeze.
    """
    d = pt.switch(shape < 1, shape + 1, shape) - 1 / 3
    c = 1 / pt.sqrt(9 * d)

    def attempt(k: V, key: V, counters: V, first: V, d: V, c: V) -> tuple[V, V, list[V]]:
        *pair, u = uniforms(k, key, counters, 3, first)
        x = normals(*pair)
        y = c * x
        root = 1 + y
        square = x * x
        is_drawn = u < 1 - 0.0331 * square * square
        where, (u, y, square, d_) = positions(~is_drawn, u, y, square, d)
        exponent = square / 2 + 3 * d_ * (portable.log1p(y) - y - y * y - y * y * y / 3)
        # NaN is accepted, so that a shape that is NaN needs no more attempts.
        is_drawn = is_drawn[where].set(~(portable.log(u) >= exponent))
        return d * root * root * root, is_drawn & ~(root <= 0), [counters, first, d, c]

    where = pt.arange(shape.shape[0])
    return until_drawn(attempt, pt.zeros_like(shape), where, [counters, first, d, c], [key])
