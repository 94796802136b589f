"""Export a fitted PyMC model as a predictor."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors, toposort
from pytensor.scan.op import Scan
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.errors import ArgumentError
from pytensor_onnx.exporting.program.converting import fewer_collections
from pytensor_onnx.exporting.program.program import ONNXProgram
from pytensor_onnx.exporting.requests.options import ExportOptions
from pytensor_onnx.exporting.verification.results import Verification
from pytensor_onnx.exporting.verification.verification import checked_session
from pytensor_onnx.named_dims import is_named, without_named
from pytensor_onnx.progress import working
from pytensor_onnx.pymc import posterior
from pytensor_onnx.pymc.forward import forward, without_weight
from pytensor_onnx.pymc.inputs import Inputs, columns_of_data, columns_of_summaries
from pytensor_onnx.pymc.making import Details, make_program, read_options
from pytensor_onnx.pymc.marginal import is_chain, probabilities_of
from pytensor_onnx.pymc.model_arguments import (
    check_loops,
    check_model,
    read_choice,
    read_strings,
    unknown,
)
from pytensor_onnx.pymc.model_graphs import ModelGraph
from pytensor_onnx.pymc.posterior import Keys, check_lengths, posterior_of, read_posterior
from pytensor_onnx.rewriting.engine.walkers import inner_nodes
from pytensor_onnx.user_code import untraced

DRAWS, PROBABILITIES = "draws", "probabilities"
_MOST_NUMBERS = 100_000
"""Numbers that are drawn for a comparison, which PyTensor takes half a second for."""
_FEW_ROWS = 16
"""Fewest rows of data that a comparison takes."""
_DRAWS_OF_LOOP = 8
"""Draws that a comparison takes of a loop, in which PyTensor takes 20 to 50 ms for each."""
_DRAWS_OF_SERIES = 2
"""The same for a loop of loops, where PyTensor takes 0.6 s for 1,000 steps of a time series."""

KINDS = (DRAWS, "mean", "sd", "quantiles", "hdi", PROBABILITIES)


@untraced()
@fewer_collections()
@working("exporting")
def export_predictor(
    model: pm.Model,
    idata: Any,
    path: str | os.PathLike | None = None,
    *,
    outputs: Sequence[str] | Mapping[str, str | Sequence[str]] | None = None,
    draws: int | None = None,
    sample_vars: Sequence[str] = (),
    data: str | Iterable[str] = "inputs",
    quantiles: Sequence[float] = (0.05, 0.5, 0.95),
    hdi_prob: float = posterior.MASS_OF_HDI,
    categories: Mapping[str, Sequence[int]] | None = None,
    seed: int | None = None,
    row_id: str | None = None,
    share_data: bool = True,
    units: Mapping[str, str] | None = None,
    verify: bool = True,
    **options: Any,
) -> ONNXProgram:
    """Export a fitted PyMC model as a predictor, with its posterior draws.

    The file computes the draws of `pymc.sample_posterior_predictive`: random variables that have
    posterior draws take these, all others are drawn, and deterministics follow from both.

    Parameters
    ----------
    model
        The model, or another one with variables of the same names, such as one for new groups.
    idata
        The posterior: the result of `pymc.sample`, a Dataset, or a dict of arrays with the axes
        chain and draw first.
    path
        File to write; none unless given.
    outputs
        By default means, standard deviations and draws of all observed variables. Otherwise names
        of variables, whose draws the file returns, or for each name a list of results, any of

        - ``"draws"``: the output ``y``, with the draws on its first axis;
        - ``"mean"`` and ``"sd"`` of the draws: ``y_mean`` and ``y_sd``;
        - ``"quantiles"``: ``y_quantiles``, with the levels on its last axis;
        - ``"hdi"``: the ends of the interval of highest density, ``y_hdi``;
        - ``"probabilities"``: of each of the ``categories`` of a discrete variable, on the last
          axis of ``y_probabilities``. They are means of its probabilities, not counts of draws.
    draws
        Number of posterior draws to store, taken at equal distances; all unless given.
    sample_vars
        Free variables that are drawn from their distributions although the posterior has them.
        Those that it does not have must stand here, unless it has a deterministic that they are
        needed for, such as the effects of groups in a model of Bambi.
    data
        Which data containers become inputs, as in `export_logp`; one that no output needs is none.
    quantiles, hdi_prob
        Levels of the quantiles, and mass of the intervals.
    categories
        For names of discrete variables, the values whose probabilities are wanted.
    seed
        Seed to store; an input unless given.
    row_id
        Name of an input of an integer for each row. The draws of a row then depend on the seed and
        this key alone, and not on the other rows of a call. The input ``seed`` is an int64[1].
    share_data
        Whether the metadata of the file have the ranges of the data and a sample of them, at most
        1,000 rows, for [its page](https://pytensor-onnx.github.io/pytensor-onnx/how-to/web.html).
    units
        Units of data and predicted variables by their names, for the page.
    verify, options
        As in `export_logp`, and ``precision="float32"``, which stores and computes in float32. Of
        many draws and rows, some are compared, as ``program.verification`` says:
        ``program.verify([x, ...])`` compares all draws for data of yours.

    Returns
    -------
    ONNXProgram
        The model. Its inputs are the data and, if it draws, the key of the rows and ``seed``, an
        int64. The metadata ``pymc`` of the file is the JSON of
        `pytensor_onnx.pymc.provenance.provenance`.

    Raises
    ------
    ArgumentError
        If the model has no such variable or data container, or draws are missing or do not fit.
    UnsupportedOpError
        If a part of the model cannot be converted; nothing is written.

    Examples
    --------
    >>> import numpy as np, pymc as pm
    >>> with pm.Model() as model:
    ...     x = pm.Data("x", np.zeros(3))
    ...     slope = pm.Normal("slope")
    ...     mu = pm.Deterministic("mu", slope * x)
    ...     y = pm.Normal("y", mu, 0.5, shape=mu.shape, observed=np.zeros(3))
    >>> posterior = {"slope": np.array([[1.0, 2.0, 3.0]])}
    >>> predict = export_predictor(model, posterior, outputs={"mu": ["mean", "hdi"], "y": "draws"})
    >>> mean, hdi, y = predict(x=[1.0, 10.0], seed=1)
    >>> mean, y.shape
    (array([ 2., 20.]), (3, 2))
    """
    read = read_options(export_predictor, path, verify, options)
    check_model(model)
    request = PredictorRequest(
        outputs=outputs,
        draws=draws,
        sample_vars=sample_vars,
        quantiles=quantiles,
        hdi_prob=hdi_prob,
        categories=categories,
        seed=seed,
        row_id=row_id,
        share_data=share_data,
        units=units,
    )
    return predictor_of(ModelGraph(model, data=data), idata, request, read)


@dataclass(frozen=True, kw_only=True)
class PredictorRequest:
    """The arguments of `export_predictor` beside the model, the data, the draws and the options."""

    outputs: Sequence[str] | Mapping[str, str | Sequence[str]] | None = None
    draws: int | None = None
    sample_vars: Sequence[str] = ()
    quantiles: Sequence[float] = (0.05, 0.5, 0.95)
    hdi_prob: float = posterior.MASS_OF_HDI
    categories: Mapping[str, Sequence[int]] | None = None
    seed: int | None = None
    row_id: str | None = None
    share_data: bool = True
    units: Mapping[str, str] | None = None


def predictor_of(
    graph: ModelGraph, idata: Any, request: PredictorRequest, read: ExportOptions
) -> ONNXProgram:
    """Export a predictor of the graphs of a model; see `export_predictor`."""
    model, categories = graph.model, request.categories
    wanted = _read_outputs(graph, request.outputs)
    parts = [
        part for name, kinds in wanted.items() for part in _parts(graph, name, kinds, categories)
    ]
    computed = [part.variable for part in parts]
    check_loops(model, computed)
    given, missing = conditioned(graph, idata, request.sample_vars, computed)
    if missing:
        raise ArgumentError(
            f"the posterior has no draws of {', '.join(missing)}: name them in sample_vars to draw "
            "them from their distributions"
        )
    arrays = read_posterior(idata, given, request.draws)
    check_lengths(model, arrays)
    if not given:
        raise ArgumentError(
            "no variable of the model has posterior draws: there is no fit to export"
        )
    stored = {v: pytensor.shared(arrays[v.name], v.name, shape=arrays[v.name].shape) for v in given}
    keys = Keys(graph, request.seed, request.row_id)
    n_draws = len(next(iter(arrays.values())))
    computed, draws_of = _as_tensors(graph, computed, stored)
    batches = forward(computed, draws_of, n_draws, keys.seed, keys.by_rows)
    summary = _Summaries(request.quantiles, request.hdi_prob, n_draws)
    results = {}
    for part, values in zip(parts, batches, strict=True):
        for kind in part.kinds:
            name = part.name if kind == DRAWS else f"{part.name}_{kind}"
            results[name] = summary(kind, values)
    inputs = Inputs()
    inputs.add_data(graph)
    keys.add_to(inputs)
    results = dict(zip(results, graph.of_values(list(results.values())), strict=True))
    description = {
        "draws": n_draws,
        "outputs": {k: list(v) for k, v in wanted.items()},
        "quantiles": list(request.quantiles),
        "hdi_prob": request.hdi_prob,
        "row_id": request.row_id,
        "units": dict(request.units or {}),
        "categories": {k: list(map(int, v)) for k, v in (categories or {}).items()},
    }
    columns = columns_of_data(graph)
    keys.check_columns({**columns, **(read.feature_names or {})})
    for name, kinds in wanted.items():
        rank = graph.model[name].type.ndim
        endings = {kind: summary.endings(kind, categories or {}, name) for kind in kinds}
        endings.pop(DRAWS, None)
        columns.update(columns_of_summaries(graph.model, name, rank, endings))
    size = max(_FEW_ROWS, _MOST_NUMBERS // n_draws)
    few = min(n_draws, _draws_to_compare(graph, inputs, wanted, batches, size))
    is_sampled = read.verify and few < n_draws
    program = make_program(
        graph,
        inputs,
        results,
        replace(read, path=None, verify=read.verify and not is_sampled),
        description=description,
        details=Details(columns=columns, verified_length=size, share_data=request.share_data),
    )
    if is_sampled:
        checked_session(program.model, lambda: program.session_of_file)
        compared = predictor_of(graph, idata, replace(request, draws=few), replace(read, path=None))
        program.verification = compared.verification
    if read.verify:
        program.verification = _of_draws(program.verification, few, n_draws)
    if read.path is not None:
        program.save(read.path)
    return program


def _of_draws(found: Verification, few: int, n_draws: int) -> Verification:
    """Return a verification that tells how many draws were compared, beside the rows."""
    rows = found.part.removeprefix(f"{few:,} of {few:,} draws").removeprefix(" and ")
    part = " and ".join([f"{few:,} of {n_draws:,} draws", *([rows] if rows else [])])
    return replace(found, part=part if few == n_draws else f"{part}, by a file of these draws")


def _draws_to_compare(
    graph: ModelGraph,
    inputs: Inputs,
    names: Iterable[str],
    batches: Iterable[Variable],
    size: int,
) -> int:
    """Return the number of draws that PyTensor computes in about half a second."""
    loops = [v.owner.op for v in batches if v.owner and isinstance(v.owner.op, Scan)]
    if any(isinstance(node.op, Scan) for loop in loops for node in inner_nodes(loop)):
        return _DRAWS_OF_SERIES
    if loops:
        return _DRAWS_OF_LOOP
    if inputs.shortened(size) is not None:
        return _MOST_NUMBERS
    values = (graph.model.rvs_to_values.get(graph.model[name]) for name in names)
    rows = max([1, *(np.size(v.data) for v in values if isinstance(v, Constant))])
    return max(2, _MOST_NUMBERS // rows)


def _as_tensors(
    graph: ModelGraph, computed: Sequence[Variable], stored: Mapping[Variable, TensorVariable]
) -> tuple[list[Variable], dict[Variable, TensorVariable]]:
    """Return what `forward` takes as graphs of tensors, also for named dimensions."""
    if not any(is_named(v.type) for v in ancestors(computed)):
        return list(computed), dict(stored)
    tensors = {v: x.type.clone(shape=x.type.shape[1:])() for v, x in stored.items()}
    given = {v: v.type.filter_variable(tensor) for v, tensor in tensors.items()}
    graphs = clone_replace(list(computed), {**graph.data_tensors, **given}, rebuild_strict=False)
    return without_named(graphs), {tensors[v]: x for v, x in stored.items()}


@dataclass(frozen=True)
class _Part:
    """A graph to compute for each draw, and a summary of the draws."""

    name: str
    variable: Variable
    kinds: tuple[str, ...]


class _Summaries:
    """The summaries of draws, by their names."""

    def __init__(self, levels: Sequence[float], mass: float, count: int) -> None:
        if not all(0 <= level <= 1 for level in levels):
            raise ArgumentError(f"quantiles={list(levels)}: levels are between 0 and 1")
        if not 0 < mass < 1:
            raise ArgumentError(f"hdi_prob={mass}: the mass is between 0 and 1")
        self._levels = levels
        self._functions: dict[str, Callable[[TensorVariable], TensorVariable]] = {
            DRAWS: lambda values: values,
            "mean": posterior.mean,
            "sd": posterior.standard_deviation,
            "quantiles": lambda values: posterior.quantiles(values, levels, count),
            "hdi": lambda values: posterior.highest_density_interval(values, count, mass),
            PROBABILITIES: posterior.mean,
        }

    def endings(
        self, kind: str, categories: Mapping[str, Sequence[int]], name: str
    ) -> Sequence[str]:
        """Return the names of the numbers that a summary consists of, none if it is one."""
        several = {
            "quantiles": [f"{100 * level:g}" for level in self._levels],
            "hdi": ["low", "high"],
            PROBABILITIES: [str(value) for value in categories.get(name, ())],
        }
        return several.get(kind, [])

    def __call__(self, kind: str, values: TensorVariable) -> TensorVariable:
        return self._functions[kind](values)


def _read_outputs(graph: ModelGraph, outputs: Any) -> dict[str, tuple[str, ...]]:
    """Return the kinds of outputs wanted of each variable, by its name."""
    if outputs is None:
        observed = [str(v.name) for v in graph.model.observed_RVs]
        if not observed:
            raise ArgumentError("the model has no observed variables: name the outputs")
        outputs = dict.fromkeys(observed, ("mean", "sd", DRAWS))
    if not isinstance(outputs, Mapping):
        outputs = dict.fromkeys(read_strings(outputs, "outputs"), DRAWS)
    model = graph.model
    known = [v.name for v in [*model.basic_RVs, *model.deterministics]]
    wanted = {}
    for name, kinds in outputs.items():
        if name not in known:
            raise unknown(name, "variable", known)
        listed = read_strings(kinds, f"outputs[{name!r}]")
        wanted[name] = tuple(read_choice(kind, KINDS, f"outputs[{name!r}]") for kind in listed)
    if not any(wanted.values()):
        raise ArgumentError("there are no outputs: outputs={'y': ['mean', 'hdi']}")
    return wanted


def conditioned(
    graph: ModelGraph, idata: Any, sample_vars: Sequence[str], computed: Sequence[Variable]
) -> tuple[list[Variable], list[str]]:
    """Return the variables that take posterior draws, and the names of variables without draws."""
    names = read_strings(sample_vars, "sample_vars")
    free = {str(v.name): v for v in graph.model.free_RVs}
    for name in names:
        if name not in free:
            raise unknown(name, "free variable", list(free))
    posterior = posterior_of(idata)
    given = [v for k, v in free.items() if k not in names and k in posterior]
    absent = [v for k, v in free.items() if k not in names and k not in posterior]
    drawn = [*graph.model.observed_RVs, *(free[k] for k in names)]
    given += _stand_ins(graph, posterior, given, absent, drawn)
    needed = set(ancestors(computed, blockers=given))
    return given, [str(v.name) for v in absent if v in needed]


def _stand_ins(
    graph: ModelGraph,
    posterior: Any,
    given: Sequence[Variable],
    absent: Sequence[Variable],
    drawn: Sequence[Variable],
) -> list[Variable]:
    """Return the deterministics with draws that free variables without draws are behind.

    Those that depend on data that are inputs, or on variables that are drawn anew, are none: they
    were computed of the values of the fit.
    """
    deterministics = graph.model.deterministics
    stored = {v for v in deterministics if v.name in posterior}
    lacking, changing = set(absent), {*graph.containers, *drawn}
    found = []
    for node in toposort(deterministics, blockers=given):
        for marked in (lacking, changing):
            if not marked.isdisjoint(node.inputs):
                marked.update(node.outputs)
        for variable in stored.intersection(node.outputs) & lacking - changing:
            found.append(variable)
            lacking.discard(variable)
    return found


def _parts(
    graph: ModelGraph,
    name: str,
    kinds: Sequence[str],
    categories: Mapping[str, Sequence[int]] | None,
) -> list[_Part]:
    """Return the graphs that the outputs of a variable need."""
    variable = graph.model[name]
    of_draws = tuple(kind for kind in kinds if kind != PROBABILITIES)
    parts = [_Part(name, variable, of_draws)] if of_draws else []
    if PROBABILITIES in kinds:
        if name not in (categories or {}):
            raise ArgumentError(
                f"outputs[{name!r}] has probabilities: give the values, "
                f"categories={{{name!r}: [0, 1]}}"
            )
        if variable.type.dtype.startswith("float") or variable not in graph.model.basic_RVs:
            raise ArgumentError(f"{name!r} is no discrete random variable: it has no probabilities")
        if is_named(variable.type):
            # PyMC takes its density of a clone, which does not depend on the draws.
            raise ArgumentError(
                f"{name!r} is of pymc.dims, whose probabilities are not supported: return its "
                "mean, or write it with pymc itself"
            )
        values = [np.asarray(k, variable.type.dtype) for k in (categories or {})[name]]
        if is_chain(variable):
            # Its density is that of a whole path.
            of_states = probabilities_of(variable)
            if of_states is None:
                raise ArgumentError(
                    f"{name!r} is a chain of which each state depends on several before it: its "
                    "probabilities are not supported"
                )
            states = pt.arange(of_states.shape[-1])
            terms = [(of_states * pt.eq(states, k)).sum(axis=-1) for k in values]
        else:
            terms = [pt.exp(pm.logp(without_weight(variable), value)) for value in values]
        parts.append(_Part(name, pt.stack(terms, axis=-1), (PROBABILITIES,)))
    return parts
