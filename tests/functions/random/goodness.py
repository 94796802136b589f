"""Tests of fit that know rounding: ties at 0 and 1, and counts of any size."""

import numpy as np
from scipy import stats


def pvalue(x, distribution):
    """Return the probability that draws fit a distribution of SciPy no better than these."""
    if np.asarray(x).dtype.kind in "iu":
        return _of_counts(x, distribution)
    return _of_reals(np.asarray(x), distribution)


def _of_reals(x, distribution):
    """Kolmogorov-Smirnov, by the upper ends of ties: numbers that underflow are equal."""
    tiny = np.finfo(x.dtype).tiny
    values, counts = np.unique(np.where(np.abs(x) < tiny, tiny, x), return_counts=True)
    below = np.cumsum(counts) / len(x)
    upper = values.astype("float64")
    if x.dtype == "float32":
        upper = (upper + np.nextafter(values, np.float32(np.inf))) / 2
    # Where all numbers differ, the statistic of the lower ends is larger by 1 / n at most.
    distance = np.abs(below - distribution.cdf(upper)).max() + 1 / len(x)
    return stats.kstwo.sf(min(distance, 1), len(x))


def _of_counts(x, distribution):
    """Chi-square, of bins between quantiles with ten expected counts or more."""
    quantiles = distribution.ppf(np.linspace(0, 1, min(100, len(x) // 50) + 1)[1:-1])
    ends = np.unique(quantiles)
    cumulated = np.concatenate([[0], distribution.cdf(ends), [1]])
    wanted = np.diff(cumulated) * len(x)
    found = np.bincount(np.searchsorted(ends, x, side="left"), minlength=len(wanted))
    while len(wanted) > 1 and wanted[-1] < 10:
        wanted = np.append(wanted[:-2], wanted[-2:].sum())
        found = np.append(found[:-2], found[-2:].sum())
    return stats.chisquare(found, wanted).pvalue if len(wanted) > 1 else 1.0
