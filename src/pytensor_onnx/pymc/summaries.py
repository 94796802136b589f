"""Summarise draws along their first axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.ops.sorting import OrderStatistics

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


def quantiles(draws: TensorVariable, levels: Sequence[float], count: int) -> TensorVariable:
    """Return quantiles of a number of draws, the levels on the last axis, as `numpy.quantile` does.

    Examples
    --------
    >>> quantiles(pt.constant([1.0, 2.0, 4.0]), [0.5, 0.75], 3).eval(mode="FAST_COMPILE")
    array([2., 3.])
    """
    draws = as_float(draws)
    position = np.array(levels, "float64") * (count - 1)
    below = np.clip(np.floor(position), 0, max(count - 2, 0)).astype("int64")
    above = np.minimum(below + 1, count - 1)
    places = np.unique([below, above])
    ordered = pt.moveaxis(OrderStatistics(count, places.tolist())(draws), 0, -1)
    lower, upper = (ordered[..., np.searchsorted(places, x)] for x in (below, above))
    return lower + (position - below).astype(draws.type.dtype) * (upper - lower)


def highest_density_interval(
    draws: TensorVariable, count: int, mass: float = MASS_OF_HDI
) -> TensorVariable:
    """Return the narrowest interval that has a part of a number of draws, as ArviZ does.

    Its ends are on the last axis.

    Examples
    --------
    >>> draws = pt.constant([0.0, 5.0, 5.1, 5.2, 9.0])
    >>> highest_density_interval(draws, 5, 0.5).eval(mode="FAST_COMPILE")
    array([5. , 5.2])
    """
    inside = int(mass * count)
    candidates = count - inside
    places = sorted({*range(candidates), *range(inside, count)})
    ordered = OrderStatistics(count, places)(as_float(draws))
    lower, upper = ordered[:candidates], ordered[-candidates:]
    first = pt.argmin(upper - lower, axis=0)[None]
    ends = [pt.take_along_axis(end, first, axis=0)[0] for end in (lower, upper)]
    return pt.stack(ends, axis=-1)


def as_float(draws: TensorVariable) -> TensorVariable:
    """Return draws as floats."""
    return draws if draws.type.dtype.startswith("float") else draws.astype("float64")
