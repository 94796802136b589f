"""Export variational inference for a PyMC model: the normal distribution nearest to its posterior.

R. Giordano, M. Ingram, T. Broderick, "Black box variational inference with a deterministic
objective: faster, more accurate, and even more black box", JMLR 25 (2024) 18.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.exporting.program.converting import fewer_collections
from pytensor_onnx.exporting.program.program import ONNXProgram
from pytensor_onnx.ops.random.draws import NormalPairs
from pytensor_onnx.progress import working
from pytensor_onnx.pymc.drawn_graphs import (
    CHAIN,
    DRAW,
    density_of,
    initial_point_of,
    log_densities,
    model_to_draw,
    named_outputs,
    normals_of_chains,
    weighted_draws,
)
from pytensor_onnx.pymc.full_rank import nearest_normal
from pytensor_onnx.pymc.inputs import Inputs
from pytensor_onnx.pymc.making import Details, make_program, read_options
from pytensor_onnx.pymc.model_arguments import read_choice
from pytensor_onnx.pymc.nuts import Density, State
from pytensor_onnx.pymc.posterior import state_of_seed
from pytensor_onnx.pymc.quasi_newton import MOST_STEPS, ascend

FIXED_DRAWS = 30
"""Draws that the objective is the mean over, as many as in the paper."""

_FIRST_LOG_SD = -3.0
"""Logarithm of the standard deviations at the start, where all draws are near the center."""

_NORMALS, _FIXED, _STEPS = 2**29 + 8, 2**29 + 9, 2**29 + 10
"""Streams of the normal numbers of draws, of those of the objective, and of those of steps."""

MEAN_FIELD, FULL_RANK = "mean_field", "full_rank"
"""Approximations: coordinates are independent, or correlated."""


@fewer_collections()
@working("exporting")
def export_advi(
    model: pm.Model,
    path: str | os.PathLike | None = None,
    *,
    variables: Sequence[str] | None = None,
    approximation: str = "mean_field",
    unconstrained: bool = False,
    data: str | Iterable[str] = "inputs",
    share_data: bool = True,
    verify: bool = True,
    **options: Any,
) -> ONNXProgram:
    """Export automatic differentiation variational inference (ADVI) for a PyMC model.

    The approximation is the normal distribution of independent coordinates in the unconstrained
    space (mean field) with the largest evidence lower bound (ELBO). The ELBO is the mean over 30
    fixed draws, in pairs of opposite signs and with unit variances, so that L-BFGS finds its
    maximum without a rate of learning or a number of steps to choose (deterministic ADVI).

    A normal distribution of any covariance (full rank) would fit the fixed draws where there are
    not many more of them than coordinates. It is found from that of the mean field by steps of the
    natural gradient with new draws in each, 30 or three for each coordinate, whose rate falls with
    their number. They end after a power of two of them, if the distribution has moved by a
    Kullback-Leibler divergence below 0.05 since half as many, and after 1,024.

    The file has the inputs ``seed``, an int64 vector of one number for each chain of independent
    draws, ``draws``, their number, and those of ``data``. Its outputs are

    - the draws of each variable, of shape ``(chain, draw, ...)``;
    - ``lp``, the log-density of each draw, and ``log_weight``, its importance weight, as those of
      `export_laplace`;
    - ``pareto_k``, which tells how far the approximation is from the posterior: weights are
      reliable below 0.7;
    - ``elbo``, ``converged``, and ``n_steps`` of L-BFGS and of the natural gradient. Draws are NaN
      if it has not converged.

    Parameters
    ----------
    model
        The model. Its discrete variables are summed out, and drawn back, as by `export_sampler`.
    path
        File to write; none unless given.
    variables
        Names of free variables and deterministics to return; all unless given.
    approximation
        ``"mean_field"``, or ``"full_rank"`` for the correlations of up to some hundreds of
        coordinates: a step takes time that grows with the cube of their number.
    unconstrained
        Whether to return the approximation itself: ``point``, the draws in the unconstrained space
        in the order of `export_logp`, ``mean_point`` and ``sd_point``, or ``covariance`` of full
        rank.
    data, share_data, verify, options
        As in `export_sampler`.

    Returns
    -------
    ONNXProgram
        The model, with the metadata of `export_logp`.

    Raises
    ------
    ArgumentError
        If the model has discrete variables that cannot be summed out, no continuous free ones, or
        not those named, or an argument is not valid.
    UnsupportedOpError
        If a part of the model cannot be converted; nothing is written.

    Examples
    --------
    >>> import pymc as pm
    >>> with pm.Model() as model:
    ...     sigma = pm.HalfNormal("sigma")
    ...     y = pm.Normal("y", 0.0, sigma, observed=[1.0, 2.0, 4.0])
    >>> program = export_advi(model)
    >>> names = [output.name for output in program.proto.graph.output]
    >>> found = dict(zip(names, program(seed=[1], draws=500)))
    >>> found["sigma"].shape, bool(found["converged"])
    ((1, 500), True)
    """
    read = read_options(export_advi, path, verify, {"precision": "float64", **options})
    read_choice(approximation, (MEAN_FIELD, FULL_RANK), "approximation")
    to_draw = model_to_draw(model, data, variables)
    graph = to_draw.graph
    seed, n_draws = pt.lvector("seed"), pt.lscalar("draws")
    density, further = density_of(graph, lockstep=False)
    # As the start depends on an input, PyTensor does not search for stored data at export.
    center = pt.switch(n_draws < 0, np.nan, initial_point_of(graph))
    size = center.shape[0]
    objective, fixed = _objective(density, further, size)
    first = pt.concatenate([center, pt.full((size,), _FIRST_LOG_SD)])
    start = State(first, *objective(first, fixed, *further))
    last, n_steps, _ = ascend(objective, [fixed, *further], start)
    mean, log_sd = last.x[:size], last.x[size:]
    normals = normals_of_chains(seed, _NORMALS, n_draws, size)
    if approximation == FULL_RANK:
        found = nearest_normal(density, further, mean, pt.exp(log_sd), _STEPS)
        (mean, root, log_volume), elbo, converged, steps = found
        n_steps = n_steps + steps
        deviations, shape = normals @ root.T, {"covariance": root @ root.T}
    else:
        sd, log_volume = pt.exp(log_sd), log_sd.sum()
        entropy = 0.5 * size.astype("float64") * (1.0 + np.log(2.0 * np.pi))
        elbo, converged = last.log_density + entropy, n_steps < MOST_STEPS
        converged = converged & pt.isfinite(last.log_density + last.gradient.sum())
        deviations, shape = sd * normals, {"sd_point": sd}
    mean = pt.switch(converged, mean, np.nan)
    positions = mean + deviations
    constant = 0.5 * size.astype("float64") * np.log(2.0 * np.pi)
    log_q = -0.5 * (normals * normals).sum(axis=2) - log_volume - constant
    lp = log_densities(density, further, positions.reshape((-1, size)))
    draws, k = weighted_draws(
        to_draw, seed, positions, lp, log_q.ravel(), unconstrained=unconstrained
    )
    fit = {"pareto_k": k, "elbo": elbo, "converged": converged, "n_steps": n_steps}
    if unconstrained:
        fit |= {"mean_point": mean, **shape}
    given = Inputs()
    given.add(seed, [1], {0: CHAIN})
    given.add(n_draws, 30)
    given.add_data(graph)
    return make_program(
        graph,
        given,
        named_outputs(draws, fit),
        read,
        description={
            "sampler": {"method": "advi", "fit": {name: [] for name in fit}},
            **to_draw.description,
        },
        details=Details(output_axes={0: CHAIN, 1: DRAW}, others={*fit}, share_data=share_data),
    )


def _objective(
    density: Density, data: Sequence[TensorVariable], size: TensorVariable
) -> tuple[Density, TensorVariable]:
    """Return the ELBO without its constant, as a density of means and log deviations.

    It takes standard normal numbers before the data, which are returned too.
    """
    half = FIXED_DRAWS // 2
    _, normals = NormalPairs("float64")(state_of_seed(pt.constant(0), _FIXED), half * size)
    normals = normals.reshape((half, size))
    # Pairs of opposite signs and unit variances make the objective of a normal posterior exact.
    normals = normals / pt.sqrt((normals * normals).mean(axis=0))

    def objective(
        x: TensorVariable, normals: TensorVariable, *data: TensorVariable
    ) -> list[TensorVariable]:
        size = normals.shape[1]
        mean, log_sd = x[:size], x[size:]
        deviations = pt.exp(log_sd) * normals
        values, gradients = pytensor.scan(
            density,
            [mean + deviations],
            non_sequences=list(data),
            return_updates=False,
            name="densities",
        )
        of_log_sd = (gradients * deviations).mean(axis=0) + 1.0
        gradient = pt.concatenate([gradients.mean(axis=0), of_log_sd])
        return [values.mean() + log_sd.sum(), gradient]

    return objective, pt.concatenate([normals, -normals])
