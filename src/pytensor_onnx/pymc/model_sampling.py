"""Sample a PyMC model on ONNX Runtime by one call."""

from __future__ import annotations

import importlib.util
import inspect
import json
import logging
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pymc as pm
from pymc.progress_bar import NutpieProgressBarManager
from pymc.step_methods import NUTS, STEP_METHODS
from pymc.util import get_random_generator
from pytensor.compile.mode import get_mode
from pytensor.gradient import NullTypeGradError
from xarray import DataTree

from pytensor_onnx.errors import ArgumentError, did_you_mean
from pytensor_onnx.exporting.requests.options import ExportOptions
from pytensor_onnx.pymc.drawn_values import Values
from pytensor_onnx.pymc.kept_programs import kept_of, model_key
from pytensor_onnx.pymc.marginal import (
    Marginalized,
    can_be_summed,
    has_drawn_back,
    initvals_of,
    names_of_marginalized,
)
from pytensor_onnx.pymc.model_arguments import check_model, read_choice, read_strings, unknown
from pytensor_onnx.pymc.model_graphs import ModelGraph
from pytensor_onnx.pymc.own_sampling import Request, sample_by_parts, variables_of_trace
from pytensor_onnx.pymc.sampler import METRICS
from pytensor_onnx.pymc.trees import Draws, make_tree

SAMPLERS = ("nutpie", "pytensor_onnx", "pymc")
_LOG = logging.getLogger("pymc")
_OF_NUTPIE = {
    "depth": "tree_depth",
    "logp": "lp",
    "maxdepth_reached": "reached_max_treedepth",
    "mean_tree_accept": "acceptance_rate",
}
"""Statistics of nutpie with another name in PyMC."""
_DROPPED = {"tuning", "unconstrained_draw", "divergence_message", "divergence_draw"}
_FOR_NUTS = ("target_accept", "max_treedepth", "nuts")
_OWN_SETTINGS = ("target_accept", "max_treedepth")
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
    metric: str = "diagonal",
    discard_tuned_samples: bool = True,
    compute_convergence_checks: bool = True,
    idata_kwargs: Mapping[str, Any] | None = None,
    model: pm.Model | None = None,
    **kwargs: Any,
) -> DataTree:
    """Draw from the posterior of a PyMC model, with the density on ONNX Runtime.

    Arguments and result are those of `pymc.sample`. NUTS draws the continuous variables, by nutpie
    where it is installed (``pip install 'pytensor-onnx[nutpie]'``), and by the sampler of
    `export_sampler` where it is not. Up to three discrete variables are summed out by pymc-extras
    (``pip install 'pytensor-onnx[discrete]'``), and drawn back for each draw, as those that
    `pymc_extras.marginal.marginalize` has taken out of the model. For other discrete variables and
    for densities with an Op that runs in Python, the step methods of PyMC run in mode ONNX.

    Parameters
    ----------
    draws, tune, chains, cores, random_seed
        Numbers of draws, of warm-up steps and of chains, the number of chains at a time, and the
        seed.
    progressbar, progressbar_theme, quiet
        Display of the progress, as PyMC's with matplotlib installed. An interrupted call returns
        the draws so far.
    var_names
        Variables and deterministics of the posterior; all unless given.
    initvals
        Initial values of variables in place of those of the model; those of each chain in a list.
    nuts_sampler
        ``"nutpie"``, ``"pytensor_onnx"`` or ``"pymc"``; chosen as above unless given.
    metric
        ``"diagonal"``, or ``"low_rank"`` for a posterior with strong correlations, as in
        `export_sampler`; of nutpie ``adaptation="low_rank"``.
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
        Further arguments of `pymc.sample`. ``target_accept``, ``max_treedepth`` and ``nuts``, a
        dict, are for all samplers; ``step``, ``init``, ``callback`` and others choose the step
        methods of PyMC.

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
        If a part of the model cannot be converted, and ``nuts_sampler`` is given and not
        ``"pymc"``.

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
    _check_arguments(kwargs)
    known = [str(v.name) for v in model.unobserved_RVs]
    known += names_of_marginalized(model)
    for name in read_strings(var_names, "var_names") if var_names is not None else ():
        if name not in known:
            raise unknown(name, "free variable or deterministic", known)
    sampler = nuts_sampler or _sampler_for(model, initvals, kwargs)
    read_choice(sampler, SAMPLERS, "nuts_sampler")
    read_choice(metric, METRICS, "metric")
    cores = min(4, os.cpu_count() or 1) if cores is None else cores
    chains = max(2, cores) if chains is None else chains
    wanted = dict(idata_kwargs or {})
    request = Request(
        model=model,
        draws=draws,
        tune=tune,
        chains=chains,
        cores=min(cores, chains),
        random_seed=random_seed,
        progressbar=progressbar and not quiet and _has_display(),
        progressbar_theme=progressbar_theme,
        quiet=quiet,
        var_names=var_names,
        initvals=initvals,
        discard_tuned_samples=discard_tuned_samples,
        compute_convergence_checks=compute_convergence_checks,
        include_transformed=bool(wanted.pop("include_transformed", False)),
        metric=metric,
    )
    return _with_densities(_sampled(request, sampler, nuts_sampler, kwargs), model, wanted)


def _has_display() -> bool:
    """Return whether PyMC can show progress: its colours are matplotlib's, which it may lack."""
    return importlib.util.find_spec("matplotlib") is not None


def _check_idata_kwargs(given: Mapping[str, Any] | None) -> None:
    for name in given or {}:
        if name not in _IDATA_KWARGS:
            raise ArgumentError(
                f"idata_kwargs has {name!r}: sample takes {', '.join(_IDATA_KWARGS)}"
            )


def _check_arguments(given: Mapping[str, Any]) -> None:
    """Raise for arguments that neither `pymc.sample` nor a step method has: some take any."""
    owners = [pm.sample, *(method.__init__ for method in NUTS.__mro__)]
    named = [x for owner in owners for x in inspect.signature(owner).parameters.values()]
    known = {x.name for x in named if x.kind in (x.POSITIONAL_OR_KEYWORD, x.KEYWORD_ONLY)}
    known |= {*_FOR_NUTS, *(method.name for method in STEP_METHODS)}
    for name in given:
        if name not in known:
            advice = did_you_mean(name, sorted(known), "its arguments are those of pymc.sample")
            raise ArgumentError(f"sample has no argument {name!r}: {advice}")


def _sampler_for(model: pm.Model, initvals: Any, kwargs: Mapping[str, Any]) -> str:
    """Return the sampler of a model: the first that can draw all of it as it is asked for."""
    if not can_be_summed(model) or not kwargs.keys() <= {*_FOR_NUTS, *_FOR_MACHINES}:
        return "pymc"
    has_one_start = initvals is None or isinstance(initvals, Mapping)
    is_installed = importlib.util.find_spec("nutpie") is not None
    return "nutpie" if is_installed and has_one_start else "pytensor_onnx"


def _sampled(request: Request, sampler: str, wanted: str | None, kwargs: Mapping[str, Any]) -> Any:
    """Sample by a sampler, and by PyMC's where none was asked for and this cannot have the model.

    A black box does not convert, or has no gradient.
    """
    if sampler != "pymc":
        try:
            return (_by_nutpie if sampler == "nutpie" else _by_own)(request, kwargs)
        except (NotImplementedError, NullTypeGradError):
            if wanted is not None:
                raise
    if request.metric != "diagonal":
        raise ArgumentError("the step methods of PyMC have no low-rank metric: metric='diagonal'")
    return _by_pymc(request, kwargs)


def _by_own(request: Request, kwargs: Mapping[str, Any]) -> DataTree:
    """Sample by the sampler of this package."""
    settings = _settings(kwargs)
    for name in settings:
        if name not in _OWN_SETTINGS:
            raise ArgumentError(
                f"nuts has {name!r}: nuts_sampler='pytensor_onnx' takes {', '.join(_OWN_SETTINGS)}"
            )
    return sample_by_parts(request, **settings)


def _by_pymc(request: Request, kwargs: Mapping[str, Any]) -> Any:
    """Sample by the step methods of PyMC in mode ONNX."""
    arguments = {x.name: getattr(request, x.name) for x in fields(request)}
    transformed = arguments.pop("include_transformed")
    del arguments["metric"]
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


def _by_nutpie(request: Request, kwargs: Mapping[str, Any]) -> DataTree:
    """Sample by nutpie."""
    import nutpie

    from pytensor_onnx.pymc.nutpie import last_nutpie_model

    model, names, initvals, tune = request.model, request.var_names, request.initvals, request.tune
    if not (initvals is None or isinstance(initvals, Mapping)):
        raise ArgumentError("nutpie takes one dict of initvals for all chains: nuts_sampler='pymc'")
    summed = _summed_for_nutpie(request)
    if summed is not None:
        model, names = summed.copy or model, []
        initvals = initvals_of(initvals, model, request.model)
    settings = _settings(kwargs)
    if "max_treedepth" in settings:
        settings["maxdepth"] = settings.pop("max_treedepth")
    if request.metric == "low_rank":
        settings["adaptation"] = "low_rank"
    # Parts of the density that depend on data alone are folded.
    compiled = last_nutpie_model(model, var_names=names, initvals=initvals)
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
            store_unconstrained=request.include_transformed or summed is not None,
            progress_bar=False,
            progress_callback=bar.update,
            **settings,
        )
    seconds = time.perf_counter() - began
    told = json.loads(trace["sample_stats"].attrs["inference_library_settings"])
    has_warmup = not request.discard_tuned_samples and tune != 0

    def variables(prefix: str, first: int) -> dict[str, np.ndarray]:
        if summed is None:
            return _variables_of(trace, prefix, model, names)
        points = trace[f"{prefix}sample_stats"]["unconstrained_draw"].to_numpy()
        return summed.values(points, [int(x.integers(2**62)) for x in generators], first)

    n_warmup = 0 if tune == 0 else told["settings"]["num_tune"]
    draws = Draws(
        posterior=variables("", n_warmup),
        sample_stats=_statistics_of(trace, ""),
        warmup_posterior=variables("warmup_", 0) if has_warmup else {},
        warmup_sample_stats=_statistics_of(trace, "warmup_") if has_warmup else {},
        attributes={
            "sampling_time": seconds,
            "tuning_steps": n_warmup,
            "inference_library_settings": json.dumps(told),
        },
        library=nutpie,
    )
    return make_tree(
        request.model, draws, check=request.compute_convergence_checks, quiet=request.quiet
    )


@dataclass(frozen=True)
class _Summed:
    """A model without its discrete variables, and a program of all variables of the trace.

    The model is None for one that had none.
    """

    copy: pm.Model | None
    values: Values


def _summed_for_nutpie(request: Request) -> _Summed | None:
    """Return the model that nutpie samples in place of one with discrete variables, the last one.

    None for a model without them.
    """
    if not has_drawn_back(request.model):
        return None
    of_model, variables = model_key(request.model)
    names = None if request.var_names is None else tuple(request.var_names)
    key = ("summed", names, request.include_transformed, of_model)
    kept = kept_of(request.model)
    summed = kept.find(key)
    if summed is None:
        parts = Marginalized.of(request.model)
        graph = ModelGraph(parts.model, data="stored")
        options = ExportOptions.of("sample", {"verify": False})
        wanted = variables_of_trace(parts, graph, request)
        summed = _Summed(parts.copy, Values.of(graph, wanted, options))
        kept.add(key, summed, variables)
    return summed


def _settings(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of NUTS among the arguments of `pymc.sample`."""
    given = {name: x for name, x in kwargs.items() if name not in _FOR_MACHINES}
    for name in given:
        if name not in _FOR_NUTS:
            raise ArgumentError(f"{name!r} is for the step methods of PyMC: nuts_sampler='pymc'")
    _in_mode_onnx(kwargs)
    return {**given.pop("nuts", {}), **given}


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
