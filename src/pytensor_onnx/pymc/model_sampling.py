"""Sample a PyMC model on ONNX Runtime by one call, and trees of draws."""

from __future__ import annotations

import importlib.util
import json
import logging
import os
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm
from arviz_base import dict_to_dataset
from pymc.backends.arviz import coords_and_dims_for_inferencedata, find_constants, find_observations
from pymc.progress_bar import NutpieProgressBarManager
from pymc.stats.convergence import log_warnings, run_convergence_checks
from pymc.util import get_random_generator
from pytensor.compile.mode import get_mode
from pytensor.gradient import NullTypeGradError
from xarray import DataTree

from pytensor_onnx.errors import ArgumentError
from pytensor_onnx.pymc.model_arguments import check_model, read_choice, read_strings, unknown
from pytensor_onnx.pymc.model_graphs import POINT
from pytensor_onnx.pymc.provenance import METADATA, RENAMED
from pytensor_onnx.user_code import NOT_OF_USERS

if TYPE_CHECKING:
    from pytensor_onnx.exporting.program.program import ONNXProgram


SAMPLERS = ("nutpie", "pymc")
_LOG = logging.getLogger("pymc")
_OF_NUTPIE = {
    "depth": "tree_depth",
    "logp": "lp",
    "maxdepth_reached": "reached_max_treedepth",
    "mean_tree_accept": "acceptance_rate",
}
"""Statistics of nutpie with another name in PyMC."""
_DROPPED = {"tuning", "unconstrained_draw", "divergence_message", "divergence_draw"}
_FOR_NUTPIE = ("target_accept", "max_treedepth", "nuts")
_FOR_MACHINES = ("compile_kwargs", "backend", "blas_cores", "mp_ctx")
"""Arguments of `pymc.sample` that no step method needs."""
_IDATA_KWARGS = ("log_likelihood", "log_prior", "include_transformed")


def sample(
    draws: int = 1000,
    *,
    tune: int | None = None,
    chains: int | None = None,
    cores: int | None = None,
    random_seed: Any = None,
    progressbar: bool | str = True,
    progressbar_theme: Any = None,
    quiet: bool = False,
    var_names: Sequence[str] | None = None,
    initvals: Any = None,
    nuts_sampler: str | None = None,
    discard_tuned_samples: bool = True,
    compute_convergence_checks: bool = True,
    idata_kwargs: Mapping[str, Any] | None = None,
    model: pm.Model | None = None,
    **kwargs: Any,
) -> DataTree:
    """Draw from the posterior of a PyMC model, with the density on ONNX Runtime.

    Arguments and result are those of `pymc.sample`. Models of continuous variables are sampled by
    nutpie where it is installed (``pip install 'pytensor-onnx[nutpie]'``). Otherwise, and for
    discrete variables and for densities with an Op that runs in Python, the step methods of PyMC
    run in mode ONNX.

    Parameters
    ----------
    draws, tune, chains, cores, random_seed
        Numbers of draws, of warm-up steps and of chains, the number of chains at a time, and the
        seed.
    progressbar, progressbar_theme, quiet
        Display of the progress. An interrupted call returns the draws so far.
    var_names
        Variables and deterministics of the posterior; all unless given.
    initvals
        Initial values of variables in place of those of the model.
    nuts_sampler
        ``"nutpie"`` or ``"pymc"``; chosen as above unless given.
    discard_tuned_samples
        Whether to leave out the warm-up.
    compute_convergence_checks
        Whether to warn of divergences, a large R-hat and a small effective sample size.
    idata_kwargs
        ``log_likelihood`` and ``log_prior``, True or names of variables, and
        ``include_transformed``.
    model
        The model; that of the ``with`` statement unless given.
    kwargs
        Further arguments of `pymc.sample`. ``target_accept``, ``max_treedepth`` and ``nuts`` are
        for nutpie too; ``step``, ``init``, ``callback`` and others choose the step methods of PyMC.

    Returns
    -------
    xarray.DataTree
        The groups ``posterior``, ``sample_stats``, ``observed_data`` and ``constant_data``, and
        those that `idata_kwargs` asks for.

    Raises
    ------
    ArgumentError
        If an argument is not valid.
    UnsupportedOpError
        If a part of the model cannot be converted, and ``nuts_sampler="nutpie"``.

    Examples
    --------
    >>> import pymc as pm
    >>> from pytensor_onnx.pymc import sample
    >>> with pm.Model() as model:
    ...     x = pm.Normal("x", 3.0, 0.1)
    ...     trace = sample(draws=200, tune=200, chains=2, random_seed=1, progressbar=False)
    >>> abs(float(trace.posterior["x"].mean()) - 3.0) < 0.1
    True
    """
    model = pm.modelcontext(model)
    check_model(model)
    _check_idata_kwargs(idata_kwargs)
    known = [str(v.name) for v in model.unobserved_RVs]
    for name in read_strings(var_names, "var_names") if var_names is not None else ():
        if name not in known:
            raise unknown(name, "free variable or deterministic", known)
    sampler = nuts_sampler or _sampler_for(model, initvals, kwargs)
    read_choice(sampler, SAMPLERS, "nuts_sampler")
    cores = min(4, os.cpu_count() or 1) if cores is None else cores
    chains = max(2, cores) if chains is None else chains
    wanted = dict(idata_kwargs or {})
    request = _Request(
        model=model,
        draws=draws,
        tune=tune,
        chains=chains,
        cores=min(cores, chains),
        random_seed=random_seed,
        progressbar=progressbar and not quiet,
        progressbar_theme=progressbar_theme,
        quiet=quiet,
        var_names=var_names,
        initvals=initvals,
        discard_tuned_samples=discard_tuned_samples,
        compute_convergence_checks=compute_convergence_checks,
        include_transformed=bool(wanted.pop("include_transformed", False)),
    )
    return _with_densities(_sampled(request, sampler, nuts_sampler, kwargs), model, wanted)


@dataclass(frozen=True, kw_only=True)
class _Request:
    """The arguments of `sample` that all samplers take."""

    model: pm.Model
    draws: int
    tune: int | None
    chains: int
    cores: int
    random_seed: Any
    progressbar: bool | str
    progressbar_theme: Any
    quiet: bool
    var_names: Sequence[str] | None
    initvals: Any
    discard_tuned_samples: bool
    compute_convergence_checks: bool
    include_transformed: bool


def _check_idata_kwargs(given: Mapping[str, Any] | None) -> None:
    for name in given or {}:
        if name not in _IDATA_KWARGS:
            raise ArgumentError(
                f"idata_kwargs has {name!r}: sample takes {', '.join(_IDATA_KWARGS)}"
            )


def _sampler_for(model: pm.Model, initvals: Any, kwargs: Mapping[str, Any]) -> str:
    """Return the sampler of a model: nutpie if it can draw all of it as it is asked for."""
    is_continuous = all(v.type.dtype.startswith("float") for v in model.free_RVs)
    is_simple = kwargs.keys() <= {*_FOR_NUTPIE, *_FOR_MACHINES}
    has_one_start = initvals is None or isinstance(initvals, Mapping)
    is_installed = importlib.util.find_spec("nutpie") is not None
    return "nutpie" if is_installed and is_continuous and is_simple and has_one_start else "pymc"


def _sampled(request: _Request, sampler: str, wanted: str | None, kwargs: Mapping[str, Any]) -> Any:
    """Sample by a sampler, and by PyMC's where nutpie was not asked for and cannot have the model.

    A black box does not convert, or has no gradient.
    """
    if sampler == "nutpie":
        try:
            return _by_nutpie(request, kwargs)
        except (NotImplementedError, NullTypeGradError):
            if wanted is not None:
                raise
    return _by_pymc(request, kwargs)


def _by_pymc(request: _Request, kwargs: Mapping[str, Any]) -> Any:
    """Sample by the step methods of PyMC in mode ONNX."""
    arguments = {x.name: getattr(request, x.name) for x in fields(request)}
    transformed = arguments.pop("include_transformed")
    further = {name: x for name, x in kwargs.items() if name != "backend"}
    return pm.sample(
        **{**arguments, **further, "compile_kwargs": _in_mode_onnx(kwargs)},
        nuts_sampler="pymc",
        idata_kwargs={"include_transformed": transformed},
    )


def _in_mode_onnx(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a compilation in mode ONNX."""
    given = dict(arguments.get("compile_kwargs") or {})
    mode = arguments.get("backend") or given.get("mode", "ONNX")
    if str(mode).upper() != "ONNX" and mode is not get_mode("ONNX"):
        raise ArgumentError(f"sample runs in mode ONNX: call pymc.sample for mode {mode}")
    return {**given, "mode": "ONNX"}


def _by_nutpie(request: _Request, kwargs: Mapping[str, Any]) -> DataTree:
    """Sample by nutpie."""
    import nutpie

    from pytensor_onnx.pymc.nutpie import nutpie_model

    model, names, initvals, tune = request.model, request.var_names, request.initvals, request.tune
    if not (initvals is None or isinstance(initvals, Mapping)):
        raise ArgumentError("nutpie takes one dict of initvals for all chains: nuts_sampler='pymc'")
    settings = _settings(kwargs)
    # Parts of the density that depend on data alone are folded.
    compiled = nutpie_model(model, data="stored", var_names=names, initvals=initvals)
    if not request.quiet:
        _LOG.info(f"NUTS[nutpie, ONNX Runtime]: {model.free_RVs}")
    generators = get_random_generator(request.random_seed).spawn(request.chains)
    bar = NutpieProgressBarManager(
        chains=request.chains,
        draws=request.draws,
        progressbar=request.progressbar,
        progressbar_theme=request.progressbar_theme,
    )
    began = time.perf_counter()
    with bar:
        trace = nutpie.sample(
            compiled,
            draws=request.draws,
            # nutpie ends with a panic without a warm-up.
            tune=1 if tune == 0 else tune,
            chains=request.chains,
            cores=request.cores,
            seed=int(generators[0].integers(2**30)),
            save_warmup=not request.discard_tuned_samples,
            store_unconstrained=request.include_transformed,
            progress_bar=False,
            progress_callback=bar.update,
            **settings,
        )
    seconds = time.perf_counter() - began
    told = json.loads(trace["sample_stats"].attrs["inference_library_settings"])
    has_warmup = not request.discard_tuned_samples and tune != 0
    draws = Draws(
        posterior=_variables_of(trace, "", model, names),
        sample_stats=_statistics_of(trace, ""),
        warmup_posterior=_variables_of(trace, "warmup_", model, names) if has_warmup else {},
        warmup_sample_stats=_statistics_of(trace, "warmup_") if has_warmup else {},
        attributes={
            "sampling_time": seconds,
            "tuning_steps": 0 if tune == 0 else told["settings"]["num_tune"],
            "inference_library_settings": json.dumps(told),
        },
        library=nutpie,
    )
    return make_tree(model, draws, check=request.compute_convergence_checks, quiet=request.quiet)


def _settings(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of nutpie that arguments of `pymc.sample` stand for."""
    given = {name: x for name, x in kwargs.items() if name not in _FOR_MACHINES}
    for name in given:
        if name not in _FOR_NUTPIE:
            raise ArgumentError(f"{name!r} is for the step methods of PyMC: nuts_sampler='pymc'")
    _in_mode_onnx(kwargs)
    settings = {**given.pop("nuts", {}), **given}
    if "max_treedepth" in settings:
        settings["maxdepth"] = settings.pop("max_treedepth")
    return settings


def _variables_of(
    trace: DataTree, prefix: str, model: pm.Model, wanted: Sequence[str] | None
) -> dict[str, np.ndarray]:
    """Return the draws of nutpie in the order and the dtypes of the model."""
    drawn = dict(trace[f"{prefix}posterior"].data_vars)
    if f"{prefix}unconstrained_posterior" in trace.children:
        drawn.update(trace[f"{prefix}unconstrained_posterior"].data_vars)
    found = {}
    for rv in [*model.free_RVs, *model.deterministics]:
        value = model.rvs_to_values.get(rv, rv)
        for variable in dict.fromkeys([value, rv]):
            name = str(variable.name)
            if name in drawn and (wanted is None or rv.name in wanted):
                found[name] = drawn[name].to_numpy().astype(variable.type.dtype)
    return found


def _statistics_of(trace: DataTree, prefix: str) -> dict[str, np.ndarray]:
    """Return the statistics of nutpie under the names of PyMC."""
    statistics = {
        _OF_NUTPIE.get(str(name), str(name)): x.to_numpy()
        for name, x in trace[f"{prefix}sample_stats"].data_vars.items()
        if name not in _DROPPED
    }
    return {k: x.astype("int64") if x.dtype.kind == "u" else x for k, x in statistics.items()}


def _with_densities(tree: Any, model: pm.Model, wanted: Mapping[str, Any]) -> Any:
    """Return a tree with log-likelihood and log-prior, if asked for."""
    for name, compute in (
        ("log_likelihood", pm.stats.compute_log_likelihood),
        ("log_prior", pm.stats.compute_log_prior),
    ):
        if asked := wanted.get(name):
            tree = compute(
                tree,
                var_names=None if asked is True else list(asked),
                model=model,
                progressbar=False,
                compile_kwargs={"mode": "ONNX"},
            )
    return tree


Arrays = Mapping[str, np.ndarray]
_FINITE_START = "finite_start"
STATISTICS = (
    *("lp", "energy", "tree_depth", "n_steps", "acceptance_rate", "diverging", "step_size"),
    _FINITE_START,
)
"""Statistics of the files of samplers."""


@dataclass(frozen=True, kw_only=True)
class Draws:
    """Draws and statistics of chains, by the names of PyMC, with chain and draw as first axes.

    Attributes
    ----------
    posterior, sample_stats
        The draws.
    warmup_posterior, warmup_sample_stats
        Those of the warm-up; none if empty.
    attributes
        Attributes of the groups.
    library
        Module of the sampler.
    """

    posterior: Arrays
    sample_stats: Arrays
    warmup_posterior: Arrays = field(default_factory=dict)
    warmup_sample_stats: Arrays = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)
    library: Any = None


def to_datatree(
    program: ONNXProgram,
    results: Sequence[np.ndarray] | Mapping[str, np.ndarray],
    model: pm.Model | None = None,
    *,
    compute_convergence_checks: bool = True,
) -> DataTree:
    """Return the draws of a file of `export_sampler` as a tree like that of `pymc.sample`.

    Parameters
    ----------
    program
        The program of the file: that of `export_sampler`, or that of `pytensor_onnx.load`.
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

    Warns
    -----
    UserWarning
        If a chain has no finite start.

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
        raise ArgumentError("the program is no sampler: give that of export_sampler")
    told = json.loads(program.model.metadata_props[METADATA])
    if "sampler" not in told:
        raise ArgumentError("the program is no sampler: give that of export_sampler")
    names = [str(value.name) for value in program.model.graph.outputs]
    if not isinstance(results, Mapping):
        results = dict(zip(names, results, strict=True))
    in_model = {new: name for name, new in told[RENAMED].items()}
    arrays = {in_model.get(name, name): np.asarray(x) for name, x in results.items()}
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
    unconstrained = arrays.pop(POINT, None)
    if unconstrained is not None:
        arrays = {**_values_of(unconstrained, told), **arrays}
    draws = Draws(posterior=arrays, sample_stats=statistics)
    if model is None:
        coords = {name: labels for name, labels in told["coords"].items() if labels is not None}
        return _groups(draws, coords, told["dims"])
    return make_tree(model, draws, check=compute_convergence_checks)


def make_tree(
    model: pm.Model, draws: Draws, *, check: bool = True, quiet: bool = False
) -> DataTree:
    """Return a tree of draws of a model, with its data, and warn of chains that do not converge."""
    check_model(model)
    coords, dims = coords_and_dims_for_inferencedata(model)
    tree = _groups(draws, coords, dims)
    for group, arrays in (
        ("constant_data", find_constants(model)),
        ("observed_data", find_observations(model)),
    ):
        if arrays:
            dataset = dict_to_dataset(
                arrays, inference_library=pm, coords=coords, dims=dims, sample_dims=[]
            )
            tree[group] = DataTree(dataset)
    if check:
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
