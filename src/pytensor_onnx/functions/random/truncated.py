"""Standard normal numbers between bounds."""

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable as V

from pytensor_onnx.functions.random.streams import (
    counter_uniforms,
    keys,
    normals,
    samples,
    uniforms,
    until_drawn,
)
from pytensor_onnx.ops.random.sampler_ops import StandardTruncatedNormal
from pytensor_onnx.ops.special import portable

_WIDE = np.sqrt(2 * np.pi)


@samples(StandardTruncatedNormal, 2)
def standard_truncated_normal(state: V, lower: V, upper: V) -> tuple[V, V]:
    """Draw normal, uniform or exponential numbers until one is accepted.

    From C. P. Robert, "Simulation of truncated normal variables", Statistics and Computing 5 (1995)
    121-125: exponential numbers in a tail, and between bounds around zero uniform ones if these are
    near. Half of the attempts succeed at least.
    """
    after, key, counters = keys(state, lower.shape[0])
    first = counter_uniforms(state, lower.shape[0])
    is_flipped = upper < 0
    low, high = pt.switch(is_flipped, -upper, lower), pt.switch(is_flipped, -lower, upper)

    def attempt(k: V, key: V, counters: V, first: V, low: V, high: V) -> tuple[V, V, list[V]]:
        u, angle, v = uniforms(k, key, counters, 3, first)
        width = high - low
        normal = normals(u, angle)
        uniform = low + width * u
        rate = (low + pt.sqrt(low * low + 4)) / 2
        beyond = -portable.log1p(u * portable.expm1(-rate * width)) / rate
        is_tail, is_wide = low > 0, width > _WIDE
        x = pt.switch(is_tail, low + beyond, pt.switch(is_wide, normal, uniform))
        # The distance of a tail's number from the rate; it includes ``low - rate``.
        distance = pt.switch(is_tail, beyond - 1 / rate, uniform)
        by_density = ~(portable.log(v) > -distance * distance / 2)
        is_inside = ~((normal < low) | (normal > high))
        is_drawn = pt.switch(is_tail | ~is_wide, by_density, is_inside)
        return pt.clip(x, low, high), is_drawn, [counters, first, low, high]

    where = pt.arange(lower.shape[0])
    start = [counters, first, low, high]
    x = until_drawn(attempt, pt.zeros_like(lower), where, start, [key])
    return after, pt.switch(is_flipped, -x, x)
