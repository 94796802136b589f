"""Draws of distributions made of others.

The functions of `portable` are equal in every bit in all runtimes, and so are the draws.
"""

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.tensor.random import basic as ptr
from pytensor.tensor.variable import TensorVariable as V

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.random.drawing import (
    Drawn,
    Sizes,
    counted,
    drawn,
    require,
    sampled,
    transforms,
)
from pytensor_onnx.functions.registry import define
from pytensor_onnx.ops.random.draws import (
    LogGamma,
    OpenUniform,
    RandomBits,
    StandardBinomial,
    StandardGamma,
    StandardHypergeometric,
    StandardNormal,
    StandardPoisson,
    StandardUniform,
    StandardVonMises,
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


@define(ptr.DirichletRV)
def dirichlet(state: Variable, shape: Sizes, alphas: V) -> Drawn:
    """Divide gamma numbers by their sum, by logarithms, which do not underflow."""
    alphas = require(alphas, alphas >= 0, "alpha < 0 or alpha contains NaNs")
    after, x = sampled(LogGamma(), state, shape, alphas)
    weights = portable.exp(x - pt.max(x, axis=-1, keepdims=True))
    return after, weights / _total(weights)[..., None]


@define(ptr.MvNormalRV)
def multivariate_normal(
    state: Variable, shape: Sizes, mean: V, cov: V, *, dtype: str, method: str
) -> Drawn:
    """Multiply normal numbers with a root of the covariance."""
    after, z = drawn(StandardNormal(dtype), state, shape)
    return after, mean + _product(z, _root(cov.astype(dtype), method))


def _root(cov: V, method: str) -> V:
    if method == "cholesky":
        root: V = pt.linalg.cholesky(cov)
        return root
    if method == "svd":
        vectors, values, _ = pt.linalg.svd(cov)
    else:
        values, vectors = pt.linalg.eigh(cov)
    return vectors * pt.sqrt(values)[..., None, :]


def _product(z: V, root: V) -> V:
    """Return the products of matrices with vectors; one matrix takes all vectors at once."""
    if all(root.type.broadcastable[:-2]):
        return z @ pt.reshape(root, root.shape[-2:]).T
    return (root @ z[..., None])[..., 0]


@define(ptr.MultinomialRV)
def multinomial(state: Variable, shape: Sizes, n: V, p: V) -> Drawn:
    """Draw the counts of one category after the other, of the trials that are left.

    The last category has the probability that the others leave, as in NumPy.
    """
    n = require(n, n >= 0, "n < 0")
    p = require(p, (p >= 0) & (p <= 1), "pvals < 0, pvals > 1 or pvals contains NaNs")
    p = p.astype("float64")
    others = _total(p[..., :-1])
    p = require(p, others <= 1 + 1e-12, "sum(pvals[:-1]) > 1.0")
    left = pt.maximum(1 - others, 0)
    # A last probability that is given right is without the rounding error of the sum.
    is_right = pt.abs(left - p[..., -1]) < 1e-10
    p = pt.concatenate([p[..., :-1], pt.switch(is_right, p[..., -1], left)[..., None]], axis=-1)
    of_rest = pt.cumsum(p[..., ::-1], axis=-1)[..., ::-1]
    share = pt.switch(of_rest > 0, pt.minimum(p / of_rest, 1), 0)
    shares = _rows(pt.set_subtensor(share[..., -1], 1), shape)
    rest = pt.broadcast_to(n.astype("float64"), shape[:-1]).flatten()

    def category(share: V, i: V, state: Variable, rest: V, counts: V) -> list[Variable]:
        after, found = StandardBinomial()(state, rest, share)
        return [i + 1, after, rest - found, counts[i].set(found)]

    start = [pt.constant(np.int64(0)), state, rest, pt.zeros_like(shares)]
    _, after, _, counts = iterate(category, start, n_steps=shares.shape[0], sequences=[shares])
    counts = require(counts, ~pt.isnan(counts), "no number was accepted", RuntimeError)
    return after, pt.reshape(counts.T, shape, ndim=len(shape))


def _rows(x: V, shape: Sizes) -> V:
    """Return an array of a shape as a matrix whose rows are the elements of the last axis."""
    return pt.reshape(pt.broadcast_to(x, shape), (-1, shape[-1])).T


def _total(x: V) -> V:
    """Add along the last axis in order, as all runtimes do; sums differ in their roundings."""
    padded = pt.concatenate([pt.zeros_like(x[..., :1]), x], axis=-1)
    return pt.cumsum(padded, axis=-1)[..., -1]


@define(ptr.PermutationRV)
def permutation(
    state: Variable, shape: Sizes, x: V, *, dtype: str, ndims_params: tuple[int, ...]
) -> Drawn:
    """Order positions by random numbers; of equal ones, 1 in 2**53, the first is the first."""
    core = max(ndims_params[0], 1)
    batch = len(shape) - core
    after, keys = drawn(OpenUniform("float64"), state, shape[: batch + 1])
    order = pt.argsort(keys, axis=-1)
    return after, _taken(x, order, shape, core) if ndims_params[0] else order.astype(dtype)


@define(ptr.ChoiceWithoutReplacement)
def choice_without_replacement(
    state: Variable, shape: Sizes, a: V, *rest: V, ndims_params: tuple[int, ...]
) -> Drawn:
    """Take the positions of the least numbers: uniform ones, or exponential ones by probability.

    The exponential numbers are those of P. S. Efraimidis and P. G. Spirakis, "Weighted random
    sampling with a reservoir", Information Processing Letters 97 (2006) 181-185; the order in
    which they follow is that of draws one after the other.
    """
    *probabilities, sizes = rest
    core = ndims_params[0]
    chosen = shape[: len(shape) - max(core - 1, 0)]
    batch = len(chosen) - sizes.type.shape[-1]
    chosen, kept = shape[:batch], shape[batch : len(chosen)]
    population = pt.max(a) if core == 0 else a.shape[-core]
    count = pt.as_tensor(1, dtype="int64")
    for size in kept:
        count = count * size
    too_few = "Cannot take a larger sample than population when replace is False"
    count = require(count, count <= population, too_few)
    after, keys = drawn(OpenUniform("float64"), state, [*chosen, population.astype("int64")])
    if probabilities:
        [p] = probabilities
        p = require(p, (p >= 0) & (p <= 1), "probabilities are not between 0 and 1")
        error = pt.abs(_total(p.astype("float64")) - 1)
        tolerance = np.sqrt(np.finfo(p.type.dtype if p.type.dtype == "float32" else "f8").eps)
        p = require(p, error < tolerance, "probabilities do not sum to 1")
        are_enough = (p > 0).sum(axis=-1) >= count
        p = require(p, are_enough, "Fewer non-zero entries in p than size")
        keys = -portable.log(keys) / p
    order = pt.argsort(keys, axis=-1)[..., :count]
    if core == 0:
        x = order.astype(a.type.dtype)
    else:
        flat = [*chosen, count, *shape[len(shape) - core + 1 :]]
        x = _taken(a, order, flat, core)
    return after, pt.reshape(x, shape, ndim=len(shape))


def _taken(x: V, order: V, shape: Sizes, core: int) -> V:
    """Return the elements of each array of a batch at positions along its first axis."""
    if len(shape) == core and x.type.ndim == core:
        return x[order]
    batch = len(shape) - core
    whole = pt.broadcast_to(x, [*shape[:batch], *x.shape[x.type.ndim - core :]])
    places = pt.shape_padright(order, core - 1)
    return pt.take_along_axis(whole, places, axis=batch)
