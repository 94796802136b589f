"""First points of chains of a PyMC model."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pymc as pm
from pymc.initial_point import make_initial_point_fn
from pymc.pytensorf import find_rng_nodes, reseed_rngs
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant, Variable

from pytensor_onnx.errors import RunError

ATTEMPTS = 50
"""First points that are tried before a reason is given why there is none: nutpie tries fewer."""


class Starts:
    """A function from a seed to a point beside the model's initial point, which can be pickled."""

    def __init__(self, model: pm.Model, initvals: Mapping[Any, Any] | None) -> None:
        seeded = make_initial_point_fn(
            model=model,
            overrides=dict(initvals or {}),
            jitter_rvs=set(model.free_RVs),
            return_transformed=True,
        )
        self._function = seeded.__wrapped__  # by functools.wraps
        self._names = [str(v.name) for v in model.free_RVs]
        self._lock = threading.Lock()

    def __call__(self, seed: int | None) -> np.ndarray:
        """Return the point of a seed."""
        with self._lock:
            reseed_rngs(find_rng_nodes(self._function.maker.fgraph.outputs), seed)
            parts = self._function()
            return np.concatenate([np.ravel(part) for part in parts]).astype("float64")

    def variables_of(self, is_wanted: np.ndarray) -> list[str]:
        """Return the free variables that have one of some elements of a point."""
        with self._lock:
            sizes = [np.size(part) for part in self._function()]
        parts = np.split(is_wanted, np.cumsum(sizes)[:-1])
        return [name for name, part in zip(self._names, parts, strict=True) if part.any()]

    def __getstate__(self) -> dict[str, Any]:
        return {"_function": self._function, "_names": self._names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())


def finite_start(
    starts: Starts,
    run: Callable[[np.ndarray], Sequence[np.ndarray]],
    seeds: Iterable[int],
    known: Mapping[str, np.ndarray],
) -> tuple[np.ndarray, Sequence[np.ndarray]]:
    """Return the first of many points at which the density is finite, and the results there.

    Parameters
    ----------
    starts
        Function from a seed to a point.
    run
        Function of a point that returns the log-density, its gradient and other results.
    seeds
        Seeds to try.
    known
        The data by name, which may be the reason.

    Raises
    ------
    RunError
        If there is none, with a reason.
    """
    failure, tried, lost = None, 0, None
    for seed in seeds:
        tried += 1
        point = starts(seed)
        try:
            results = run(point)
        except RunError as error:
            failure = error
            continue
        if np.isfinite(results[0]) and np.isfinite(results[1]).all():
            return point, results
        if np.isfinite(results[0]):
            lost = ~np.isfinite(results[1])
    invalid = [name for name, x in known.items() if not np.isfinite(x).all()]
    if failure is not None:
        reason = str(failure)
    elif invalid:
        reason = f"there are values that are NaN or infinite in {', '.join(invalid)}"
    elif lost is not None:
        reason = f"the gradient is not finite by {', '.join(starts.variables_of(lost))}"
    else:
        reason = "model.debug() tells which variables have no finite density there"
    raise RunError(
        f"the log-density or its gradient is not finite at {tried} first points: {reason}"
    ) from failure


def stored_data(model: pm.Model, inputs: Collection[Variable]) -> dict[str, np.ndarray]:
    """Return the data that files store: observations, and containers that are no inputs."""
    containers = {v.name: v for v in model.data_vars if v not in inputs}
    observed = {v.name: model.rvs_to_values[v] for v in model.observed_RVs}
    stored = {**containers, **observed}
    return {
        str(name): np.asarray(v.data if isinstance(v, Constant) else v.get_value())
        for name, v in stored.items()
        if isinstance(v, Constant | SharedVariable) and v not in inputs
    }
