"""PyTensor's random variables as expressions of uniform and normal numbers.

The functions of `portable` are equal in every bit in all runtimes, and so are the draws.
"""

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.tensor.random import basic as ptr
from pytensor.tensor.variable import TensorVariable as V

from pytensor_onnx.functions.random.drawing import Drawn, Sizes, drawn, require, transforms
from pytensor_onnx.functions.registry import define
from pytensor_onnx.ops.random.draws import (
    OpenUniform,
    RandomBits,
    StandardNormal,
    StandardUniform,
)
from pytensor_onnx.ops.special import portable


@transforms(StandardUniform, ptr.UniformRV)
def uniform(u: V, low: V, high: V) -> V:
    """Scale a uniform number; rounding may reach the upper end, as in NumPy."""
    return low + (high - low) * u


@transforms(StandardNormal, ptr.NormalRV, "scale")
def normal(z: V, loc: V, scale: V) -> V:
    """Scale and move a standard normal number."""
    return loc + scale * z


@transforms(StandardNormal, ptr.HalfNormalRV, "scale")
def halfnormal(z: V, loc: V, scale: V) -> V:
    """Fold the negative half of a normal number over."""
    return loc + scale * pt.abs(z)


@transforms(StandardNormal, ptr.LogNormalRV, "sigma")
def lognormal(z: V, mean: V, sigma: V) -> V:
    """Raise e to a normal number."""
    return portable.exp(mean + sigma * z)


@transforms(OpenUniform, ptr.ExponentialRV, "scale")
def exponential(u: V, scale: V) -> V:
    """Invert the distribution function, as the distributions below do."""
    return -portable.log(u) * scale


@transforms(OpenUniform, ptr.WeibullRV, "shape")
def weibull(u: V, shape: V) -> V:
    """Take a power of an exponential number."""
    return portable.exp(portable.log(-portable.log(u)) / shape)


@transforms(OpenUniform, ptr.ParetoRV, "b", "scale")
def pareto(u: V, b: V, scale: V) -> V:
    """Start at the scale; the tail falls with the power b."""
    return scale * portable.exp(-portable.log(u) / b)


@transforms(OpenUniform, ptr.GumbelRV, "scale")
def gumbel(u: V, loc: V, scale: V) -> V:
    """Take the logarithm of an exponential number."""
    return loc - scale * portable.log(-portable.log(u))


@transforms(OpenUniform, ptr.LogisticRV, "scale")
def logistic(u: V, loc: V, scale: V) -> V:
    """Take log-odds; ``1 - u`` is exact."""
    return loc + scale * (portable.log(u) - portable.log(1 - u))


@transforms(OpenUniform, ptr.LaplaceRV, "scale")
def laplace(u: V, loc: V, scale: V) -> V:
    """Take an exponential number to either side."""
    size = portable.log(2 * pt.minimum(u, 1 - u))
    return loc + scale * pt.where(u < 0.5, size, -size)


@transforms(OpenUniform, ptr.CauchyRV, "scale")
def cauchy(u: V, loc: V, scale: V) -> V:
    """Take the cotangent of the angle to the nearer end, which keeps the tails exact."""
    return loc - scale * portable.cot_pi(u)


@transforms(OpenUniform, ptr.HalfCauchyRV, "scale")
def halfcauchy(u: V, loc: V, scale: V) -> V:
    """Draw by inversion: the cotangent of an angle between 0 and pi/2."""
    return loc + scale * portable.cot_pi(u / 2)


@transforms(StandardUniform, ptr.TriangularRV)
def triangular(u: V, left: V, mode: V, right: V) -> V:
    """Invert the distribution function, on either side of the mode."""
    left = require(left, (left <= mode) & (mode <= right), "left > mode or mode > right")
    width, before, behind = right - left, mode - left, right - mode
    return pt.where(
        u * width < before,
        left + pt.sqrt(u * width * before),
        right - pt.sqrt((1 - u) * width * behind),
    )


@transforms(OpenUniform, ptr.TruncExponentialRV, "b", "scale")
def truncexpon(u: V, b: V, loc: V, scale: V) -> V:
    """Invert the distribution function up to b."""
    return loc - scale * portable.log1p(u * portable.expm1(-b))


@define(ptr.BernoulliRV)
def bernoulli(state: Variable, shape: Sizes, p: V, *, dtype: str) -> Drawn:
    """Compare a uniform number with the probability, in the precision that this has."""
    p = require(p, (p >= 0) & (p <= 1), "p < 0, p > 1 or p is NaN")
    after, u = drawn(StandardUniform(_float_of(p)), state, shape)
    return after, (u < p).astype(dtype)


@define(ptr.CategoricalRV)
def categorical(state: Variable, shape: Sizes, p: V, *, dtype: str) -> Drawn:
    """Count the cumulated probabilities that a uniform number reaches."""
    after, u = drawn(StandardUniform(_float_of(p)), state, shape)
    reached = pt.cumsum(p, axis=-1)[..., :-1] <= u[..., None]
    return after, reached.sum(axis=-1).astype(dtype)


@define(ptr.GeometricRV)
def geometric(state: Variable, shape: Sizes, p: V, *, dtype: str) -> Drawn:
    """Round an exponential number up."""
    p = require(p, (p > 0) & (p <= 1), "p <= 0, p > 1 or p contains NaNs")
    after, u = drawn(OpenUniform(_float_of(p)), state, shape)
    trials = pt.ceil(portable.log(u) / portable.log1p(-p))
    largest = np.nextafter(np.dtype(u.type.dtype).type(2**63), 0, dtype=u.type.dtype)
    return after, pt.clip(trials, 1, largest).astype(dtype)


@define(ptr.WaldRV)
def wald(state: Variable, shape: Sizes, mean: V, scale: V, *, dtype: str) -> Drawn:
    """Choose between the two roots that have a squared normal number in common.

    From J. R. Michael, W. R. Schucany and R. W. Haas, "Generating random variates using
    transformations with multiple roots", The American Statistician 30 (1976) 88-90, with the
    smaller root as a quotient, which nothing cancels in.
    """
    computed = dtype if dtype in ("float32", "float64") else "float32"
    mean, scale = (
        require(x, x > 0, f"{name} <= 0").astype(computed)
        for name, x in {"mean": mean, "scale": scale}.items()
    )
    state, z = drawn(StandardNormal(computed), state, shape)
    after, u = drawn(StandardUniform(computed), state, shape)
    w = mean * z * z / (2 * scale)
    smaller = mean / (1 + w + pt.sqrt(w * (w + 2)))
    return after, pt.where(u * (mean + smaller) <= mean, smaller, mean * (mean / smaller))


@define(ptr.IntegersRV)
def integers(state: Variable, shape: Sizes, low: V, high: V, *, dtype: str) -> Drawn:
    """Take the upper half of the product of 64 bits and the number of integers.

    The probability of each differs by no more than 2**-64 from that of the others.
    """
    low, high = low.astype("int64"), high.astype("int64")
    low = require(low, low < high, "low >= high")
    after, bits = drawn(RandomBits(), state, shape)
    count = (high - low).astype("uint64")
    return after, (low + _upper_half(bits, count).astype("int64")).astype(dtype)


def _upper_half(x: V, y: V) -> V:
    """Return the upper 64 bits of the product of uint64, which has 128."""
    half, mask = pt.constant(np.uint64(2**32)), pt.constant(np.uint64(2**32 - 1))
    x_high, x_low, y_high, y_low = x // half, x & mask, y // half, y & mask
    crossed = x_high * y_low + x_low * y_low // half
    carried = x_low * y_high + (crossed & mask)
    return x_high * y_high + crossed // half + carried // half


def _float_of(p: V) -> str:
    return "float32" if p.type.dtype in ("float16", "float32") else "float64"
