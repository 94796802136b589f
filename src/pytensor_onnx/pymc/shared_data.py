"""Facts on a model's data for its page: ranges, samples, labels of indices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pymc as pm
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.subtensor import AdvancedSubtensor

_MOST_ROWS, _MOST_NUMBERS = 1000, 20_000
_MOST_VALUES = 8
"""Distinct values of integers that are the levels of a factor, at most."""
_DIGITS = 7


def shared(array: np.ndarray) -> dict[str, Any]:
    """Return the range, the typical value and a sample of the rows of data.

    The entries ``min``, ``max`` and ``median`` have one number, or one for each column of a matrix;
    ``values`` has the distinct values of a vector that looks like a factor: two at most, or up to
    eight integers that repeat. ``sample`` has at most 1,000 rows at equal distances, all of them if
    there are so many, rounded to 7 digits. Arrays of equal lengths have the same rows in their
    samples.

    Parameters
    ----------
    array
        The data. Arrays that are not numbers, are empty or have more than two axes have no
        entries.

    Examples
    --------
    >>> shared(np.array([3, 1, 1]))
    {'min': 1, 'max': 3, 'median': 1, 'values': [1, 3], 'sample': [3, 1, 1]}
    >>> shared(np.array([1.0, 2.0, 4.0]))
    {'min': 1.0, 'max': 4.0, 'median': 2.0, 'sample': [1.0, 2.0, 4.0]}
    """
    numbers = np.asarray(np.ma.filled(np.ma.asarray(array), 0))
    if not numbers.size or numbers.ndim > 2 or numbers.dtype.kind not in "iufb":
        return {}
    if numbers.dtype.kind == "b":
        numbers = numbers.astype("int8")
    if numbers.dtype.kind == "f" and not np.isfinite(numbers).all():
        return {}
    rows = numbers if numbers.ndim else numbers[None]
    entries: dict[str, Any] = {
        "min": rows.min(axis=0),
        "max": rows.max(axis=0),
        # The middle one of the values, as a mean of two is none of them.
        "median": np.sort(rows, axis=0)[(len(rows) - 1) // 2],
    }
    if numbers.ndim == 1 and _is_factor(rows):
        entries["values"] = np.unique(rows)
    most = min(_MOST_ROWS, max(1, _MOST_NUMBERS * len(rows) // rows.size))
    sample = rows[np.linspace(0, len(rows) - 1, min(most, len(rows))).round().astype(int)]
    entries["sample"] = sample if numbers.ndim else sample[0]
    return {key: _rounded(value) for key, value in entries.items()}


def _is_factor(values: np.ndarray) -> bool:
    """Return whether numbers look like the levels of a factor, and not like a scale."""
    n = len(np.unique(values))
    is_repeated = values.dtype.kind != "f" and 2 * n <= len(values)
    return n <= 2 or (n <= _MOST_VALUES and is_repeated)


def _rounded(values: np.ndarray) -> Any:
    """Return numbers as values of JSON in few digits."""
    if values.dtype.kind != "f":
        return values.tolist()
    few = [float(f"{x:.{_DIGITS}g}") for x in np.ravel(values).tolist()]
    return np.reshape(few, values.shape).tolist()


_LEVELS = [0.005, 0.015, *np.linspace(0.03, 0.97, 48).round(4).tolist(), 0.985, 0.995]
_MOST_ELEMENTS = 60


def prior_quantiles(model: pm.Model, names: Sequence[str], draws: int) -> dict[str, Any]:
    """Return quantiles of the prior of each element of variables, which the observations leave out.

    Parameters
    ----------
    model
        The model.
    names
        Names of free variables and deterministics. Arrays of more than 60 elements have no entry.
    draws
        Number of draws.

    Examples
    --------
    >>> with pm.Model() as model:
    ...     rate = pm.Exponential("rate")
    ...     y = pm.Poisson("y", rate, observed=[3, 4])
    >>> found = prior_quantiles(model, ["rate"], 400)
    >>> found["levels"][2], found["values"]["rate"][0][2] < 0.1
    (0.03, True)
    """
    if model.potentials:
        return {}
    variables = [model[name] for name in names]
    try:
        drawn = pm.draw(variables, draws=draws, random_seed=0, mode="ONNX")
    except (NotImplementedError, ValueError):
        return {}
    found = {}
    for name, numbers in zip(names, drawn, strict=True):
        elements = np.reshape(numbers, (draws, -1)).astype("float64")
        if elements.shape[1] <= _MOST_ELEMENTS and np.isfinite(elements).all():
            values = np.quantile(elements, _LEVELS, axis=0).T
            found[name] = [[float(f"{x:.4g}") for x in row] for row in values]
    return {"levels": _LEVELS, "values": found}


def indexed_dims(model: pm.Model) -> dict[str, str]:
    """Return the dimensions that data containers are indices of, by the names of the containers.

    Examples
    --------
    >>> with pm.Model(coords={"county": ["A", "B"]}) as model:
    ...     county = pm.Data("county_idx", [0, 1, 1])
    ...     effects = pm.Normal("effects", dims="county")
    ...     mu = pm.Deterministic("mu", effects[county])
    >>> indexed_dims(model)
    {'county_idx': 'county'}
    """
    found = {}
    for node in {v.owner for v in ancestors([*model.basic_RVs, *model.deterministics]) if v.owner}:
        if not isinstance(node.op, AdvancedSubtensor):
            continue
        array, *indices = node.inputs
        dims = _dims_of(array, model)
        for entry, dim in zip(node.op.idx_list, dims, strict=False):
            if not isinstance(entry, int):
                continue
            index = indices[entry]
            names = {str(v.name) for v in _moved(index)} & {str(v.name) for v in model.data_vars}
            if len(names) == 1 and dim is not None and model.coords.get(dim) is not None:
                found[names.pop()] = str(dim)
    return found


def _dims_of(array: Variable, model: pm.Model) -> tuple[Any, ...]:
    """Return the dimensions of a variable, or of the variables of its elementwise expression."""
    dims = tuple(model.named_vars_to_dims.get(str(array.name), ()))
    if dims or array.owner is None or not isinstance(array.owner.op, Elemwise):
        return dims
    found = {_dims_of(x, model) for x in array.owner.inputs} - {()}
    return found.pop() if len(found) == 1 else ()


def observed_containers(model: pm.Model) -> dict[str, str]:
    """Return the data containers of observations, by the names of the observed variables."""
    containers = {str(v.name) for v in model.data_vars}
    found = {}
    for variable in model.observed_RVs:
        names = {str(v.name) for v in _moved(model.rvs_to_values[variable])} & containers
        if names:
            found[str(variable.name)] = names.pop()
    return found


def _moved(variable: Variable) -> Iterator[Variable]:
    """Yield a variable and those before it, as long as each has one input."""
    yield variable
    while variable.owner is not None and len(variable.owner.inputs) == 1:
        variable = variable.owner.inputs[0]
        yield variable
