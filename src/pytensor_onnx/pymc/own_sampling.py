"""Sample a PyMC model by the sampler of this package, in threads and parts of chains.

A chain runs on ONNX Runtime for about a tenth of a second at a time, in which Python's lock is
free: as many chains as there are threads run at once, and an interruption keeps all finished parts.
The draws do not depend on where a chain is cut.
"""

from __future__ import annotations

import logging
import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.progress_bar.progress import NutpieProgressBarManager, ProgressBarManager
from pymc.util import get_random_generator
from pytensor.graph.basic import Variable
from xarray import DataTree

from pytensor_onnx.errors import ArgumentError
from pytensor_onnx.exporting.program.converting import fewer_collections
from pytensor_onnx.exporting.program.program import ONNXProgram
from pytensor_onnx.exporting.requests.options import ExportOptions
from pytensor_onnx.functions.loops import leaves, mapped
from pytensor_onnx.pymc.chains import (
    OUTPUTS,
    POSITION,
    ChainState,
    Settings,
    first_state,
    numbers_of_steps,
    schedule,
    take_steps,
)
from pytensor_onnx.pymc.drawn_graphs import check_variables, density_of
from pytensor_onnx.pymc.drawn_values import Values
from pytensor_onnx.pymc.inputs import Inputs
from pytensor_onnx.pymc.kept_programs import kept_of, model_key
from pytensor_onnx.pymc.making import make_program
from pytensor_onnx.pymc.marginal import Marginalized, initvals_of
from pytensor_onnx.pymc.model_graphs import ModelGraph
from pytensor_onnx.pymc.nuts import State
from pytensor_onnx.pymc.sampler import check_numbers
from pytensor_onnx.pymc.starts import ATTEMPTS, Starts, finite_start, stored_data
from pytensor_onnx.pymc.trees import Draws, make_tree
from pytensor_onnx.running.session import SessionOptions
from pytensor_onnx.user_code import NOT_OF_USERS

SECONDS_OF_PART = 0.1
"""Time that a part of a chain is to take."""
SECONDS_OF_DISPLAY = 0.1
_LOG = logging.getLogger("pymc")


@dataclass(frozen=True, kw_only=True)
class Request:
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
    metric: str


def sample_by_parts(
    request: Request, *, target_accept: float = 0.8, max_treedepth: int = 10
) -> DataTree:
    """Sample a model, and return the tree of `pytensor_onnx.pymc.sample`.

    Raises
    ------
    ArgumentError
        If the model has discrete variables that cannot be summed out, or an argument is not valid.
    RunError
        If a chain finds no start, or a check of the model fails while it runs.
    KeyboardInterrupt
        If the call is interrupted before there are draws.
    """
    check_numbers(max_treedepth, target_accept)
    settings = Settings(False, max_treedepth, target_accept, request.metric == "low_rank")
    sampler = _sampler_of(request, settings)
    if not request.quiet:
        model = sampler.model or request.model
        _LOG.info(f"NUTS[pytensor_onnx, ONNX Runtime]: {model.free_RVs}")
    n_warmup = 1000 if request.tune is None else request.tune
    total = n_warmup + request.draws
    generators = get_random_generator(request.random_seed).spawn(request.chains)
    chains = [
        _Chain(sampler, starts, generator, n_warmup, total)
        for starts, generator in zip(_starts_of(request, sampler), generators, strict=True)
    ]
    began = time.perf_counter()
    is_interrupted = _run(chains, request)
    seconds = time.perf_counter() - began
    length = total
    if is_interrupted:
        chains, length = _longest(chains, n_warmup if request.discard_tuned_samples else 0)
    tree = make_tree(
        request.model,
        _draws_of(sampler, chains, n_warmup, length, request, seconds),
        check=request.compute_convergence_checks,
        quiet=request.quiet,
    )
    if is_interrupted:
        warnings.warn(
            f"sampling was interrupted: the trace has {max(length - n_warmup, 0)} draws of "
            f"{len(chains)} chains, of {request.draws} draws of {request.chains} chains",
            UserWarning,
            skip_file_prefixes=NOT_OF_USERS,
        )
    return tree


@dataclass(frozen=True, kw_only=True)
class _Sampler:
    """The programs of a model.

    Attributes
    ----------
    model
        The model without discrete variables; None if the model itself has none.
    begin
        Program from a point to the rest of the state of a chain there.
    advance
        Program from a seed, the number of warm-up steps, the first step, the number of steps and a
        state to the state after the steps, and their traces.
    values
        Program from points to variables.
    settings
        How it is sampled.
    known
        The data by name.
    """

    model: pm.Model | None
    begin: ONNXProgram
    advance: ONNXProgram
    values: Values
    settings: Settings
    known: Mapping[str, np.ndarray]

    @classmethod
    @fewer_collections()
    def of(cls, request: Request, settings: Settings) -> _Sampler:
        # Chains that run at once take one thread each.
        threads = 1 if request.cores > 1 else None
        given = {"precision": "float64", "session_options": SessionOptions(threads=threads)}
        options = ExportOptions.of("sample", {"verify": False, **given})
        parts = Marginalized.of(request.model)
        graph = ModelGraph(parts.model, data="stored")
        check_variables(graph)

        def program(
            inputs: Sequence[Variable], examples: Sequence[Any], outputs: Sequence[Variable]
        ) -> ONNXProgram:
            taken = Inputs()
            for variable, example in zip(inputs, examples, strict=True):
                taken.add(variable, example)
            named = {f"output_{i}": output for i, output in enumerate(outputs)}
            return make_program(graph, taken, named, options, description={})

        density, data = density_of(graph, lockstep=False)
        size = graph.start.size
        point = pt.tensor("point", dtype="float64", shape=(size,))
        first = first_state(State(point, *density(point, *data)), settings)
        begin = program([point], [np.zeros(size)], leaves(first)[1:])

        numbers = [pt.lscalar(name) for name in ("seed", "n_warmup", "first_step", "n_steps")]
        seed, n_warmup, first_step, n_steps = numbers
        names = iter(f"state_{i}" for i in range(len(leaves(first))))
        state: ChainState = mapped(lambda v: v.type(name=next(names)), first)
        after, traces = take_steps(
            density,
            settings,
            state,
            numbers_of_steps(seed, n_steps, pt.constant(size), settings.max_depth, first_step),
            schedule(n_warmup, n_steps, first_step, low_rank=settings.low_rank),
            data,
        )
        states = leaves(state)
        examples = [np.zeros(v.type.shape, v.type.dtype) for v in states]
        advance = program([*numbers, *states], [0, 0, 0, 1, *examples], [*leaves(after), *traces])

        return cls(
            model=parts.copy,
            begin=begin,
            advance=advance,
            values=Values.of(graph, variables_of_trace(parts, graph, request), options),
            settings=settings,
            known=stored_data(request.model, ()),
        )


def _sampler_of(request: Request, settings: Settings) -> _Sampler:
    """Return the sampler of a model, the last one where neither model nor data have changed."""
    of_model, variables = model_key(request.model)
    key = (
        *("sample", settings, request.cores > 1, request.include_transformed),
        None if request.var_names is None else tuple(request.var_names),
        of_model,
    )
    kept = kept_of(request.model)
    sampler = kept.find(key)
    if sampler is None:
        sampler = _Sampler.of(request, settings)
        kept.add(key, sampler, variables)
    return sampler


def variables_of_trace(
    parts: Marginalized, graph: ModelGraph, request: Request
) -> dict[str, Variable]:
    """Return the variables of the trace in the order of the model, by name."""
    values = {str(value.rv.name): value for value in graph.continuous if value.transform}
    found: dict[str, Variable] = {}
    for name, variable in parts.variables(graph).items():
        if request.var_names is not None and name not in request.var_names:
            continue
        if request.include_transformed and name in values:
            found[values[name].name] = values[name].variable
        found[name] = variable
    return found


def _call(program: ONNXProgram, *arrays: Any) -> list[np.ndarray]:
    session = program.session
    return session.run(dict(zip(session.input_names, arrays, strict=True)))


def _starts_of(request: Request, sampler: _Sampler) -> list[Starts]:
    """Return a function of the first point of each chain."""
    given, model = request.initvals, request.model

    def starts(initvals: Mapping[Any, Any] | None) -> Starts:
        if sampler.model is None:
            return Starts(model, initvals)
        return Starts(sampler.model, initvals_of(initvals, sampler.model, model))

    if given is None or isinstance(given, Mapping):
        return [starts(given)] * request.chains
    if len(given) != request.chains:
        raise ArgumentError(f"initvals are for {len(given)} chains: there are {request.chains}")
    return [starts(initvals) for initvals in given]


class _Chain:
    """A chain that runs in parts; the display of the progress reads it as a chain of nutpie.

    Attributes
    ----------
    parts
        Positions and statistics of all steps, the warm-up included.
    """

    def __init__(
        self,
        sampler: _Sampler,
        starts: Starts,
        generator: np.random.Generator,
        n_warmup: int,
        total: int,
    ) -> None:
        self._sampler, self._n_warmup = sampler, n_warmup
        self._starts, self._generator = starts, generator
        self.seed = int(generator.integers(2**62))
        self.parts: list[list[np.ndarray]] = []
        self.started, self.finished_draws, self.total_draws = False, 0, total
        self.divergent_draws = range(0)
        self.latest_num_steps, self.step_size, self.runtime_ms = 0, 0.0, 0.0

    def run(self, stop: threading.Event) -> None:
        """Take steps until all are there, or an event is set."""
        if stop.is_set():
            return
        began, count = time.perf_counter(), 1
        state = self._first_state()
        self.started = True
        while self.finished_draws < self.total_draws and not stop.is_set():
            start, first = time.perf_counter(), self.finished_draws
            count = min(count, self.total_draws - first)
            numbers = map(np.array, (self.seed, self._n_warmup, first, count))
            results = _call(self._sampler.advance, *numbers, *state)
            state, traces = results[: len(state)], results[len(state) :]
            self.parts.append(traces)
            self._show(dict(zip(OUTPUTS, traces, strict=False)))
            now = time.perf_counter()
            self.runtime_ms = 1000.0 * (now - began)
            # The trajectories become longer and shorter in the warm-up.
            count = max(1, min(4 * count, int(count * SECONDS_OF_PART / (now - start))))

    def traces(self, length: int) -> dict[str, np.ndarray]:
        """Return positions and statistics of the first steps."""
        columns = [np.concatenate(column)[:length] for column in zip(*self.parts, strict=True)]
        return dict(zip(OUTPUTS, columns, strict=False))

    def _first_state(self) -> list[np.ndarray]:
        sampler = self._sampler
        seeds = (int(self._generator.integers(2**30)) for _ in range(ATTEMPTS))
        point, rest = finite_start(
            self._starts, lambda x: _call(sampler.begin, x), seeds, sampler.known
        )
        return [point, *rest]

    def _show(self, traces: Mapping[str, np.ndarray]) -> None:
        first, self.finished_draws = self.finished_draws, self.finished_draws + len(traces["lp"])
        diverging = traces["diverging"][max(self._n_warmup - first, 0) :]
        self.divergent_draws = range(len(self.divergent_draws) + int(diverging.sum()))
        self.latest_num_steps = int(traces["n_steps"][-1])
        self.step_size = float(traces["step_size"][-1])


class _Display(NutpieProgressBarManager):
    """The display of the progress for chains of this package, which needs no nutpie in marimo."""

    __enter__ = ProgressBarManager.__enter__


def _run(chains: Sequence[_Chain], request: Request) -> bool:
    """Run chains in threads, and return whether the user has interrupted them."""
    display = _Display(
        chains=len(chains),
        draws=request.draws,
        progressbar=request.progressbar,
        progressbar_theme=request.progressbar_theme,
    )
    stop, is_interrupted = threading.Event(), False
    with display, ThreadPoolExecutor(request.cores, "pytensor_onnx_chain") as threads:
        running = [threads.submit(chain.run, stop) for chain in chains]
        try:
            while True:
                # Without a limit of time, Windows would not interrupt it.
                done, rest = wait(running, SECONDS_OF_DISPLAY, FIRST_EXCEPTION)
                display.update(chains)
                if not rest or any(future.exception() for future in done):
                    break
        except KeyboardInterrupt:
            is_interrupted = True
        finally:
            stop.set()
    for future in running:
        future.result()
    return is_interrupted


def _longest(chains: Sequence[_Chain], n_dropped: int) -> tuple[list[_Chain], int]:
    """Return the chains, and the steps of each, that have most draws together, as PyMC does.

    Raises
    ------
    KeyboardInterrupt
        If there are no draws.
    """
    by_length = sorted(chains, key=lambda chain: chain.finished_draws, reverse=True)
    draws = [max(chain.finished_draws - n_dropped, 0) for chain in by_length]
    count = max(range(1, len(draws) + 1), key=lambda n: n * draws[n - 1])
    if not draws[count - 1]:
        raise KeyboardInterrupt("sampling was interrupted before there were draws")
    kept = by_length[:count]
    return [chain for chain in chains if chain in kept], by_length[count - 1].finished_draws


def _draws_of(
    sampler: _Sampler,
    chains: Sequence[_Chain],
    n_warmup: int,
    length: int,
    request: Request,
    seconds: float,
) -> Draws:
    """Return the draws of chains, of equal length."""
    traces = [chain.traces(length) for chain in chains]
    arrays = {name: np.stack([trace[name] for trace in traces]) for name in traces[0]}
    first = n_warmup if request.discard_tuned_samples else 0
    positions = arrays.pop(POSITION)[:, first:]
    values = sampler.values(positions, [chain.seed for chain in chains], first)
    arrays["reached_max_treedepth"] = arrays["tree_depth"] >= sampler.settings.max_depth
    n_kept = n_warmup - first
    has_warmup = n_kept > 0
    return Draws(
        posterior={name: x[:, n_kept:] for name, x in values.items()},
        sample_stats={name: x[:, n_warmup:] for name, x in arrays.items()},
        warmup_posterior={k: x[:, :n_kept] for k, x in values.items()} if has_warmup else {},
        warmup_sample_stats={k: x[:, :n_kept] for k, x in arrays.items()} if has_warmup else {},
        attributes={"sampling_time": seconds, "tuning_steps": n_warmup},
    )
