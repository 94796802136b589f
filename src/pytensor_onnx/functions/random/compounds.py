"""PyTensor's random variables that are drawn by inversion in loops or by rejection."""

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.tensor.random import basic as ptr
from pytensor.tensor.variable import TensorVariable as V

from pytensor_onnx.functions.random.drawing import (
    Drawn,
    Sizes,
    counted,
    drawn,
    require,
    sampled,
)
from pytensor_onnx.functions.registry import define
from pytensor_onnx.ops.random.draws import StandardNormal
from pytensor_onnx.ops.random.sampler_ops import (
    LogGamma,
    StandardBinomial,
    StandardGamma,
    StandardHypergeometric,
    StandardPoisson,
    StandardVonMises,
)
from pytensor_onnx.ops.special import portable

_LARGEST_MEAN = 2.0**63 - 10 * np.sqrt(2.0**63)


@define(ptr.GammaRV)
def gamma(state: Variable, shape: Sizes, alpha: V, scale: V) -> Drawn:
    """Scale a standard gamma number."""
    alpha = require(alpha, ~(alpha < 0), "shape < 0")
    scale = require(scale, ~(scale < 0), "scale < 0")
    after, x = sampled(StandardGamma(), state, shape, alpha)
    return after, scale * x


@define(ptr.InvGammaRV)
def invgamma(state: Variable, shape: Sizes, alpha: V, scale: V) -> Drawn:
    """Divide the scale by a gamma number, whose logarithm does not underflow."""
    alpha = require(alpha, ~(alpha < 0), "shape < 0")
    scale = require(scale, ~(scale < 0), "scale < 0")
    after, x = sampled(LogGamma(), state, shape, alpha)
    return after, scale * portable.exp(-x)


@define(ptr.GenGammaRV)
def gengamma(state: Variable, shape: Sizes, alpha: V, p: V, lambd: V) -> Drawn:
    """Take a power of a gamma number."""
    alpha, p = (
        require(x, x > 0, f"{name} <= 0").astype("float64")
        for name, x in {"alpha": alpha, "p": p}.items()
    )
    lambd = require(lambd, lambd >= 0, "lambd < 0")
    after, x = sampled(LogGamma(), state, shape, alpha / p)
    return after, lambd * portable.exp(x / p)


@define(ptr.BetaRV)
def beta(state: Variable, shape: Sizes, a: V, b: V) -> Drawn:
    """Take the share of one of two gamma numbers, by logarithms, which do not underflow."""
    a, b = require(a, a > 0, "alpha <= 0"), require(b, b > 0, "beta <= 0")
    state, x = sampled(LogGamma(), state, shape, a)
    after, y = sampled(LogGamma(), state, shape, b)
    return after, 1 / (1 + portable.exp(y - x))


@define(ptr.StudentTRV)
def student_t(state: Variable, shape: Sizes, df: V, loc: V, scale: V) -> Drawn:
    """Divide a normal number by the root of a mean square, by logarithms."""
    df = require(df, df > 0, "df <= 0").astype("float64")
    scale = require(scale, scale >= 0, "scale < 0")
    state, z = drawn(StandardNormal("float64"), state, shape)
    after, x = sampled(LogGamma(), state, shape, df / 2)
    return after, loc + scale * (z * portable.exp((portable.log(df / 2) - x) / 2))


@define(ptr.PoissonRV)
def poisson(state: Variable, shape: Sizes, lam: V) -> Drawn:
    """Draw a count for its mean."""
    lam = require(lam, lam >= 0, "lam < 0 or lam contains NaNs")
    lam = require(lam, lam <= _LARGEST_MEAN, "lam value too large")
    return counted(StandardPoisson(), state, shape, lam)


@define(ptr.BinomialRV)
def binomial(state: Variable, shape: Sizes, n: V, p: V) -> Drawn:
    """Draw a count for the number of trials and the probability."""
    return counted(StandardBinomial(), state, shape, _trials(n), _probability(p))


@define(ptr.NegBinomialRV)
def negative_binomial(state: Variable, shape: Sizes, n: V, p: V) -> Drawn:
    """Draw a Poisson number whose mean is a gamma number."""
    n = require(n, n > 0, "n <= 0")
    p = require(p, (p > 0) & (p <= 1), "p <= 0, p > 1 or p contains NaNs").astype("float64")
    state, x = sampled(StandardGamma(), state, shape, n)
    mean = x * ((1 - p) / p)
    mean = require(mean, mean <= _LARGEST_MEAN, "n too large or p too small")
    return counted(StandardPoisson(), state, shape, mean)


@define(ptr.BetaBinomialRV)
def beta_binomial(state: Variable, shape: Sizes, n: V, a: V, b: V) -> Drawn:
    """Draw a binomial number whose probability is a beta number."""
    state, p = beta(state, shape, a, b)
    return counted(StandardBinomial(), state, shape, _trials(n), p)


@define(ptr.HyperGeometricRV)
def hypergeometric(state: Variable, shape: Sizes, ngood: V, nbad: V, nsample: V) -> Drawn:
    """Draw a count for the numbers of both kinds and the size of the sample."""
    # The sum of narrow integers may not fit into their dtype.
    ngood, nbad, nsample = (
        require(x, x >= 0, f"{name} < 0").astype("int64")
        for name, x in {"ngood": ngood, "nbad": nbad, "nsample": nsample}.items()
    )
    nsample = require(nsample, nsample <= ngood + nbad, "ngood + nbad < nsample")
    return counted(StandardHypergeometric(), state, shape, ngood, nbad, nsample)


@define(ptr.VonMisesRV)
def vonmises(state: Variable, shape: Sizes, mu: V, kappa: V) -> Drawn:
    """Turn an angle by the mean, and return it between -pi and pi."""
    kappa = require(kappa, ~(kappa < 0), "kappa < 0")
    after, angle = sampled(StandardVonMises(), state, shape, kappa)
    turned = mu + angle
    turns = pt.round(turned / (2 * np.pi))
    return after, pt.clip(turned - turns * (2 * np.pi), -np.pi, np.pi)


def _trials(n: V) -> V:
    return require(n, n >= 0, "n < 0")


def _probability(p: V) -> V:
    return require(p, (p >= 0) & (p <= 1), "p < 0, p > 1 or p contains NaNs")
