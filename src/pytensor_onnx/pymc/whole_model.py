"""Export all functions of a PyMC model as one file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import pymc as pm
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace

from pytensor_onnx.exporting.program.program import ONNXProgram
from pytensor_onnx.pymc.density import GROUPS, DensityOutputs, continuous_names, export_outputs
from pytensor_onnx.pymc.forward import add_seed, generated_quantities, seed_variable
from pytensor_onnx.pymc.inputs import Inputs, continuous_inputs
from pytensor_onnx.pymc.making import ModelOptions, read_options
from pytensor_onnx.pymc.model_graphs import ModelGraph

CONSTRAINED, UNCONSTRAINED, GENERATED = "constrained", "unconstrained", "generated"


def export_model(
    model: pm.Model,
    path: str | os.PathLike | None = None,
    *,
    outputs: Sequence[str] = (
        "logp",
        "dlogp",
        "values",
        "deterministics",
        GENERATED,
        UNCONSTRAINED,
    ),
    inputs: str = "vector",
    data: str | Iterable[str] = "inputs",
    jacobian: bool = True,
    propto: bool = False,
    batch: bool = False,
    verify: bool = True,
    **options: Any,
) -> ONNXProgram:
    """Export all functions of a PyMC model as one file.

    ONNX Runtime computes all outputs of a file in each call; `ONNXProgram.select` returns a program
    of some of them, with the inputs that these need.

    Parameters
    ----------
    model
        The model.
    path
        File to write; none unless given.
    outputs
        Results of the file, any of those of `export_logp` in the unconstrained space, and

        - ``"generated"``, a draw of each observed variable under its name, with the input ``seed``,
          an int64, or one for each point of a batch;
        - ``"unconstrained"``, the point of the constrained values that are a further input: of the
          vector ``constrained``, or of ``constrained_<variable>`` for each named input.
    inputs, data, jacobian, propto, batch, verify, options
        As in `export_logp`.

    Returns
    -------
    ONNXProgram
        The model, with the metadata of `export_logp`.

    Raises
    ------
    ArgumentError
        If the model has no such variable or data container, or an argument is not valid.
    UnsupportedOpError
        If a part of the model cannot be converted; nothing is written.

    Examples
    --------
    >>> import pymc as pm
    >>> with pm.Model() as model:
    ...     mu, sigma = pm.Normal("mu"), pm.HalfNormal("sigma")
    ...     y = pm.Normal("y", mu, sigma, observed=[1.0, 2.0, 4.0])
    >>> program = export_model(model)
    >>> [value.name for value in program.inputs]
    ['point', 'constrained', 'seed']
    >>> program.select(["dlogp", "sigma"])(point=[0.0, 0.0])
    [array([ 7., 18.]), array(1.)]
    >>> program.select("unconstrained")([0.5, 1.0])
    array([0.5, 0. ])
    >>> program.select("y")([0.0, 0.0], seed=1).shape
    (3,)
    """
    shared = ModelOptions.of(
        read_options(export_model, path, verify, options),
        inputs,
        data=data,
        batch=batch,
        jacobian=jacobian,
        propto=propto,
    )
    return export_outputs(_ModelOutputs(shared.graph_of(model), shared), outputs)


class _ModelOutputs(DensityOutputs):
    """The graphs of all functions of a model."""

    groups: ClassVar[tuple[str, ...]] = (*GROUPS, GENERATED, UNCONSTRAINED)
    has_optional_point = True

    def __init__(self, graph: ModelGraph, options: ModelOptions) -> None:
        super().__init__(graph, options)
        vector = options.vector
        self.seed = seed_variable()
        names = [str(container.name) for container in graph.containers]
        self.inverse = ModelGraph(graph.model, constrained=True, data=names)
        self.constrained = {
            v: v.type(name=CONSTRAINED if vector else f"{CONSTRAINED}_{v.name}")
            for v, _, _ in continuous_inputs(self.inverse, vector=vector)
        }

    def inputs(self, names: Sequence[str]) -> Inputs:
        """Return the inputs of a file of outputs."""
        given = super().inputs(names)
        add_seed(given, self.seed)
        return given

    def add_points(self, given: Inputs, names: Sequence[str]) -> None:
        """Add the inputs of each point."""
        super().add_points(given, names)
        given.add_continuous(
            self.inverse, vector=self.is_vector, optional=True, others=self.constrained
        )

    def named(self, name: str) -> dict[str, Variable]:
        """Return the outputs that a name stands for."""
        match name:
            case "generated":
                return generated_quantities(self.graph, self.seed)
            case "unconstrained":
                return self._laid_out(UNCONSTRAINED, self._unconstrained())
        return super().named(name)

    def _unconstrained(self) -> list[Variable]:
        """Transform constrained values of a point to unconstrained values."""
        inverse = self.inverse
        parts = list(self.constrained.values())
        if self.is_vector and parts:
            parts = inverse.split(parts[0])
        given = {
            value.variable: value.variable.type.filter_variable(part)
            for value, part in zip(inverse.continuous, parts, strict=True)
        }
        pairs = zip(inverse.discrete, self.graph.discrete, strict=True)
        given.update((value.variable, own.variable) for value, own in pairs)
        results = [inverse.unconstrained[name] for name in continuous_names(inverse)]
        return list(clone_replace(results, given, rebuild_strict=False))
