"""Gamma numbers, the source of most distributions that are drawn by rejection."""

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable as V

from pytensor_onnx.functions.random.streams import (
    keys,
    normals,
    positions,
    samples,
    spare_uniform,
    uniforms,
    until_drawn,
)
from pytensor_onnx.ops import portable
from pytensor_onnx.ops.samplers import LogGamma, StandardGamma


@samples(StandardGamma, 1)
def standard_gamma(state: V, shape: V) -> tuple[V, V]:
    """Draw gamma numbers; those of small shapes by their logarithms, which do not underflow."""
    after, first, second = keys(state, shape.shape[0])
    x = _of_large_shape(first, second, shape)
    where, small = positions(shape < 1, first, second, shape, x)
    return after, x[where].set(portable.exp(portable.log(small[3]) + _boost(*small[:3])))


@samples(LogGamma, 1)
def log_gamma(state: V, shape: V) -> tuple[V, V]:
    """Draw logarithms of the same gamma numbers."""
    after, first, second = keys(state, shape.shape[0])
    x = portable.log(_of_large_shape(first, second, shape))
    where, small = positions(shape < 1, first, second, shape, x)
    return after, x[where].set(small[3] + _boost(*small[:3]))


def _boost(first: V, second: V, shape: V) -> V:
    """Return the logarithm of the factor that lowers a shape by one: ``u**(1 / shape)``."""
    return portable.log(spare_uniform(first, second)) / shape


def _of_large_shape(first: V, second: V, shape: V) -> V:
    """Draw gamma numbers of shapes from one on; of smaller shapes, for the shape plus one.

    From G. Marsaglia and W. W. Tsang, "A simple method for generating gamma variables", ACM Trans.
    Math. Softw. 26 (2000) 363-372. Of 100 attempts 95 succeed at least, most by the squeeze.
    """
    d = pt.switch(shape < 1, shape + 1, shape) - 1 / 3
    c = 1 / pt.sqrt(9 * d)

    def attempt(k: V, first: V, second: V, d: V, c: V) -> tuple[V, V, list[V]]:
        *pair, u = uniforms(k, first, second, 3)
        x = normals(*pair)
        y = c * x
        root = 1 + y
        square = x * x
        is_drawn = u < 1 - 0.0331 * square * square
        where, (u, y, square, d_) = positions(~is_drawn, u, y, square, d)
        exponent = square / 2 + 3 * d_ * (portable.log1p(y) - y - y * y - y * y * y / 3)
        # NaN is accepted, so that a shape that is NaN needs no more attempts.
        is_drawn = is_drawn[where].set(~(portable.log(u) >= exponent))
        return d * root * root * root, is_drawn & ~(root <= 0), [first, second, d, c]

    where = pt.arange(shape.shape[0])
    return until_drawn(attempt, pt.zeros_like(shape), where, [first, second, d, c])
