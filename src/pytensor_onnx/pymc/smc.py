"""Export sequential Monte Carlo for a PyMC model: draws of the posterior, and the evidence."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pymc.distributions.continuous import FlatRV, HalfFlatRV
from pytensor.graph.basic import Variable
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.errors import ArgumentError
from pytensor_onnx.exporting.program.converting import fewer_collections
from pytensor_onnx.exporting.program.program import ONNXProgram
from pytensor_onnx.progress import working
from pytensor_onnx.pymc.drawn_graphs import (
    CHAIN,
    DRAW,
    STREAMS_OF_DRAWS,
    as_function,
    model_to_draw,
    named_outputs,
    values_of_points,
)
from pytensor_onnx.pymc.inputs import Inputs
from pytensor_onnx.pymc.making import Details, make_program, read_options
from pytensor_onnx.pymc.model_graphs import POINT, ModelGraph, as_compiled
from pytensor_onnx.pymc.posterior import seeded
from pytensor_onnx.pymc.tempering import Terms, temper

_PRIOR = 2**33
"""First stream of the draws from the prior."""


@fewer_collections()
@working("exporting")
def export_smc(
    model: pm.Model,
    path: str | os.PathLike | None = None,
    *,
    variables: Sequence[str] | None = None,
    unconstrained: bool = False,
    data: str | Iterable[str] = "inputs",
    share_data: bool = True,
    verify: bool = True,
    **options: Any,
) -> ONNXProgram:
    """Export sequential Monte Carlo for a PyMC model: draws of the posterior, and the evidence.

    Particles are drawn from the prior. In each stage, the power of the likelihood grows until half
    of the particles are effective, particles are drawn by their weights, and move by Metropolis
    steps. At the power one, they are draws of the posterior. Potentials belong to the likelihood,
    as in `pymc.sample_smc`.

    The file has the inputs ``seed``, an int64 vector of one number for each chain, ``draws``, the
    number of particles of each chain, and those of ``data``. Its outputs are

    - the draws of each variable, of shape ``(chain, draw, ...)``;
    - ``lp``, the log-density of each draw;
    - for each chain, ``log_marginal_likelihood``, an estimate of the logarithm of the evidence,
      ``n_stages``, and ``n_steps``, the number of Metropolis steps of each particle.

    Draws are NaN if the likelihood is zero for all particles of the prior, or if the power is
    below one after 200 stages.

    Parameters
    ----------
    model
        The model. Its discrete variables are summed out, and drawn back, as by `export_sampler`.
    path
        File to write; none unless given.
    variables
        Names of free variables and deterministics to return; all unless given.
    unconstrained
        Whether to return the draws in the unconstrained space too, as the output ``point``, in the
        order of `export_logp`.
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
        not those named, a flat prior, or an argument is not valid.
    UnsupportedOpError
        If a part of the model cannot be converted, such as draws from a prior without a sampler;
        nothing is written.

    Examples
    --------
    >>> import pymc as pm
    >>> with pm.Model() as model:
    ...     mu = pm.Normal("mu", 0.0, 2.0)
    ...     y = pm.Normal("y", mu, 1.0, observed=[1.0, 2.0, 4.0])
    >>> program = export_smc(model)
    >>> names = [output.name for output in program.proto.graph.output]
    >>> found = dict(zip(names, program(seed=[1, 2], draws=1000)))
    >>> found["mu"].shape, bool((abs(found["log_marginal_likelihood"] + 7.0) < 0.2).all())
    ((2, 1000), True)
    """
    read = read_options(export_smc, path, verify, {"precision": "float64", **options})
    to_draw = model_to_draw(model, data, variables)
    graph = to_draw.graph
    _check_priors(graph)
    seed, n_draws = pt.lvector("seed"), pt.lscalar("draws")
    terms, further = _terms_of(graph)
    starts = _from_prior(graph, seed, n_draws)

    def chain(
        start: TensorVariable, seed: TensorVariable, *data: TensorVariable
    ) -> list[TensorVariable]:
        now, progress = temper(terms, data, start, seed)
        x = pt.switch(progress.temper < 1.0, np.nan, now.x)
        lp = now.prior + now.likelihood
        return [x, lp, progress.log_evidence, progress.n_stages, progress.n_steps]

    positions, lp, evidence, n_stages, n_steps = pytensor.scan(
        chain, [starts, seed], non_sequences=further, return_updates=False, name="chains"
    )
    positions = positions.reshape(starts.shape)
    draws = values_of_points(graph, positions, to_draw.wanted, seed, pt.constant(np.int64(0)))
    if unconstrained:
        draws[POINT] = positions
    draws["lp"] = lp.reshape((seed.shape[0], n_draws))
    fit = {"log_marginal_likelihood": evidence, "n_stages": n_stages, "n_steps": n_steps}
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
            "sampler": {"method": "smc", "fit": {name: [CHAIN] for name in fit}},
            **to_draw.description,
        },
        details=Details(output_axes={0: CHAIN, 1: DRAW}, share_data=share_data),
    )


def _check_priors(graph: ModelGraph) -> None:
    """Raise for variables whose prior is no distribution."""
    flat = [
        str(rv.name) for rv in graph.model.free_RVs if isinstance(rv.owner.op, FlatRV | HalfFlatRV)
    ]
    if flat:
        names = ", ".join(flat)
        raise ArgumentError(
            f"sequential Monte Carlo starts from draws of the prior, and that of {names} is flat: "
            "give a distribution, or take export_sampler"
        )


def _terms_of(graph: ModelGraph) -> tuple[Terms, list[Variable]]:
    """Return the log-densities of prior and likelihood, and the further variables they take."""
    model = graph.model
    prior = graph.terms(model.free_RVs)
    likelihood = graph.terms([*model.observed_RVs, *model.potentials])
    sums = [pt.add(pt.zeros(()), *(pt.sum(x) for x in terms)) for terms in (prior, likelihood)]
    at_point, further = as_function([graph.point], graph.of_point(as_compiled(sums)))

    def terms(x: TensorVariable, *given: TensorVariable) -> list[TensorVariable]:
        return [value.astype("float64") for value in at_point(x, *given)]

    return terms, further


def _from_prior(graph: ModelGraph, seed: TensorVariable, n_draws: TensorVariable) -> TensorVariable:
    """Return points from the prior of shape ``(chain, draw, coordinate)``."""
    model = graph.model
    transforms = [model.rvs_to_transforms[rv] for rv in model.free_RVs]
    values = [
        rv if transform is None else transform.forward(rv, *rv.owner.inputs)
        for rv, transform in zip(model.free_RVs, transforms, strict=True)
    ]
    (point,) = graph.of_values([graph.join(values)])
    of_chain, number = pt.lscalar(), pt.lscalar()
    drawn = seeded([point], of_chain, _PRIOR + number, STREAMS_OF_DRAWS)
    at_draw, further = as_function([of_chain, number], drawn)
    chains = seed.shape[0]
    rows = pytensor.scan(
        lambda *given: at_draw(*given)[0].astype("float64"),
        [pt.repeat(seed, n_draws), pt.tile(pt.arange(n_draws), chains)],
        non_sequences=further,
        return_updates=False,
        name="prior",
    )
    return rows.reshape((chains, n_draws, rows.shape[1]))
