"""Read the posterior draws of a model."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pymc as pm
from pytensor.graph.basic import Variable

from pytensor_onnx.errors import ArgumentError
from pytensor_onnx.pymc.model_arguments import unknown

_FORMS = (
    "give the result of pymc.sample, a Dataset with the dimensions chain and draw, or a dict of "
    "arrays whose first two axes are these"
)


def read_posterior(
    idata: Any, variables: Collection[Variable], draws: int | None = None
) -> dict[str, np.ndarray]:
    """Return the draws of variables by name, their chains in one axis.

    Parameters
    ----------
    idata
        Result of `pymc.sample`, a Dataset, or a dict of arrays by name.
    variables
        The variables, which have names.
    draws
        Number of draws to take, at equal distances; all unless given.

    Raises
    ------
    ArgumentError
        If there are no draws of a variable, or they have the wrong shape.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> draws = {"mu": np.arange(8.0).reshape(2, 4)}
    >>> read_posterior(draws, [pt.scalar("mu")], 4)
    {'mu': array([0., 2., 4., 6.])}
    """
    posterior = posterior_of(idata)
    found = {}
    for variable in variables:
        name = str(variable.name)
        if name not in posterior:
            raise unknown(name, "draws of", list(map(str, posterior)))
        found[name] = _array(posterior[name], variable)
    counts = {name: len(array) for name, array in found.items()}
    if len(set(counts.values())) > 1:
        raise ArgumentError(f"the variables have different numbers of draws: {counts}")
    n = next(iter(counts.values()), 0)
    if draws is None:
        return found
    if not 0 < draws <= max(n, 1):
        raise ArgumentError(f"draws={draws}: the posterior has {n}")
    chosen = np.arange(draws) * n // draws
    return {name: np.ascontiguousarray(array[chosen]) for name, array in found.items()}


def posterior_of(idata: Any) -> Any:
    """Return the group of posterior draws, a mapping of names.

    Raises
    ------
    ArgumentError
        If there is none.
    """
    group = getattr(idata, "posterior", None)
    if group is None and hasattr(idata, "children"):
        raise ArgumentError(f"idata has no group posterior: {_FORMS}")
    posterior = idata if group is None else group
    if not isinstance(posterior, Mapping) and not hasattr(posterior, "data_vars"):
        raise ArgumentError(f"idata is of type {type(idata).__name__}: {_FORMS}")
    return posterior


def _array(values: Any, variable: Variable) -> np.ndarray:
    """Return draws of a variable, as an array of its dtype with one axis for the draws."""
    dims = getattr(values, "dims", None)
    if dims is not None and {"chain", "draw"} <= set(dims):
        values = values.transpose("chain", "draw", ...)
    array = np.asarray(values)
    shape = variable.type.shape
    fits = array.ndim == len(shape) + 2 and all(
        known in (None, size) for known, size in zip(shape, array.shape[2:], strict=False)
    )
    if not fits or not np.can_cast(array.dtype, variable.type.dtype, "same_kind"):
        wanted = ", ".join("?" if n is None else str(n) for n in shape)
        raise ArgumentError(
            f"the draws of {variable.name} are {array.dtype}{list(array.shape)}: the model has "
            f"{variable.type.dtype}[chain, draw{wanted and ', '}{wanted}]"
        )
    return array.reshape(-1, *array.shape[2:]).astype(variable.type.dtype)


def check_lengths(model: pm.Model, arrays: Mapping[str, np.ndarray]) -> None:
    """Raise if the draws of a variable do not have the length of its dimensions' coordinates.

    Raises
    ------
    ArgumentError
        If sizes differ.
    """
    for name, array in arrays.items():
        for axis, dim in enumerate(model.named_vars_to_dims.get(name, ())):
            labels = model.coords.get(dim)
            if labels is not None and len(labels) != array.shape[axis + 1]:
                raise ArgumentError(
                    f"the draws of {name} have {array.shape[axis + 1]} values along {dim}: the "
                    f"model has {len(labels)}"
                )
