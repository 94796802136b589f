"""Simulation-based calibration of a model and its sampler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
from pymc.model.fgraph import clone_model
from pytensor.compile.mode import Mode
from scipy import stats  # type: ignore[import-untyped]

from pytensor_onnx.errors import ArgumentError
from pytensor_onnx.progress import working
from pytensor_onnx.pymc.model_arguments import check_model
from pytensor_onnx.pymc.sampler import export_sampler

BINS = 20
"""Bins of the ranks, at most; each has at least five ranks."""

PYTHON = Mode(linker="py", optimizer=None)

SUSPICIOUS = 0.01
"""Probability of a false alarm."""


@dataclass(frozen=True)
class Calibration:
    """Ranks of drawn parameters among their posterior draws.

    Attributes
    ----------
    ranks
        Ranks from 0 to ``draws`` by variable, int64 of shape ``(simulation, ...)``.
    draws
        Number of posterior draws of a simulation.
    failed
        Numbers of the simulations without ranks: data or starts that are not finite.
    divergences
        Number of divergences in all simulations.
    """

    ranks: Mapping[str, np.ndarray]
    draws: int
    failed: tuple[int, ...]
    divergences: int

    @property
    def p_values(self) -> dict[str, np.ndarray]:
        """Return the p-values of a chi-squared test for equally frequent ranks, by variable."""
        return {name: self._p_values(x) for name, x in self.ranks.items()}

    @property
    def is_calibrated(self) -> bool:
        """Whether no p-value is below 0.01, divided by their number (Bonferroni)."""
        least = [x.min() for x in self.p_values.values() if x.size]
        count = sum(x.size for x in self.p_values.values())
        return not least or bool(min(least) * count >= SUSPICIOUS)

    def _p_values(self, ranks: np.ndarray) -> np.ndarray:
        count = min(BINS, len(ranks) // 5, self.draws + 1)
        if count < 2:
            return np.full(ranks.shape[1:], np.nan)
        # Bins of ranks differ in size by one where their number does not divide that of ranks.
        bins = np.arange(self.draws + 1) * count // (self.draws + 1)
        shares = np.bincount(bins) / (self.draws + 1)
        columns = bins[ranks.reshape(len(ranks), -1)].T
        found = [
            stats.chisquare(np.bincount(x, minlength=count), len(ranks) * shares).pvalue
            for x in columns
        ]
        return np.array(found).reshape(ranks.shape[1:])


@working("calibrating")
def calibrate(
    model: pm.Model,
    *,
    simulations: int = 200,
    draws: int = 99,
    thin: int = 5,
    warmup: int = 500,
    seed: int = 0,
    variables: Sequence[str] | None = None,
    **options: Any,
) -> Calibration:
    """Test that a model and its sampler recover parameters that are drawn from the prior.

    Each simulation draws parameters from the prior and data from them, samples the posterior of
    these data, and ranks the parameters among the draws. If the model, its data and the sampler
    agree, all ranks are equally probable (S. Talts, M. Betancourt, D. Simpson, A. Vehtari,
    A. Gelman, arXiv:1804.06788). Ranks near both ends tell of posteriors that are too narrow, ranks
    in the middle of too wide ones.

    Parameters
    ----------
    model
        The model. Simulations replace its observed data, and keep other data.
    simulations
        Number of simulations.
    draws
        Number of posterior draws that ranks are taken among.
    thin
        Number of steps for each of them, as the draws of a chain depend on each other.
    warmup
        Steps of the warm-up of each simulation.
    seed
        Seed of the parameters, the data and the chains.
    variables
        Names of the variables to rank, all free ones and deterministics unless given.
    options
        Those of `export_sampler`.

    Returns
    -------
    Calibration
        The ranks, with ``p_values`` and ``is_calibrated``.

    Raises
    ------
    ArgumentError
        If the model has no observed variables, or discrete ones that cannot be summed out.

    Examples
    --------
    >>> import pymc as pm
    >>> with pm.Model() as model:
    ...     mu = pm.Normal("mu")
    ...     y = pm.Normal("y", mu, observed=[0.0, 0.0, 0.0])
    >>> found = calibrate(model, simulations=40, draws=19, warmup=200)
    >>> found.ranks["mu"].shape, bool(found.ranks["mu"].max() <= 19)
    ((40,), True)
    """
    check_model(model)
    for name, number in {"simulations": simulations, "draws": draws, "thin": thin}.items():
        if not isinstance(number, int) or number < 1:
            raise ArgumentError(f"{name} is {number!r}: give a number of at least 1")
    copy, observed = _with_containers(model)
    options = {"verify": False, "share_data": False, **options}
    program = export_sampler(copy, variables=variables, data=list(observed.values()), **options)
    names = [str(value.name) for value in program.model.graph.outputs]
    wanted = [name for name in names if name in copy.named_vars]
    drawn = pm.draw(
        [model[name] for name in (*wanted, *observed)], draws=simulations, random_seed=seed
    )
    prior = dict(zip((*wanted, *observed), drawn, strict=True))
    ranks: dict[str, list[np.ndarray]] = {name: [] for name in wanted}
    failed, divergences, rng = [], 0, np.random.default_rng(seed)
    for i in range(simulations):
        data = {container: np.asarray(prior[name][i]) for name, container in observed.items()}
        found = _sampled(program, data, seed * simulations + i, warmup, draws * thin)
        if found is None:
            failed.append(i)
            continue
        results = dict(zip(names, found, strict=True))
        divergences += int(results["diverging"].sum())
        for name in wanted:
            posterior = results[name][0, thin - 1 :: thin]
            below, equal = (
                compare(posterior, prior[name][i]).sum(axis=0) for compare in (np.less, np.equal)
            )
            # Equal values, those of discrete variables, are put in a random order.
            ranks[name].append(below + rng.integers(0, equal + 1))
    shapes = {name: np.shape(prior[name])[1:] for name in wanted}
    stacked = {
        name: np.array(x, "int64").reshape((len(x), *shapes[name])) for name, x in ranks.items()
    }
    return Calibration(stacked, draws, tuple(failed), divergences)


def _with_containers(model: pm.Model) -> tuple[pm.Model, dict[str, str]]:
    """Return a copy whose observed values are data containers, and these by the variables."""
    if not model.observed_RVs:
        raise ArgumentError("the model has no observed variables, so nothing to calibrate")
    copy = clone_model(model)
    containers = {}
    for rv in copy.observed_RVs:
        value = copy.rvs_to_values[rv]
        if value in copy.data_vars:
            containers[str(rv.name)] = str(value.name)
            continue
        name = f"{rv.name}_data"
        with copy:
            data = pm.Data(name, value.eval(mode=PYTHON))
        copy.rvs_to_values[rv] = data
        copy.values_to_rvs[data] = copy.values_to_rvs.pop(value)
        containers[str(rv.name)] = name
    return copy, containers


def _sampled(
    program: Any, data: Mapping[str, np.ndarray], seed: int, warmup: int, steps: int
) -> Sequence[np.ndarray] | None:
    """Return the results for data; None where data or the start of the chain are not finite."""
    if not all(np.isfinite(x).all() for x in data.values()):
        return None
    numbers = {"seed": [seed], "warmup": warmup, "draws": steps}
    # A call of the program would raise for the start.
    results: Sequence[np.ndarray] = program.session.run(program.feed((), {**numbers, **data}))
    names = [str(value.name) for value in program.model.graph.outputs]
    return results if results[names.index("finite_start")].all() else None
