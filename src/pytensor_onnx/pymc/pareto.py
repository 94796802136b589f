"""Pareto smoothed importance weights.

A. Vehtari, D. Simpson, A. Gelman, Y. Yao, J. Gabry, "Pareto smoothed importance sampling", JMLR 25
(2024) 72; the generalised Pareto distribution is fitted as by J. Zhang, M. A. Stephens,
Technometrics 51 (2009) 316, in the order of ArviZ.
"""

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

FEWEST_DRAWS = 25
"""Draws from which on the tail is smoothed; it has at least five."""

EQUAL = 1e-8
"""Differences of log weights in the tail below which they are equal, but for rounding."""

_PRIOR_OF_QUARTILE, _PRIOR_DRAWS, _PRIOR_SHAPE = 3.0, 10.0, 0.5


def pareto_smoothed(log_ratios: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """Return smoothed and normalised log weights, and the shape k of the tail.

    The largest weights become quantiles of a generalised Pareto distribution that is fitted to
    them. Above k = 0.7, estimates from the weights are not reliable.

    Parameters
    ----------
    log_ratios
        float64 vector of log-densities of draws minus those of the distribution that they are from.

    Returns
    -------
    TensorVariable
        Logarithms of weights whose sum is one.
    TensorVariable
        The shape k: zero if the weights of the tail are equal, NaN for fewer than 25 draws, and if
        a first quarter of the tail has one weight. Weights are not smoothed then.

    Examples
    --------
    >>> ratios = pt.constant(np.random.default_rng(0).normal(size=1000))
    >>> weights, k = pareto_smoothed(ratios)
    >>> bool(abs(pt.exp(weights).sum().eval() - 1) < 1e-12), bool(k.eval() < 0.7)
    (True, True)
    """
    n = log_ratios.shape[0]
    # Draws without weight before the others make a tail of any number of draws.
    padded = pt.concatenate([pt.full((FEWEST_DRAWS,), -np.inf), log_ratios])
    padded = padded - padded.max()
    size = pt.switch(n > 225, pt.floor(3.0 * pt.sqrt(n.astype("float64"))), n // 5).astype("int64")
    size = pt.maximum(size, FEWEST_DRAWS // 5)
    order = pt.argsort(padded)
    places = order[padded.shape[0] - size :]
    tail = padded[places]
    cutoff = pt.exp(padded[order[padded.shape[0] - size - 1]])
    shape, scale = _fitted(pt.exp(tail) - cutoff)
    quantiles = pt.log(_quantiles(size, shape, scale, cutoff))
    is_equal = tail[-1] - tail[0] < EQUAL
    is_known = pt.isfinite(shape) & ~pt.isnan(quantiles.sum()) & ~is_equal & (n >= FEWEST_DRAWS)
    smoothed = pt.switch(is_known, pt.minimum(quantiles, tail[-1]), tail)
    weights = padded[places].set(smoothed)[FEWEST_DRAWS:]
    largest = smoothed[-1]
    total = largest + pt.log(pt.exp(weights - largest).sum())
    k = pt.switch(is_equal, 0.0, shape)
    return weights - total, pt.switch(n >= FEWEST_DRAWS, k, np.nan)


def _fitted(excess: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """Return the shape and the scale of the distribution of sorted positive numbers."""
    n = excess.shape[0]
    count = n.astype("float64")
    quartile = excess[pt.floor(0.25 * count - 0.5).astype("int64")]
    n_points = 30 + pt.floor(pt.sqrt(count)).astype("int64")
    steps = pt.arange(1, n_points + 1).astype("float64") - 0.5
    rates = (1.0 - pt.sqrt(n_points.astype("float64") / steps)) / (_PRIOR_OF_QUARTILE * quartile)
    rates = rates + 1.0 / excess[-1]
    shapes = pt.log1p(-rates[:, None] * excess).mean(axis=1)
    profile = count * (pt.log(-rates / shapes) - shapes - 1.0)
    weights = pt.exp(profile - profile.max())
    weights = weights / weights.sum()
    weights = pt.switch(weights >= 10.0 * np.finfo("float64").eps, weights, 0.0)
    rate = (rates * weights).sum() / weights.sum()
    shape = pt.log1p(-rate * excess).mean()
    # A prior of ten draws with the shape 1/2.
    regular = (count * shape + _PRIOR_DRAWS * _PRIOR_SHAPE) / (count + _PRIOR_DRAWS)
    regular = pt.switch(pt.isnan(regular), np.inf, regular)
    return pt.switch(quartile > excess[0], regular, np.nan), -shape / rate


def _quantiles(
    n: TensorVariable, shape: TensorVariable, scale: TensorVariable, cutoff: TensorVariable
) -> TensorVariable:
    """Return quantiles at the middles of n equal parts."""
    shares = (pt.arange(n).astype("float64") + 0.5) / n.astype("float64")
    rest = pt.log1p(-shares)
    power = pt.switch(pt.eq(shape, 0.0), -rest, pt.expm1(-shape * rest) / shape)
    return cutoff + scale * power
