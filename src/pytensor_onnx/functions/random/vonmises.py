"""Angles of the von Mises distribution."""

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable as V

from pytensor_onnx.functions.random.streams import keys, samples, uniforms, until_drawn
from pytensor_onnx.ops.random.sampler_ops import StandardVonMises
from pytensor_onnx.ops.special import portable


@samples(StandardVonMises, 1)
def standard_vonmises(state: V, kappa: V) -> tuple[V, V]:
    """Draw angles around zero from a wrapped Cauchy distribution until one is accepted.

    From D. J. Best and N. I. Fisher, "Efficient simulation of the von Mises distribution", Applied
    Statistics 28 (1979) 152-157. Their formulas in cosines are written by half the tangent here,
    so that nothing cancels however large or small the concentration is: their ``s - 1`` is
    ``distance / kappa``.
    """
    after, key, counters = keys(state, kappa.shape[0])
    distance = (1 + 1 / (pt.sqrt(1 + 4 * kappa * kappa) + 2 * kappa)) / 2
    width = 1 / pt.sqrt(1 + 2 * kappa / distance)

    def attempt(k: V, key: V, counters: V, kappa: V, *shape: V) -> tuple[V, V, list[V]]:
        distance, width = shape
        u, v = uniforms(k, key, counters, 2)
        tangent = width * portable.cot_pi(u)
        square = tangent * tangent
        y = distance + 2 * kappa * square / (1 + square)
        # NaN is accepted, so that a concentration that is NaN needs no more attempts.
        is_drawn = ~(portable.log(y / v) + 1 - y < 0)
        return 2 * pt.arctan(tangent), is_drawn, [counters, kappa, distance, width]

    where = pt.arange(kappa.shape[0])
    start = [counters, kappa, distance, width]
    return after, until_drawn(attempt, pt.zeros_like(kappa), where, start, [key])
