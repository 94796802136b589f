"""Export one transition of a sampler as a file, for a caller that writes the loop."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.errors import ArgumentError
from pytensor_onnx.exporting.program.converting import fewer_collections
from pytensor_onnx.exporting.program.program import ONNXProgram
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.progress import working
from pytensor_onnx.pymc.chains import STATE, numbers_of_steps
from pytensor_onnx.pymc.drawn_graphs import density_of, model_to_draw
from pytensor_onnx.pymc.inputs import Inputs
from pytensor_onnx.pymc.making import Details, make_program, read_options
from pytensor_onnx.pymc.model_arguments import read_choice
from pytensor_onnx.pymc.model_graphs import POINT
from pytensor_onnx.pymc.nuts import (
    DIVERGENCE,
    Correction,
    Density,
    Randomness,
    Scaling,
    State,
    draw,
    kinetic_energy,
)
from pytensor_onnx.pymc.pathfinder import paths
from pytensor_onnx.pymc.sampler import METRICS, check_tree_depth

METHODS = ("nuts", "hmc", "pathfinder")

NEXT_POINT, NEXT_STATE = "next_point", "next_state"


@fewer_collections()
@working("exporting")
def export_step(
    model: pm.Model,
    path: str | os.PathLike | None = None,
    *,
    method: str = "nuts",
    metric: str = "diagonal",
    data: str | Iterable[str] = "inputs",
    max_tree_depth: int = 10,
    share_data: bool = True,
    verify: bool = True,
    **options: Any,
) -> ONNXProgram:
    """Export one transition of a sampler: a point in, the next point out.

    The inputs of the file are

    - ``point``, the point in the unconstrained space, in the order of `export_logp`;
    - ``state``, int64: a seed, and the number of the step, from zero on;
    - ``scale``, the standard deviations of the coordinates as far as they are known: roots of the
      diagonal of the inverse mass matrix;
    - ``vectors`` and ``stretches`` of a low-rank metric: orthonormal columns in units of scales,
      and for each the root of its variance there, less one;
    - ``step_size``, and ``leapfrog_steps`` for HMC, their number in a trajectory;
    - those of ``data``.

    Its outputs are ``next_point``, ``next_state``, the log-density ``lp`` and the ``gradient`` at
    the next point, ``energy``, ``n_steps``, ``acceptance_rate`` and ``diverging``, and
    ``tree_depth`` for NUTS. Steps of one seed are those of the chain with this seed in a file of
    `export_sampler`, for the same scales, step size and start.

    A step of Pathfinder is one path of `export_pathfinder`, around ``point``. It has the inputs
    ``point``, ``state``, ``draws`` and those of ``data``, and the outputs ``points``, a row for a
    draw, their log-densities ``lp`` and ``log_ratio``, less that of the normal distribution,
    ``mean``, ``elbo``, ``n_steps`` and ``next_state``.

    Parameters
    ----------
    model
        The model. Its discrete variables are summed out.
    path
        File to write; none unless given.
    method
        ``"nuts"``, ``"hmc"`` or ``"pathfinder"``.
    metric
        ``"diagonal"``, or ``"low_rank"`` for NUTS with correlations of any rank.
    data, share_data, verify, options
        As in `export_sampler`.
    max_tree_depth
        Largest number of doublings of a trajectory of NUTS.

    Returns
    -------
    ONNXProgram
        The model, with the metadata of `export_logp`.

    Raises
    ------
    ArgumentError
        If the model has discrete variables that cannot be summed out, or no continuous free ones,
        or an argument is not valid.
    UnsupportedOpError
        If a part of the model cannot be converted; nothing is written.

    Examples
    --------
    >>> import pymc as pm
    >>> with pm.Model() as model:
    ...     mu = pm.Normal("mu", 0.0, 2.0)
    ...     y = pm.Normal("y", mu, 1.0, observed=[1.0, 2.0, 4.0])
    >>> step = export_step(model)
    >>> point, state = np.zeros(1), np.array([1, 0])
    >>> draws = []
    >>> for _ in range(200):
    ...     point, state, *_ = step(point, state, scale=[1.0], step_size=0.5)
    ...     draws.append(point[0])
    >>> bool(abs(np.mean(draws) - 2.15) < 0.3)
    True
    """
    read = read_options(export_step, path, verify, {"precision": "float64", **options})
    check_step(method, metric, max_tree_depth)
    graph = model_to_draw(model, data, None).graph
    density, further = density_of(graph, lockstep=False)
    step = Step(method, max_tree_depth, metric == "low_rank", graph.point.type.shape)
    return make_program(
        graph,
        _inputs(graph, step),
        step.outputs(density, further),
        read,
        description={"step": {"method": method, "max_tree_depth": max_tree_depth}},
        details=Details(share_data=share_data),
    )


class Step:
    """The inputs of one transition as variables, and its outputs.

    Parameters
    ----------
    method, max_tree_depth
        As in `export_step`.
    is_low_rank
        Whether the metric has correlations.
    shape
        Shape of the point.
    """

    def __init__(
        self, method: str, max_tree_depth: int, is_low_rank: bool, shape: tuple[int | None, ...]
    ) -> None:
        self.method, self.max_tree_depth = method, max_tree_depth
        self.point = pt.tensor(POINT, dtype="float64", shape=shape)
        self.state = pt.tensor(STATE, dtype="int64", shape=(2,))
        self.scale = pt.tensor("scale", dtype="float64", shape=shape)
        self.correction: Correction | tuple[()] = ()
        if is_low_rank:
            vectors = pt.tensor("vectors", dtype="float64", shape=(*shape, None))
            self.correction = Correction(vectors, pt.dvector("stretches"))
        self.step_size = pt.scalar("step_size", dtype="float64")
        self.n_steps = pt.lscalar("leapfrog_steps")
        self.n_draws = pt.lscalar("draws")

    @property
    def inputs(self) -> list[TensorVariable]:
        """The inputs in their order, without data."""
        if self.method == "pathfinder":
            return [self.point, self.state, self.n_draws]
        counts = [self.n_steps] if self.method == "hmc" else []
        return [self.point, self.state, self.scale, *self.correction, self.step_size, *counts]

    def outputs(
        self, density: Density, further: Sequence[TensorVariable]
    ) -> dict[str, TensorVariable]:
        """Return the outputs by their names, of a density and the further variables it takes."""
        if self.method == "pathfinder":
            return self._path(density, further)
        point, state = self.point, self.state
        value, gradient = density(point, *further)
        now = State(point, value, gradient)
        depth = self.max_tree_depth if self.method == "nuts" else 1
        rows = numbers_of_steps(state[0], pt.constant(1), point.shape[0], depth, state[1])
        numbers = Randomness(*(row[0] for row in rows))
        if self.method == "nuts":
            after, statistics = draw(
                density,
                further,
                now,
                numbers,
                scaling=Scaling(self.scale, self.correction),
                step_size=self.step_size,
                max_depth=self.max_tree_depth,
            )
            told = statistics._asdict()
        else:
            after, told = _hmc(
                density, further, now, numbers, self.scale, self.step_size, self.n_steps
            )
        told = {{"acceptance": "acceptance_rate"}.get(name, name): x for name, x in told.items()}
        return {
            NEXT_POINT: after.x,
            NEXT_STATE: pt.stack([state[0], state[1] + 1]),
            "lp": after.log_density,
            "gradient": after.gradient,
            **told,
        }

    def _path(
        self, density: Density, further: Sequence[TensorVariable]
    ) -> dict[str, TensorVariable]:
        """Return the outputs of one path of Pathfinder."""
        seed, count = self.state[0], self.state[1]
        # The first one is the path of the seed.
        seeds = pt.stack([seed + count * 2**32])
        results = paths(density, further, self.point, seeds, self.n_draws)
        names = "points", "lp", "log_ratio", "mean", "elbo", "n_steps"
        return {
            **{name: x[0] for name, x in zip(names, results, strict=True)},
            NEXT_STATE: pt.stack([seed, count + 1]),
        }


def check_step(method: str, metric: str, max_tree_depth: int) -> None:
    """Raise unless arguments of a transition are valid."""
    read_choice(method, METHODS, "method")
    read_choice(metric, METRICS, "metric")
    check_tree_depth(max_tree_depth)
    if method != "nuts" and metric == "low_rank":
        raise ArgumentError('metric="low_rank" is one of method="nuts"')


def _inputs(graph: Any, step: Step) -> Inputs:
    """Return the inputs of the file, with values for its verification."""
    axes = {0: f"{POINT}_size"} if step.point.type.shape == (None,) else {}
    size = len(graph.start)
    given = Inputs()
    given.add(step.point, graph.start, axes, free=True)
    given.add(step.state, [1, 3])
    if step.method == "pathfinder":
        given.add(step.n_draws, 3)
        given.add_data(graph)
        return given
    given.add(step.scale, np.ones(size), axes)
    if step.correction:
        first = np.eye(size, 1)
        given.add(step.correction.vectors, first, {**axes, 1: "rank"})
        given.add(step.correction.stretches, [0.5], {0: "rank"})
    given.add(step.step_size, 0.1)
    if step.method == "hmc":
        given.add(step.n_steps, 4)
    given.add_data(graph)
    return given


def _hmc(
    density: Density,
    data: Sequence[TensorVariable],
    now: State,
    numbers: Randomness,
    scale: TensorVariable,
    step_size: TensorVariable,
    n_steps: TensorVariable,
) -> tuple[State, dict[str, TensorVariable]]:
    """Return the end of a trajectory, or its start if the end is rejected (Neal, 2011).

    A trajectory ends early where the error of its energy counts as a divergence.
    """
    momentum, uniforms = numbers
    energy = kinetic_energy(momentum) - now.log_density
    half_step = 0.5 * step_size * scale

    def leap(
        state: State,
        momentum: TensorVariable,
        count: TensorVariable,
        half_step: TensorVariable,
        energy: TensorVariable,
        *data: TensorVariable,
    ) -> tuple[list, until]:
        half = momentum + half_step * state.gradient
        x = state.x + 2.0 * half_step * half
        value, gradient = density(x, *data)
        after = half + half_step * gradient
        error = kinetic_energy(after) - value - energy
        return [State(x, value, gradient), after, count + 1], until(~(error <= DIVERGENCE))

    end, last, count = iterate(
        leap,
        [now, momentum, pt.constant(np.int64(0))],
        [half_step, energy, *data],
        n_steps=n_steps,
    )
    error = kinetic_energy(last) - end.log_density - energy
    acceptance = pt.switch(error <= DIVERGENCE, pt.exp(pt.minimum(-error, 0.0)), 0.0)
    accepted = uniforms[0, 0] < acceptance
    after = State(*(pt.switch(accepted, a, b) for a, b in zip(end, now, strict=True)))
    return after, {
        "energy": pt.switch(accepted, energy + error, energy),
        "n_steps": count,
        "acceptance": acceptance,
        "diverging": ~(error <= DIVERGENCE),
    }
