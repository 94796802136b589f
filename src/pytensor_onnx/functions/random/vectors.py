"""PyTensor's random variables whose numbers depend on one another: vectors, matrices, orders."""

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.tensor.random import basic as ptr
from pytensor.tensor.variable import TensorVariable as V

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.random.drawing import Drawn, Sizes, drawn, require, sampled
from pytensor_onnx.functions.registry import define
from pytensor_onnx.ops.random.draws import OpenUniform, StandardNormal
from pytensor_onnx.ops.random.sampler_ops import LogGamma, StandardBinomial
from pytensor_onnx.ops.special import portable


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
