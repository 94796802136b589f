"""Export the transforms between the two spaces of a PyMC model."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pymc as pm

from pytensor_onnx.exporting.program.program import ONNXProgram
from pytensor_onnx.pymc.generated import add_seed, generated_quantities, seed_variable
from pytensor_onnx.pymc.inputs import Inputs
from pytensor_onnx.pymc.making import make_program
from pytensor_onnx.pymc.model_arguments import SPACES, read_choice
from pytensor_onnx.pymc.model_graphs import POINT, ModelGraph
from pytensor_onnx.pymc.shared_options import ModelOptions, read_options


def export_transforms(
    model: pm.Model,
    path: str | os.PathLike | None = None,
    *,
    to: str = "constrained",
    inputs: str = "vector",
    data: str | Iterable[str] = "inputs",
    deterministics: bool = False,
    generated: bool = False,
    batch: bool = False,
    verify: bool = True,
    **options: Any,
) -> ONNXProgram:
    """Export the transforms of a PyMC model in one direction.

    Parameters
    ----------
    model
        The model.
    path
        File to write; none unless given.
    to
        ``"constrained"`` for a file that takes the point of an unconstrained density and returns
        each free variable under its name, or ``"unconstrained"`` for one that takes each
        continuous variable under its name and returns the point.
    inputs
        Layout of the unconstrained side: ``"vector"`` or ``"named"``, as in `export_logp`.
    deterministics
        Whether the file also computes the deterministics.
    generated
        Whether it draws the observed variables, too, with an input ``seed``: an int64, or one for
        each point of a batch.
    data, batch, verify, options
        As in `export_logp`.

    Returns
    -------
    ONNXProgram
        The model, with the metadata of `export_logp`.

    Examples
    --------
    >>> import pymc as pm
    >>> with pm.Model() as model:
    ...     mu, sigma = pm.Normal("mu"), pm.HalfNormal("sigma")
    >>> constrain = export_transforms(model)
    >>> constrain([2.0, 0.0])
    [array(2.), array(1.)]
    >>> unconstrain = export_transforms(model, to="unconstrained")
    >>> unconstrain(mu=2.0, sigma=1.0)
    [array([2., 0.])]
    """
    is_forward = read_choice(to, SPACES, "to") == "unconstrained"
    shared = ModelOptions.of(
        read_options("export_transforms", path, verify, options),
        inputs,
        data=data,
        batch=batch,
        constrained=is_forward,
    )
    graph, vector = shared.graph_of(model), shared.vector
    results = graph.unconstrained if is_forward else graph.constrained
    if vector and is_forward:
        results = {POINT: graph.join([results[name] for name in continuous_names(graph)])}
    else:
        taken = {value.name for value in (graph.discrete if vector else graph.values)}
        results = {name: v for name, v in results.items() if name not in taken}
    if deterministics:
        results = {**results, **graph.deterministics}
    seed = seed_variable()
    if generated:
        results = {**results, **generated_quantities(graph, seed)}
    given = Inputs()
    given.add_values(graph, vector=vector and not is_forward)
    given.add_data(graph)
    add_seed(given, seed)
    replaced = graph.of_point if vector and not is_forward else graph.of_values
    outputs = dict(zip(results, replaced(list(results.values())), strict=True))
    return make_program(
        graph,
        given,
        outputs,
        shared.export,
        description={"batch": batch},
        batch=batch,
    )


def continuous_names(graph: ModelGraph) -> list[str]:
    """Return the names of the continuous values in the unconstrained space."""
    return [str(graph.model.rvs_to_values[value.rv].name) for value in graph.continuous]
