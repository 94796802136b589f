"""Log densities, gradients and transforms."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import graph_inputs

from pytensor_onnx.changes import Change
from pytensor_onnx.exporting.program.converting import fewer_collections
from pytensor_onnx.exporting.program.program import ONNXProgram
from pytensor_onnx.named_dims import is_named, tensor_of, without_named
from pytensor_onnx.progress import working
from pytensor_onnx.pymc.forward import add_seed, generated_quantities, seed_variable
from pytensor_onnx.pymc.inputs import Inputs, columns_of_data, continuous_inputs
from pytensor_onnx.pymc.making import Details, ModelOptions, make_program, read_options
from pytensor_onnx.pymc.model_arguments import (
    SPACES,
    read_choice,
    read_strings,
    shared_name,
    unknown,
)
from pytensor_onnx.pymc.model_graphs import POINT, ModelGraph, as_compiled
from pytensor_onnx.pymc.provenance import names_in_model
from pytensor_onnx.running.data_parts import divide

DIRECTION = "direction"
GROUPS = ("logp", "dlogp", "d2logp", "hvp", "pointwise", "values", "deterministics")


@fewer_collections()
@working("exporting")
def export_logp(
    model: pm.Model,
    path: str | os.PathLike | None = None,
    *,
    outputs: Sequence[str] = ("logp", "dlogp"),
    space: str = "unconstrained",
    inputs: str = "vector",
    data: str | Iterable[str] = "inputs",
    jacobian: bool = True,
    propto: bool = False,
    batch: bool = False,
    share_data: bool = True,
    verify: bool = True,
    **options: Any,
) -> ONNXProgram:
    """Export the log-density of a PyMC model.

    Parameters
    ----------
    model
        The model.
    path
        File to write; none unless given.
    outputs
        Results of the file, any of

        - ``"logp"``, the log-density;
        - ``"dlogp"``, its gradient: one vector, or ``dlogp_<input>`` for each named input;
        - ``"d2logp"``, its Hessian, a matrix in the order of the vector; PyMC's
          ``compile_d2logp`` returns its negative unless told otherwise;
        - ``"hvp"``, the Hessian times the input ``direction``, in the layout of the gradient;
        - ``"pointwise"``, the terms of each observed variable, ``logp_<variable>``;
        - ``"values"``, the free variables in the other space: ``sigma`` in the file of an
          unconstrained density, ``sigma_log__`` in that of a constrained one;
        - ``"deterministics"``, all deterministics;
        - names of single variables: free ones as by ``"values"``, deterministics, and
          ``logp_<variable>`` of a random variable or potential.
    space
        ``"unconstrained"`` for the density of the transformed variables, as samplers use it, or
        ``"constrained"`` for that of the variables themselves.
    inputs
        ``"vector"`` for one input ``point`` of all continuous variables, or ``"named"`` for one
        input for each. Discrete variables are inputs of their own.
    data
        Which data containers become inputs, with axes of any size: ``"inputs"`` for all,
        ``"stored"`` for none, or names. The others are stored with the present values.
    jacobian
        Whether an unconstrained density has the terms of the transforms.
    propto
        Whether ``"logp"`` lacks the summands that depend on no free variable. Its derivatives are
        the same.
    batch
        Whether the file computes any number of points at once: each input of a free variable, and
        each output, has a leading axis ``point``.
    share_data
        Whether the metadata of the file have the ranges of the data and a sample of them, at most
        1,000 rows, for [its page](https://pytensor-onnx.github.io/pytensor-onnx/how-to/web.html).
    verify, options
        As in `export_onnx`: ``opset_version``, ``target``, ``assume_finite``,
        ``inline_functions``, ``providers``, ``session_options``.

    Returns
    -------
    ONNXProgram
        The model, verified at the initial point and beside it. The metadata ``pymc`` of the file
        is the JSON of `pytensor_onnx.pymc.provenance.provenance`.

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
    ...     x = pm.Data("x", [1.0, 2.0, 4.0])
    ...     mu, sigma = pm.Normal("mu"), pm.HalfNormal("sigma")
    ...     y = pm.Normal("y", mu, sigma, observed=x)
    >>> density = export_logp(model, outputs=["logp", "dlogp", "sigma"])
    >>> [value.name for value in density.inputs]
    ['point', 'x']
    >>> logp, dlogp, sigma = density([0.0, 0.0], [1.0, 2.0])
    >>> dlogp, sigma
    (array([3., 3.]), array(1.))
    """
    shared = ModelOptions.of(
        read_options(export_logp, path, verify, options),
        inputs,
        data=data,
        batch=batch,
        constrained=read_choice(space, SPACES, "space") == "constrained",
        jacobian=jacobian,
        propto=propto,
    )
    wanted = DensityOutputs(shared.graph_of(model), shared)
    return export_outputs(wanted, outputs, share_data=share_data)


def export_outputs(
    wanted: DensityOutputs, outputs: Sequence[str], *, share_data: bool = False
) -> ONNXProgram:
    """Export outputs of a model by their names."""
    names = read_strings(outputs, "outputs")
    graphs: dict[str, Variable] = {}
    for name in dict.fromkeys(names):
        for output, variable in wanted.named(name).items():
            if output in graphs and output in wanted.groups:
                raise shared_name(output)
            graphs[output] = variable
    graph, options = wanted.graph, wanted.options
    replaced = graph.of_point if options.vector else graph.of_values
    results = dict(zip(graphs, replaced(list(graphs.values())), strict=True))
    description = {name: getattr(options, name) for name in ("jacobian", "propto", "batch")}
    program = make_program(
        graph,
        wanted.inputs(names),
        results,
        options.export,
        description=description,
        details=Details(columns=columns_of_data(graph), share_data=share_data),
        batch=options.batch,
    )
    _advise(program, graph)
    return program


def _advise(program: ONNXProgram, graph: ModelGraph) -> None:
    """Add to the changes of a program what each call computes from data alone."""
    data = {str(v.name): v.get_value(borrow=True).shape for v in graph.containers}
    names = names_in_model(program)
    shapes = {file: data[name] for file, name in names.items() if name in data}
    division = divide(program.model, shapes)
    if division is None:
        return
    of_data = ", ".join(names[name] for name in division.names)
    advice = f"each call computes {division.nodes} of {of_data} alone: data='stored' folds them"
    conversion = program.conversion
    program.conversion = replace(conversion, changes=(*conversion.changes, Change(advice)))


class DensityOutputs:
    """The graphs of the outputs, by the names that the user gives."""

    groups: ClassVar[tuple[str, ...]] = GROUPS
    has_optional_point = False

    def __init__(self, graph: ModelGraph, options: ModelOptions) -> None:
        self.graph = graph
        self.options = options
        self.is_vector = options.vector
        self.directions = self._directions()

    @cached_property
    def logp(self) -> Variable:
        """The log-density."""
        return self.graph.density(jacobian=self.options.jacobian, propto=self.options.propto)

    @cached_property
    def gradients(self) -> list[Variable]:
        """The gradient with respect to each of the continuous values."""
        return self.graph.gradient(self.logp)

    @cached_property
    def variables(self) -> dict[str, Variable]:
        """The single variables that a file can compute, without its inputs."""
        graph = self.graph
        others = graph.unconstrained if graph.is_constrained else graph.constrained
        taken = {v.name for v in (graph.discrete if self.is_vector else graph.values)}
        values = {name: v for name, v in others.items() if name not in taken}
        return {**values, **graph.deterministics}

    def inputs(self, names: Sequence[str]) -> Inputs:
        """Return the inputs of a file of outputs."""
        given = Inputs()
        self.add_points(given, names)
        given.add_data(self.graph)
        return given

    def add_points(self, given: Inputs, names: Sequence[str]) -> None:
        """Add the inputs of each point."""
        graph, vector = self.graph, self.is_vector
        given.add_values(graph, vector=vector, optional=self.has_optional_point)
        if "hvp" in names:
            for variable, (_, start, axes) in zip(
                self.directions, continuous_inputs(graph, vector=vector), strict=True
            ):
                given.add(variable, np.ones_like(start), axes, free=True, of_point=True)

    def named(self, name: str) -> dict[str, Variable]:
        """Return the outputs that a name stands for."""
        graph = self.graph
        match name:
            case "logp":
                return {"logp": as_compiled([self.logp])[0]}
            case "dlogp":
                return self._laid_out("dlogp", self.gradients)
            case "d2logp":
                return {"d2logp": self._hessian()}
            case "hvp":
                vectors = graph.split(self.directions[0]) if self.is_vector else self.directions
                return self._laid_out("hvp", self._products(vectors))
            case "pointwise":
                return self._terms(graph.model.observed_RVs)
            case "values":
                return {k: v for k, v in self.variables.items() if k not in graph.deterministics}
            case "deterministics":
                return graph.deterministics
        terms = {f"logp_{v.name}": v for v in [*graph.model.basic_RVs, *graph.model.potentials]}
        if name in terms:
            return self._terms([terms[name]])
        if name in self.variables:
            return {name: self.variables[name]}
        raise unknown(name, "output", [*self.groups, *self.variables, *terms])

    def _terms(self, variables: Sequence[Variable]) -> dict[str, Variable]:
        terms = as_compiled(self.graph.terms(variables, jacobian=self.options.jacobian))
        return {f"logp_{v.name}": term for v, term in zip(variables, terms, strict=True)}

    def _laid_out(self, name: str, parts: Sequence[Variable]) -> dict[str, Variable]:
        """Return parts for each continuous value as one vector, or as one output each."""
        if self.is_vector:
            return {name: self.graph.join(parts)}
        names = [f"{name}_{value.name}" for value in self.graph.continuous]
        return dict(zip(names, parts, strict=True))

    def _products(self, vectors: Sequence[Variable]) -> list[Variable]:
        """Return the Hessian times a vector, which is given in parts as the result is."""
        pairs = zip(self.gradients, vectors, strict=True)
        return self.graph.derivatives(pt.add(pt.zeros(()), *(pt.sum(g * v) for g, v in pairs)))

    def _hessian(self) -> Variable:
        """Return the Hessian, whose rows are products with unit vectors."""
        graph = self.graph
        n = sum(value.size for value in graph.continuous)
        direction = graph.point.type()
        product = graph.join(self._products(graph.split(direction)))
        # A loop refuses named dimensions whose sizes become known after it is made.
        named = {v: tensor_of(v).type() for v in graph_inputs([product]) if is_named(v.type)}
        inputs = {v: v.type.filter_variable(tensor) for v, tensor in named.items()}
        (product,) = without_named(clone_replace([product], inputs))
        rows = pytensor.scan(
            lambda row: clone_replace(product, {direction: row}),
            sequences=[pt.eye(n, dtype=graph.point.type.dtype)],
            return_updates=False,
        )
        return clone_replace(rows, {tensor: tensor_of(v) for v, tensor in named.items()})

    def _directions(self) -> list[Variable]:
        names = [DIRECTION]
        if not self.is_vector:
            names = [f"{DIRECTION}_{value.name}" for value in self.graph.continuous]
        inputs = continuous_inputs(self.graph, vector=self.is_vector)
        return [
            pt.tensor(name, dtype=variable.type.dtype, shape=variable.type.shape)
            for name, (variable, _, _) in zip(names, inputs, strict=False)
        ]


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
        read_options(export_transforms, path, verify, options),
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
