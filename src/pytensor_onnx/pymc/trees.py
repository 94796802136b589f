"""Trees of draws, as PyMC returns them."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm
from arviz_base import dict_to_dataset
from pymc.backends.arviz import coords_and_dims_for_inferencedata, find_constants, find_observations
from pymc.stats.convergence import log_warnings, run_convergence_checks
from xarray import DataTree

from pytensor_onnx.errors import ArgumentError
from pytensor_onnx.pymc.chains import NEXT_STATE
from pytensor_onnx.pymc.marginal import names_of_marginalized
from pytensor_onnx.pymc.model_arguments import check_model
from pytensor_onnx.pymc.model_graphs import POINT
from pytensor_onnx.pymc.provenance import METADATA, RENAMED
from pytensor_onnx.user_code import NOT_OF_USERS

if TYPE_CHECKING:
    from pytensor_onnx.exporting.program.program import ONNXProgram

Arrays = Mapping[str, np.ndarray]
_FINITE_START = "finite_start"
STATISTICS = (
    *("lp", "energy", "tree_depth", "n_steps", "acceptance_rate", "diverging", "step_size"),
    *(_FINITE_START, "log_weight"),
)
"""Statistics of the draws of files."""

MOST_PARETO_K = 0.7
"""Shape of the weights up to which they are reliable (Vehtari and others, JMLR 25 (2024) 72)."""


@dataclass(frozen=True, kw_only=True)
class Draws:
    """Draws and statistics of chains, by the names of PyMC, with chain and draw as first axes.

    Attributes
    ----------
    posterior, sample_stats
        The draws.
    warmup_posterior, warmup_sample_stats
        Those of the warm-up; none if empty.
    fit, dims_of_fit
        Results that have no draws, and the dimensions of those that have some.
    attributes
        Attributes of the groups.
    library
        Module of the sampler.
    """

    posterior: Arrays
    sample_stats: Arrays
    warmup_posterior: Arrays = field(default_factory=dict)
    warmup_sample_stats: Arrays = field(default_factory=dict)
    fit: Arrays = field(default_factory=dict)
    dims_of_fit: Mapping[Hashable, Sequence[Hashable]] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)
    library: Any = None


def to_datatree(
    program: ONNXProgram,
    results: Sequence[np.ndarray] | Mapping[str, np.ndarray],
    model: pm.Model | None = None,
    *,
    compute_convergence_checks: bool = True,
) -> DataTree:
    """Return the draws of a file as a tree like that of `pymc.sample`.

    Parameters
    ----------
    program
        The program of the file: that of `export_sampler`, `export_laplace` or another function that
        exports draws, or that of `pytensor_onnx.load`.
    results
        Results of a call of the program, or a dict of the results of a session by their names in
        the file.
    model
        The model; without it the tree has the groups ``posterior`` and ``sample_stats`` only.
    compute_convergence_checks
        Whether to warn of divergences, and with a model of a large R-hat or a small effective
        sample size, as PyMC does.

    Returns
    -------
    xarray.DataTree
        Draws under the names of the model, with its dimensions and coordinates, and the statistics.
        The group ``fit`` has the results of an approximation.

    Warns
    -----
    UserWarning
        If a chain has no finite start, no mode was found, or a Pareto k is above 0.7.

    Examples
    --------
    >>> import pymc as pm
    >>> from pytensor_onnx.pymc import export_sampler
    >>> with pm.Model(coords={"side": ["left", "right"]}) as model:
    ...     x = pm.Normal("x", dims="side")
    >>> program = export_sampler(model, verify=False)
    >>> results = program(seed=[1, 2], warmup=200, draws=150)
    >>> tree = to_datatree(program, results, model)
    >>> tree.posterior["x"].dims, tree.posterior["side"].values.tolist()
    (('chain', 'draw', 'side'), ['left', 'right'])
    """
    if METADATA not in program.model.metadata_props:
        raise ArgumentError("the program draws from no posterior: give that of export_sampler")
    told = json.loads(program.model.metadata_props[METADATA])
    if "sampler" not in told:
        raise ArgumentError("the program draws from no posterior: give that of export_sampler")
    names = [str(value.name) for value in program.model.graph.outputs]
    if not isinstance(results, Mapping):
        results = dict(zip(names, results, strict=True))
    in_model = {new: name for name, new in told[RENAMED].items()}
    arrays = {in_model.get(name, name): np.asarray(x) for name, x in results.items()}
    dims_of_fit = told["sampler"].get("fit", {})
    fit = {name: arrays.pop(name) for name in dims_of_fit if name in arrays}
    _warn_of_fit(fit)
    statistics = {name: arrays.pop(name) for name in STATISTICS if name in arrays}
    finite = statistics.pop(_FINITE_START, np.array(True))
    if not finite.all():
        chains = ", ".join(map(str, np.flatnonzero(~finite)))
        text = (
            f"the log-density is not finite where chains start, whose draws mean nothing: {chains}"
        )
        warnings.warn(text, UserWarning, skip_file_prefixes=NOT_OF_USERS)
    if "tree_depth" in statistics:
        largest = told["sampler"]["max_tree_depth"]
        statistics["reached_max_treedepth"] = statistics["tree_depth"] >= largest
    arrays.pop(NEXT_STATE, None)
    for name in told["sampler"].get("diagnostics", ()):
        arrays.pop(name)
    unconstrained = arrays.pop(POINT, None)
    if unconstrained is not None:
        arrays = {**_values_of(unconstrained, told), **arrays}
    draws = Draws(
        posterior=arrays,
        sample_stats=statistics,
        fit=fit,
        dims_of_fit={name: dims for name, dims in dims_of_fit.items() if dims},
    )
    if model is None:
        coords = {name: labels for name, labels in told["coords"].items() if labels is not None}
        return _groups(draws, coords, told["dims"])
    # Draws of an approximation are independent.
    check = compute_convergence_checks and not fit
    dims = {name: told["dims"][name] for name in arrays if name in told["dims"]}
    return make_tree(model, draws, check=check, dims=dims)


def _warn_of_fit(fit: Arrays) -> None:
    """Warn of an approximation that is none, or far from the posterior."""
    if not np.all(fit.get("converged", True)):
        text = "the search has found no maximum: converged is false"
    elif np.any(fit.get("pareto_k", 0.0) > MOST_PARETO_K):
        k = float(np.max(fit["pareto_k"]))
        text = f"the draws are far from the posterior: Pareto k is {k:.2f}, above {MOST_PARETO_K}"
    else:
        return
    warnings.warn(text, UserWarning, skip_file_prefixes=NOT_OF_USERS)


def make_tree(
    model: pm.Model,
    draws: Draws,
    *,
    check: bool = True,
    quiet: bool = False,
    dims: Mapping[str, Sequence[str | None]] | None = None,
) -> DataTree:
    """Return a tree of draws of a model, with its data, and warn of chains that do not converge.

    Dimensions are those of the model, of the variables that were summed out of it, and others that
    are given.
    """
    check_model(model)
    coords, of_model = coords_and_dims_for_inferencedata(model)
    of_summed = {name: list(x) for name, x in names_of_marginalized(model).items() if x}
    tree = _groups(draws, coords, {**(dims or {}), **of_summed, **of_model})
    for group, arrays in (
        ("constant_data", find_constants(model)),
        ("observed_data", find_observations(model)),
    ):
        if arrays:
            dataset = dict_to_dataset(
                arrays, inference_library=pm, coords=coords, dims=of_model, sample_dims=[]
            )
            tree[group] = DataTree(dataset)
    if check:
        # A discrete variable may be the same in all draws.
        with np.errstate(invalid="ignore", divide="ignore"):
            found = run_convergence_checks(tree, model)
        if not quiet:
            log_warnings(found)
    return tree


def _groups(draws: Draws, coords: Mapping[str, Any], dims: Mapping[Any, Any]) -> DataTree:
    library = draws.library or sys.modules["pytensor_onnx"]
    groups = {}
    for name in ("posterior", "sample_stats", "warmup_posterior", "warmup_sample_stats"):
        if arrays := getattr(draws, name):
            groups[f"/{name}"] = dict_to_dataset(
                arrays,
                inference_library=library,
                coords=dict(coords),
                dims=dict(dims) if name.endswith("posterior") else None,
                attrs=dict(draws.attributes),
            )
    if draws.fit:
        groups["/fit"] = dict_to_dataset(
            draws.fit,
            inference_library=library,
            coords=dict(coords),
            dims=dict(draws.dims_of_fit),
            sample_dims=[],
        )
    return DataTree.from_dict(groups)


def _values_of(points: np.ndarray, told: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return the transformed values of points, by the description of the model."""
    values = [value for value in told["values"] if value["dtype"].startswith("float")]
    shapes = [tuple(value["shape"]) for value in values]
    bounds = np.cumsum([int(np.prod(shape)) for shape in shapes])
    if not len(bounds) or bounds[-1] != points.shape[-1]:
        return {}  # With data of other sizes, the shapes in the metadata do not hold.
    parts = np.split(points, bounds[:-1], axis=-1)
    return {
        value["name"]: part.reshape((*part.shape[:-1], *shape))
        for value, part, shape in zip(values, parts, shapes, strict=True)
        if value["transform"]
    }
