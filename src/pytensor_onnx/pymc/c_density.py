"""Log-densities of PyMC models as libraries of C, which samplers in any language call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx_ir as ir
import pymc as pm

from pytensor_onnx.errors import ArgumentError
from pytensor_onnx.pymc.density import export_logp
from pytensor_onnx.pymc.marginal import advice_on
from pytensor_onnx.pymc.model_graphs import ModelGraph
from pytensor_onnx.pymc.provenance import parameter_names
from pytensor_onnx.running.density_files import write_density


def export_c_density(
    model: pm.Model, folder: str | Path, *, deterministics: bool = True, **options: Any
) -> Path:
    """Write the log-density of a PyMC model for C, and for languages that call C: R, Julia, Rust.

    The folder then has ``density.h``, which describes the functions; the library, of the machine's
    system, named ``libpytensor_onnx.so``, ``.dylib`` or ``.dll``; and ``model.density``, the model
    with its data, which `density_open` reads. All three are of one version, and need neither Python
    nor ONNX Runtime.

    Parameters
    ----------
    model
        The model, whose free variables are continuous. Its data are stored with the present values.
    folder
        Folder to write into; it is made if it is missing.
    deterministics
        Whether the variables at a point include the deterministics.
    options
        As of `export_logp`: ``verify``, ``precision``, ``jacobian``, ``propto``.

    Returns
    -------
    Path
        The file ``model.density``.

    Raises
    ------
    ArgumentError
        If the model has a discrete or no free variable, or an argument is not valid.
    UncoveredError
        If the kernels do not cover the whole model; the message has the nodes and the reasons.
    MissingEngineError
        If this installation has no native library.

    Examples
    --------
    >>> import tempfile, pymc as pm
    >>> with pm.Model() as model:
    ...     mu, sigma = pm.Normal("mu"), pm.HalfNormal("sigma")
    ...     y = pm.Normal("y", mu, sigma, observed=[1.0, 2.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = export_c_density(model, folder)
    ...     path.name, sorted(x.stem for x in path.parent.iterdir())
    ('model.density', ['density', 'libpytensor_onnx', 'model'])
    """
    graph = ModelGraph(model, data="stored")
    if graph.discrete or not graph.continuous:
        discrete = [value.rv for value in graph.discrete]
        named = ", ".join(str(rv.name) for rv in discrete)
        of_discrete = f"these are discrete: {named}: {advice_on(discrete)}" if discrete else ""
        reason = of_discrete or "it has no free variable"
        raise ArgumentError(f"a point has the continuous free variables of a model: {reason}")
    outputs = ["values", "deterministics"] if deterministics else ["values"]
    density = export_logp(model, data="stored", **options)
    variables = export_logp(model, outputs=outputs, data="stored", **options)
    names = parameter_names(model, space="constrained", deterministics=deterministics)
    return write_density(
        Path(folder),
        ir.to_proto(density.model),
        ir.to_proto(variables.model),
        graph.start,
        [parameter_names(model), names],
    )
