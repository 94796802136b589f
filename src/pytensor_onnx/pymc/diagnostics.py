"""Diagnostics of chains: R-hat, effective sample sizes, and the information on the energy.

The formulas are those of A. Vehtari, A. Gelman, D. Simpson, B. Carpenter, P.-C. Bürkner,
"Rank-normalization, folding, and localization: an improved R-hat", Bayesian Analysis 16 (2021) 667,
in the order of ArviZ. Functions take a matrix of the draws of one number, a row for each chain.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate

TAILS = (0.05, 0.95)
"""Quantiles of the tails, as in ArviZ."""

FEWEST = 4
"""Draws of a chain from which on diagnostics have a value."""

RESOLUTION = 1e-15
"""Difference of the largest and the smallest draw below which all of them are taken as equal."""


OF_VARIABLES = ("rhat", "ess_bulk", "ess_tail")
"""Diagnostics of each variable, whose outputs are named by both, such as ``rhat_mu``."""

OF_CHAINS = ("bfmi", "divergences")
"""Diagnostics of each chain."""


def diagnostics_of(
    variables: Mapping[str, TensorVariable], energy: TensorVariable, diverging: TensorVariable
) -> dict[str, TensorVariable]:
    """Return the diagnostics of draws by the names of their outputs.

    Parameters
    ----------
    variables
        Draws by name, of shape ``(chain, draw, ...)``.
    energy, diverging
        Statistics of shape ``(chain, draw)``.
    """
    found = {}
    for name, draws in variables.items():
        chains, steps, *shape = (draws.shape[i] for i in range(draws.ndim))
        size = pt.prod([1, *shape], dtype="int64")
        columns = pt.moveaxis(draws.reshape((chains, steps, size)), 2, 0).astype("float64")
        rows = pytensor.scan(
            lambda x: [rhat(x), ess_bulk(x), ess_tail(x)],
            [columns],
            return_updates=False,
            name="diagnostics",
        )
        for diagnostic, row in zip(OF_VARIABLES, rows, strict=True):
            result = row.reshape(shape, ndim=len(shape))
            found[f"{diagnostic}_{name}"] = pt.specify_shape(result, draws.type.shape[2:])
    return {**found, "bfmi": bfmi(energy), "divergences": diverging.sum(axis=1)}


def rhat(draws: TensorVariable) -> TensorVariable:
    """Return the rank-normalised split R-hat, the larger of those of the bulk and the tails.

    Parameters
    ----------
    draws
        float64 of shape ``(chain, draw)``.

    Returns
    -------
    TensorVariable
        float64, NaN for one chain, for fewer than four draws, and where a draw is NaN.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(4, 100))
    >>> bool(rhat(pt.constant(x)).eval() < 1.05)
    True
    """
    halves = _halves(_padded(draws))
    folded = pt.abs(halves - _median(halves))
    larger = pt.maximum(_ratio(_normal_scores(halves)), _ratio(_normal_scores(folded)))
    return _where_valid(draws, pt.switch(draws.shape[0] > 1, larger, np.nan))


def ess_bulk(draws: TensorVariable) -> TensorVariable:
    """Return the effective number of draws in the bulk, that of their normal scores.

    Parameters
    ----------
    draws
        float64 of shape ``(chain, draw)``.

    Returns
    -------
    TensorVariable
        float64, NaN for fewer than four draws, and where a draw is NaN.
    """
    return _where_valid(draws, _effective_size(_normal_scores(_halves(_padded(draws)))))


def ess_tail(draws: TensorVariable) -> TensorVariable:
    """Return the effective number of draws in the tails, the lesser of both.

    It is that of the indicators of the draws up to the quantiles of 5 and 95 per cent.

    Parameters
    ----------
    draws
        float64 of shape ``(chain, draw)``.

    Returns
    -------
    TensorVariable
        float64, NaN for fewer than four draws, and where a draw is NaN.
    """
    padded = _padded(draws)
    ordered = pt.sort(padded.ravel())
    sizes = [
        _effective_size(_halves((padded <= _quantile(ordered, share)).astype("float64")))
        for share in TAILS
    ]
    return _where_valid(draws, pt.minimum(*sizes))


def bfmi(energy: TensorVariable) -> TensorVariable:
    """Return the estimated fraction of missing information of each chain (Betancourt, 2016).

    Parameters
    ----------
    energy
        float64 of shape ``(chain, draw)``.

    Returns
    -------
    TensorVariable
        float64 of shape ``(chain,)``.
    """
    steps = energy[:, 1:] - energy[:, :-1]
    return pt.sqr(steps).mean(axis=1) / energy.var(axis=1, ddof=1)


def _padded(draws: TensorVariable) -> TensorVariable:
    """Return draws of at least one chain and of the fewest steps, zeros in place of others."""
    chains, steps = draws.shape[0], draws.shape[1]
    zeros = pt.zeros((pt.maximum(chains, 1), pt.maximum(steps, FEWEST)), dtype="float64")
    return zeros[:chains, :steps].set(draws)


def _halves(draws: TensorVariable) -> TensorVariable:
    """Return the first and the second halves of the chains as chains."""
    n = draws.shape[1]
    half = n // 2
    return pt.concatenate([draws[:, :half], draws[:, n - half :]], axis=0)


def _quantile(ordered: TensorVariable, share: float) -> TensorVariable:
    """Return a quantile of sorted numbers, on the line between its neighbours."""
    place = (ordered.shape[0] - 1).astype("float64") * np.float64(share)
    lower = pt.floor(place)
    part = place - lower
    i = lower.astype("int64")
    below, above = ordered[i], ordered[pt.minimum(i + 1, ordered.shape[0] - 1)]
    step = above - below
    # Each half from its own end, as in NumPy: the line then reaches both ends exactly.
    return pt.switch(part < 0.5, below + step * part, above - step * (1.0 - part))


def _median(x: TensorVariable) -> TensorVariable:
    ordered = pt.sort(x.ravel())
    n = ordered.shape[0]
    return 0.5 * (ordered[(n - 1) // 2] + ordered[n // 2])


def _normal_scores(x: TensorVariable) -> TensorVariable:
    """Return the normal quantiles of the ranks, equal numbers having the mean of their ranks."""
    flat = x.ravel()
    ordered = pt.sort(flat)
    ends = [pt.searchsorted(ordered, flat, side=side) for side in ("left", "right")]
    ranks = 0.5 * (ends[0] + ends[1] + 1).astype("float64")
    # Blom's offset of 3/8.
    shares = (ranks - 0.375) / (flat.shape[0].astype("float64") + 0.25)
    return (-np.sqrt(2.0) * pt.erfcinv(2.0 * shares)).reshape(x.shape)


def _ratio(x: TensorVariable) -> TensorVariable:
    """Return R-hat of chains, which compares the variances between and within them."""
    n = x.shape[1].astype("float64")
    between = n * x.mean(axis=1).var(ddof=1)
    within = x.var(axis=1, ddof=1).mean()
    return pt.sqrt((between / within + n - 1.0) / n)


def _effective_size(x: TensorVariable) -> TensorVariable:
    """Return the effective number of draws of at least two chains.

    The sum of autocorrelations ends by Geyer's initial monotone sequence: pairs of lags are added
    until the sum of a pair is no longer positive, each at most as large as the pair before.
    """
    chains, n = x.shape[0], x.shape[1]
    count = n.astype("float64")
    means = x.mean(axis=1)
    centered = x - means[:, None]
    variance = pt.sqr(centered).mean() * count / (count - 1.0)
    total_variance = variance * (count - 1.0) / count + means.var(ddof=1)

    def correlation(
        lag: TensorVariable,
        centered: TensorVariable,
        variance: TensorVariable,
        total_variance: TensorVariable,
    ) -> TensorVariable:
        end = centered.shape[1] - lag
        product = (centered[:, :end] * centered[:, lag:]).sum() / centered.size.astype("float64")
        return 1.0 - (variance - product) / total_variance

    def add_pair(
        lag: TensorVariable,
        even: TensorVariable,
        odd: TensorVariable,
        least: TensorVariable,
        total: TensorVariable,
        *fixed: TensorVariable,
    ) -> tuple[list[TensorVariable], until]:
        pair = pt.minimum(even + odd, least)
        after = [correlation(lag + i, *fixed) for i in (1, 2)]
        ends = ~(after[0] + after[1] > 0.0) | (lag + 2 >= fixed[0].shape[1] - 3)
        return [lag + 2, *after, pair, total + pair], until(ends)

    fixed = [centered, variance, total_variance]
    one = pt.constant(np.int64(1))
    first = correlation(one, *fixed)
    even, least, total = (pt.constant(np.float64(x)) for x in (1.0, np.inf, 0.0))
    start = [one, even, first, least, total]
    most = pt.switch((1.0 + first > 0.0) & (n > 4), n, 0)
    _, even, odd, _, total = iterate(add_pair, start, fixed, n_steps=most)
    last = pt.switch((even + odd >= 0.0) | (even > 0.0), even, 0.0)
    size = (chains * n).astype("float64")
    times = pt.maximum(-1.0 + 2.0 * total + last, 1.0 / pt.log10(size))
    effective = pt.switch(pt.isnan(first), np.nan, size / times)
    return pt.switch(x.max() - x.min() < RESOLUTION, size, effective)


def _where_valid(draws: TensorVariable, value: TensorVariable) -> TensorVariable:
    is_valid = (draws.shape[1] >= FEWEST) & ~pt.isnan(draws).any()
    return pt.switch(is_valid, value, np.nan)
