"""Pólya-Gamma numbers of whole shapes."""

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable as V

from pytensor_onnx.functions.random.streams import (
    ATTEMPTS,
    keys,
    normals,
    samples,
    uniforms,
    until_drawn,
)
from pytensor_onnx.ops import portable
from pytensor_onnx.ops.samplers import StandardPolyaGamma

_BORDER = 0.64
"""Where one series of the density takes over from the other."""

_LEFT = 4 * np.exp(-0.5 / _BORDER) * np.sqrt(_BORDER / (2 * np.pi))
"""Mass of the proposals below the border, of a normal tail that is drawn by an exponential one."""


@samples(StandardPolyaGamma, 2)
def standard_polya_gamma(state: V, h: V, z: V) -> tuple[V, V]:
    """Add as many numbers of shape one as the shape, each drawn by rejection.

    From N. G. Polson, J. G. Scott and J. Windle, "Bayesian inference for logistic models using
    Pólya-Gamma latent variables", JASA 108 (2013) 1339-1349, section 4, with the tilt among the
    conditions of an attempt where it is small. Of 100 attempts 53 succeed at least. The
    alternating series of the density is summed: beyond its fourth term it does not change.
    """
    after, first, second = keys(state, h.shape[0])
    c = pt.abs(z) / 2
    rate = np.pi**2 / 8 + c * c / 2
    is_small = c < 1 / _BORDER
    exponent = pt.switch(is_small, 0.0, c) - rate * _BORDER
    right = np.pi / (2 * rate) * portable.exp(exponent)
    share = right / (right + pt.switch(is_small, _LEFT, 2.0))

    def attempt(k: V, first: V, second: V, *elements: V) -> tuple[V, V, list[V]]:
        c, rate, share, left, total = elements
        side, a, b, u, v = uniforms(k, first, second, 5)
        x, is_proposed = _proposal(c, rate, side < share, a, b, u)
        ratio = portable.exp(pt.switch(x <= _BORDER, -4 / x, -(np.pi**2) * x))
        cube = ratio * ratio * ratio
        # NaN is accepted, so that a tilt that is NaN needs no more attempts.
        is_new = is_proposed & ~(v >= 1 - 3 * ratio + 5 * cube - 7 * cube * cube)
        left, total = left - is_new, pt.switch(is_new, total + x, total)
        return total / 4, pt.eq(left, 0), [first, second, c, rate, share, left, total]

    zeros = pt.zeros_like(c)
    start = [first, second, c, rate, share, h, zeros]
    most = ATTEMPTS + 4 * pt.max(pt.concatenate([h, [0.0]])).astype("int64")
    return after, until_drawn(attempt, zeros, pt.arange(h.shape[0]), start, most)


def _proposal(c: V, rate: V, is_right: V, a: V, b: V, u: V) -> tuple[V, V]:
    """Return numbers from the envelope of the density, and whether they are from it."""
    exponential = -portable.log(a)
    tail = _BORDER / pt.sqr(1 + _BORDER * exponential)
    bound = portable.exp(-(_BORDER * exponential * exponential + c * c * tail) / 2)
    # The roots of a Wald number of mean 1 / c are this one and its inverse, over c.
    normal = normals(a, b)
    w = normal * normal / (2 * c)
    s = 1 / (1 + w + pt.sqrt(w * (w + 2)))
    root = pt.switch(u * (1 + s) <= 1, s, 1 / s) / c
    is_small = c < 1 / _BORDER
    left = pt.switch(is_small, tail, root)
    is_left = pt.switch(is_small, ~(b > bound), ~(root > _BORDER))
    return pt.switch(is_right, _BORDER + exponential / rate, left), is_right | is_left
