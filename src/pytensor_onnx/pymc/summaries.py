"""Summarise draws along their first axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

MASS_OF_HDI = 0.94


def mean(draws: TensorVariable) -> TensorVariable:
    """Return the mean of draws.

    Examples
    --------
    >>> float(mean(pt.constant([1.0, 2.0, 6.0])).eval(mode="FAST_COMPILE"))
    3.0
    """
    return as_float(draws).mean(axis=0)


def standard_deviation(draws: TensorVariable) -> TensorVariable:
    """Return the standard deviation of draws, with the divisor of a sample.

    Examples
    --------
    >>> float(standard_deviation(pt.constant([1.0, 2.0, 3.0])).eval(mode="FAST_COMPILE"))
    1.0
    """
    return as_float(draws).std(axis=0, ddof=1)


def quantiles(draws: TensorVariable, levels: Sequence[float]) -> TensorVariable:
    """Return quantiles of draws, the levels on the last axis, as `numpy.quantile` does.

    Examples
    --------
    >>> quantiles(pt.constant([1.0, 2.0, 4.0]), [0.5, 0.75]).eval(mode="FAST_COMPILE")
    array([2., 3.])
    """
    ordered = pt.sort(as_float(draws), axis=0)
    last = draws.shape[0] - 1
    position = np.array(levels) * last.astype(ordered.dtype)
    below = pt.clip(pt.floor(position), 0, pt.maximum(last - 1, 0)).astype("int64")
    above = pt.minimum(below + 1, last)
    weight = (position - below).astype(ordered.dtype)
    ordered = pt.moveaxis(ordered, 0, -1)
    lower = ordered[..., below]
    return lower + weight * (ordered[..., above] - lower)


def highest_density_interval(draws: TensorVariable, mass: float = MASS_OF_HDI) -> TensorVariable:
    """Return the narrowest interval that has a part of the draws, as ArviZ does.

    Its ends are on the last axis.

    Examples
    --------
    >>> draws = pt.constant([0.0, 5.0, 5.1, 5.2, 9.0])
    >>> highest_density_interval(draws, 0.5).eval(mode="FAST_COMPILE")
    array([5. , 5.2])
    """
    ordered = pt.moveaxis(pt.sort(as_float(draws), axis=0), 0, -1)
    n = ordered.shape[-1]
    inside = pt.floor(mass * n.astype("float64")).astype("int64")
    widths = ordered[..., inside:] - ordered[..., : n - inside]
    first = pt.argmin(widths, axis=-1)
    ends = [pt.take_along_axis(ordered, (first + i)[..., None], axis=-1) for i in (0, inside)]
    return pt.concatenate(ends, axis=-1)


def as_float(draws: TensorVariable) -> TensorVariable:
    """Return draws as floats."""
    return draws if draws.type.dtype.startswith("float") else draws.astype("float64")
