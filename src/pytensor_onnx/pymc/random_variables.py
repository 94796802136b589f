"""Random variables of PyMC, and checks of their parameters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytensor.tensor as pt
from pymc.logprob.utils import CheckParameterValue
from pytensor.compile.rewriting import rewrite_inner_graph
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import HasInnerGraph, Op
from pytensor.graph.rewriting.basic import in2out, node_rewriter
from pytensor.scalar.basic import discrete_types
from pytensor.tensor.variable import TensorVariable as V

from pytensor_onnx.functions.random.distributions import beta, integers, wald
from pytensor_onnx.functions.random.drawing import (
    Drawn,
    Sizes,
    define_by_name,
    drawn,
    require,
    sampled,
)
from pytensor_onnx.ops.random.draws import (
    LogGamma,
    OpenUniform,
    StandardNormal,
    StandardPolyaGamma,
    StandardTruncatedNormal,
)
from pytensor_onnx.ops.special import portable
from pytensor_onnx.rewriting.engine.walkers import inner_nodes

_CONTINUOUS = "pymc.distributions.continuous"
_MULTIVARIATE = "pymc.distributions.multivariate"


@define_by_name("pymc.distributions.discrete.DiscreteUniformRV")
def discrete_uniform(state: Variable, shape: Sizes, lower: V, upper: V) -> Drawn:
    """Draw integers between two bounds, both included."""
    upper = require(upper, lower <= upper, "lower > upper")
    return integers(state, shape, lower, upper.astype("int64") + 1, dtype="int64")


define_by_name("pymc.data.MinibatchIndexRV")(integers)


@define_by_name(f"{_CONTINUOUS}.WaldRV")
def shifted_wald(state: Variable, shape: Sizes, mu: V, lam: V, alpha: V, *, dtype: str) -> Drawn:
    """Shift a Wald number by alpha."""
    after, x = wald(state, shape, mu, lam, dtype=dtype)
    return after, x + alpha


@define_by_name(f"{_CONTINUOUS}.BetaClippedRV")
def beta_inside(state: Variable, shape: Sizes, a: V, b: V, *, dtype: str) -> Drawn:
    """Replace a beta number that rounds to zero or one by its neighbour."""
    after, x = beta(state, shape, a, b)
    zero, one = np.zeros((), dtype), np.ones((), dtype)
    return after, pt.clip(x.astype(dtype), np.nextafter(zero, one), np.nextafter(one, zero))


@define_by_name(f"{_CONTINUOUS}.TruncatedNormalRV")
def truncated_normal(state: Variable, shape: Sizes, mu: V, sigma: V, lower: V, upper: V) -> Drawn:
    """Scale and move a truncated standard normal number."""
    sigma = require(sigma, sigma > 0, "sigma <= 0").astype("float64")
    upper = require(upper, ~(lower >= upper), "lower >= upper")
    low, high = (lower - mu) / sigma, (upper - mu) / sigma
    after, x = sampled(StandardTruncatedNormal(), state, shape, low, high)
    return after, pt.clip(mu + sigma * x, lower, upper)


@define_by_name(f"{_CONTINUOUS}.PolyaGammaRV")
def polya_gamma(state: Variable, shape: Sizes, h: V, z: V) -> Drawn:
    """Draw for any positive shape and any tilt."""
    h = require(h, h > 0, "h <= 0")
    return sampled(StandardPolyaGamma(), state, shape, h, z)


@define_by_name(f"{_CONTINUOUS}.SkewNormalRV")
def skew_normal(state: Variable, shape: Sizes, mu: V, sigma: V, alpha: V, *, dtype: str) -> Drawn:
    """Add a normal and the absolute value of another (A. Azzalini, 1985)."""
    sigma = require(sigma, sigma > 0, "sigma <= 0")
    state, x = drawn(StandardNormal(dtype), state, shape)
    after, y = drawn(StandardNormal(dtype), state, shape)
    return after, mu + sigma * ((alpha * pt.abs(x) + y) / pt.sqrt(1 + alpha * alpha))


@define_by_name(f"{_CONTINUOUS}.SkewStudentTRV")
def skew_student_t(state: Variable, shape: Sizes, a: V, b: V, mu: V, sigma: V) -> Drawn:
    """Take the hyperbolic sine of half the logarithm of a ratio of gamma numbers.

    It is a transformed beta number in M. C. Jones and M. J. Faddy, "A skew extension of the
    t-distribution, with applications", J. R. Statist. Soc. B 65 (2003) 159-174.
    """
    a, b = require(a, a > 0, "a <= 0"), require(b, b > 0, "b <= 0")
    sigma = require(sigma, sigma > 0, "sigma <= 0")
    state, x = sampled(LogGamma(), state, shape, a)
    after, y = sampled(LogGamma(), state, shape, b)
    half = (x - y) / 2
    sine = (portable.expm1(half) - portable.expm1(-half)) / 2
    return after, mu + sigma * (pt.sqrt((a + b).astype("float64")) * sine)


@define_by_name(f"{_CONTINUOUS}.RiceRV")
def rice(state: Variable, shape: Sizes, b: V, sigma: V, *, dtype: str) -> Drawn:
    """Take the distance of a normal point of the plane."""
    b = require(b, b >= 0, "b < 0")
    sigma = require(sigma, sigma > 0, "sigma <= 0")
    state, x = drawn(StandardNormal(dtype), state, shape)
    after, y = drawn(StandardNormal(dtype), state, shape)
    x = x + b
    return after, sigma * pt.sqrt(x * x + y * y)


@define_by_name(f"{_CONTINUOUS}.MoyalRV")
def moyal(state: Variable, shape: Sizes, mu: V, sigma: V, *, dtype: str) -> Drawn:
    """Take the logarithm of the square of a normal number."""
    sigma = require(sigma, sigma > 0, "sigma <= 0")
    after, z = drawn(StandardNormal(dtype), state, shape)
    return after, mu - sigma * (2 * portable.log(pt.abs(z)))


@define_by_name(f"{_CONTINUOUS}.InterpolatedRV")
def interpolated(state: Variable, shape: Sizes, x: V, pdf: V, cdf: V) -> Drawn:
    """Invert the distribution function, whose pieces are of the second degree."""
    if not all(all(v.type.broadcastable[:-1]) for v in (x, pdf, cdf)):
        raise NotImplementedError("Function not implemented for batched points")
    x, pdf, cdf = (v.astype("float64").flatten() for v in (x, pdf, cdf))
    after, u = drawn(OpenUniform("float64"), state, shape)
    # Probabilities are rounded, and the last may be below one.
    i = pt.clip(pt.searchsorted(cdf, u.flatten()) - 1, 0, x.shape[0] - 2).reshape(shape)
    slope = (pdf[i + 1] - pdf[i]) / (x[i + 1] - x[i])
    rest = u - cdf[i]
    root = pt.sqrt(pt.maximum(pdf[i] * pdf[i] + 2 * slope * rest, 0))
    return after, x[i] + 2 * rest / (pdf[i] + root)


@define_by_name(f"{_MULTIVARIATE}.MatrixNormalRV")
def matrix_normal(
    state: Variable, shape: Sizes, mu: V, rowchol: V, colchol: V, *, dtype: str
) -> Drawn:
    """Multiply a matrix of normal numbers with roots of both covariances."""
    after, z = drawn(StandardNormal(dtype), state, shape)
    return after, mu + rowchol @ (z @ colchol.mT)


@define_by_name(f"{_MULTIVARIATE}.StickBreakingWeightsRV")
def stick_breaking_weights(state: Variable, shape: Sizes, alpha: V, k: V) -> Drawn:
    """Break off beta numbers of shapes 1 and alpha, whose logarithms invert their distribution."""
    alpha = require(alpha, alpha > 0, "alpha <= 0").astype("float64")
    after, u = drawn(OpenUniform("float64"), state, [*shape[:-1], shape[-1] - 1])
    logs = portable.log(u) / alpha[..., None]
    left = portable.exp(pt.cumsum(logs, axis=-1))
    before = pt.concatenate([pt.ones_like(left[..., :1]), left[..., :-1]], axis=-1)
    return after, pt.concatenate([-portable.expm1(logs) * before, left[..., -1:]], axis=-1)


@define_by_name(f"{_MULTIVARIATE}.CARRV")
def conditional_autoregression(
    state: Variable, shape: Sizes, mu: V, w: V, alpha: V, tau: V, is_valid: V, *, dtype: str
) -> Drawn:
    """Solve with a root of the precision ``tau (D - alpha W)``."""
    w = require(w, is_valid, "W must be a valid adjacency matrix")
    alpha = require(alpha, (alpha > -1) & (alpha < 1), "the domain of alpha is: -1 < alpha < 1")
    w = pt.reshape(w, w.shape[-2:]).astype(dtype)
    alpha, tau = (x.flatten()[0].astype(dtype) for x in (alpha, tau))
    precision = tau * (pt.diag(w.sum(axis=0)) - alpha * w)
    after, z = drawn(StandardNormal(dtype), state, shape)
    columns = pt.reshape(z, (-1, shape[-1])).T
    root = pt.linalg.cholesky(precision)
    x = pt.linalg.solve_triangular(root.T, columns, lower=False)
    return after, mu + pt.reshape(x.T, shape, ndim=len(shape))


def replace_checks(graphs: Sequence[Variable]) -> list[Variable]:
    """Return graphs in which a density of invalid parameters is minus infinity, not an error.

    So it is wherever the check stands: in the steps of loops, in functions, and in the loops and
    functions within these. A checked integer becomes the lowest number of its dtype.

    Examples
    --------
    >>> import pymc as pm, pytensor.tensor as pt
    >>> sigma = pt.scalar("sigma")
    >>> (logp,) = replace_checks([pm.logp(pm.Normal.dist(0.0, sigma), 0.0)])
    >>> float(logp.eval({sigma: -1.0}, mode="FAST_COMPILE"))
    -inf
    """
    fgraph = FunctionGraph(outputs=list(graphs), clone=True, copy_inputs=False)
    _replace_checks(fgraph)
    return list(fgraph.outputs)


def _replace_checks(fgraph: FunctionGraph) -> None:
    """Replace the checks of a graph and of its inner graphs, in place."""
    rewrite_inner_graph(fgraph, _has_checks, _replace_inner_checks)
    _REPLACE.rewrite(fgraph)


def _replace_inner_checks(
    linker: object, op: Op, node: Apply, inner: FunctionGraph, *, mode: object
) -> None:
    _replace_checks(inner)


def _has_checks(op: Op) -> bool:
    return isinstance(op, HasInnerGraph) and any(
        isinstance(node.op, CheckParameterValue) for node in inner_nodes(op)
    )


@node_rewriter([CheckParameterValue])
def _lowest_unless_valid(fgraph: FunctionGraph, node: Apply) -> list[Variable]:
    """Replace a check of a parameter by the choice of the lowest number if it fails."""
    value, *conditions = node.inputs
    dtype = value.type.dtype
    lowest = np.iinfo(dtype).min if dtype in discrete_types else -np.inf
    is_valid = pt.all(conditions) if len(conditions) > 1 else conditions[0]
    result = pt.switch(is_valid, value, np.asarray(lowest, dtype))
    result.name = node.op.msg
    return [node.outputs[0].type.filter_variable(result)]


_REPLACE = in2out(_lowest_unless_valid)
