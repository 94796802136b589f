"""Graphs of a model."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import pymc as pm
import pytensor
import pytensor.scalar as ps
import pytensor.tensor as pt
from pymc.logprob.basic import transformed_conditional_logp
from pymc.logprob.utils import replace_rvs_by_values
from pymc.pytensorf import replace_vars_in_graphs, resolve_shapes, rewrite_pregrad
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.gradient import grad
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors, toposort
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.basic import Alloc
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.math import Sum
from pytensor.tensor.random.basic import NormalRV
from pytensor.tensor.shape import Shape, Shape_i, SpecifyShape

from pytensor_onnx.changes import Change
from pytensor_onnx.named_dims import is_named, tensor_of, without_named
from pytensor_onnx.operators.dims import Dims
from pytensor_onnx.pymc.linear_likelihoods import normal_likelihood
from pytensor_onnx.pymc.model_arguments import check_data, check_model, read_data
from pytensor_onnx.pymc.random_variables import replace_checks
from pytensor_onnx.rewriting import stabilised
from pytensor_onnx.rewriting.elementwise.number_widths import widen_numbers
from pytensor_onnx.rewriting.engine.predicates import applies, filling_of

POINT = "point"


class ModelGraph:
    """The log-density and the variables of a PyMC model as PyTensor graphs.

    Graphs that its properties return are functions of the values of the model and of its shared
    data. `of_values` and `of_point` replace the data by inputs, and the latter all continuous
    values by one vector; give them all graphs at once, so that these share intermediate results.

    Parameters
    ----------
    model
        The model.
    constrained
        Whether the values are those of the random variables themselves; otherwise they are
        transformed to all of the real numbers.
    data
        Which data containers become inputs: ``"inputs"`` for all, ``"stored"`` for none, or names.
    data_dims
        Dimensions of the inputs of data containers by name, numbers or names of axes, where they
        are known.
    lengths
        Lengths of dimensions that no input has, in place of those of the model.

    Attributes
    ----------
    values : list of FreeValue
        Arguments of the density.
    containers : dict of SharedVariable to Variable
        Inputs that replace the data containers; they are tensors.
    changes : list of Change
        How the density differs from that of PyMC.

    Examples
    --------
    >>> import pymc as pm
    >>> with pm.Model() as model:
    ...     x = pm.Data("x", [1.0, 2.0, 3.0])
    ...     sigma = pm.HalfNormal("sigma")
    ...     y = pm.Normal("y", 0.0, sigma, observed=x)
    >>> graph = ModelGraph(model)
    >>> [value.name for value in graph.values], graph.start
    (['sigma_log__'], array([0.]))
    >>> logp, sigma = graph.of_point([graph.logp, graph.constrained["sigma"]])
    >>> float(sigma.eval({graph.point: [0.0]}, mode="FAST_COMPILE"))
    1.0
    """

    def __init__(
        self,
        model: pm.Model,
        *,
        constrained: bool = False,
        data: str | Iterable[str] = "inputs",
        data_dims: Mapping[str, Dims] | None = None,
        lengths: Mapping[str, int] | None = None,
    ) -> None:
        check_model(model)
        self.model = model
        self._lengths = lengths or {}
        self.is_constrained = constrained
        self.data_dims = data_dims or {}
        self.changes: list[Change] = []
        self.containers = {v: self._input_for(v) for v in read_data(model, data)}
        self._stored = {
            v: pytensor.shared(v.get_value(), v.name, shape=v.type.shape)
            for v in model.data_vars
            if isinstance(v, SharedVariable) and is_named(v.type) and v not in self.containers
        }
        self._arguments = {
            rv: rv.type(name=rv.name) if constrained else model.rvs_to_values[rv]
            for rv in model.free_RVs
        }
        self._transforms = {
            rv: None if constrained and rv in self._arguments else transform
            for rv, transform in model.rvs_to_transforms.items()
        }

    @cached_property
    def values(self) -> list[FreeValue]:
        """The free variables, in the order of the model."""
        starts = initial_point(self.model, self.is_constrained)
        sizes = self._sizes(starts)
        return [
            FreeValue(
                name=str(argument.name),
                variable=argument,
                rv=rv,
                transform=getattr(self.model.rvs_to_transforms[rv], "name", ""),
                start=starts[rv],
                sizes=sizes[rv],
            )
            for rv, argument in self._arguments.items()
        ]

    @property
    def continuous(self) -> list[FreeValue]:
        """The values with respect to which the density has a gradient."""
        return [value for value in self.values if value.is_continuous]

    @property
    def discrete(self) -> list[FreeValue]:
        """Discrete values, which stay arguments of their own beside the point."""
        return [value for value in self.values if not value.is_continuous]

    @cached_property
    def point(self) -> Variable:
        """The vector of all continuous values."""
        sizes = [value.size for value in self.continuous]
        known = [n for n in sizes if isinstance(n, int)]
        length = sum(known) if len(known) == len(sizes) else None
        dtypes = [value.start.dtype for value in self.continuous]
        dtype = np.result_type(*dtypes) if dtypes else "float64"
        return pt.tensor(POINT, dtype=str(dtype), shape=(length,))

    @property
    def start(self) -> np.ndarray:
        """The initial point of the model, as a vector."""
        return self.raveled({value.name: value.start for value in self.continuous})

    def raveled(self, values: Mapping[str, Any]) -> np.ndarray:
        """Return the values of the continuous variables by name as a vector."""
        parts = [np.ravel(values[value.name]) for value in self.continuous]
        return np.concatenate([np.empty(0, self.point.type.dtype), *parts])

    def terms(
        self, variables: Sequence[Variable] | None = None, *, jacobian: bool = True
    ) -> list[Variable]:
        """Return the elementwise terms of the log-density.

        Parameters
        ----------
        variables
            Random variables and potentials of the model; all unless given.
        jacobian
            Whether to count the change of volume by the transforms.
        """
        model = self.model
        wanted = variables if variables is not None else [*model.basic_RVs, *model.potentials]
        potentials = [v for v in wanted if v in model.potentials]
        rvs = [v for v in wanted if v not in model.potentials]
        terms = dict(zip(potentials, self.of_variables(potentials), strict=True))
        if rvs:
            logps = transformed_conditional_logp(
                rvs=rvs,
                rvs_to_values={**model.rvs_to_values, **self._arguments},
                rvs_to_transforms=self._transforms,
                jacobian=jacobian,
            )
            terms.update(zip(rvs, logps, strict=True))
        check_data(list(terms.values()))
        return without_named([terms[v] for v in wanted])

    def density(self, *, jacobian: bool = True, propto: bool = False) -> Variable:
        """Return the log-density.

        Parameters
        ----------
        jacobian
            Whether to count the change of volume by the transforms.
        propto
            Whether to drop the summands that depend on no free variable.
        """
        reduced = self.reduced
        others = [v for v in (*self.model.basic_RVs, *self.model.potentials) if v not in reduced]
        terms = [*self.terms(others, jacobian=jacobian), *reduced.values()]
        if propto:
            terms = drop_constants(terms, [value.variable for value in self.values])
        terms = [pt.sum(term) for term in terms]
        return terms[0] if len(terms) == 1 else pt.add(*terms) if terms else pt.zeros(())

    @cached_property
    def reduced(self) -> dict[Variable, Variable]:
        """Log-likelihoods of observed variables that cost less as a whole than by observation."""
        starts = {value.variable: value.start for value in self.values}
        changing = self._data_replacements().keys() - self._stored.keys()
        found = {}
        for rv in self.model.observed_RVs:
            if not isinstance(rv.owner.op, NormalRV):
                continue
            mean, sigma = self.of_variables(rv.owner.op.dist_params(rv.owner))
            value = self.model.rvs_to_values[rv]
            reduced = normal_likelihood(value, mean, sigma, starts)
            if reduced is None:
                continue
            n_rows, n = f"{reduced.n_rows:,} rows", f"{reduced.n_squares:,}"
            if changing.isdisjoint(ancestors([value, mean, sigma])):
                found[rv] = reduced.likelihood
                text = f"squares of {rv.name}: sums of {n_rows} are those of {n}"
            else:
                text = f"squares of {rv.name}: data='stored' sums {n} in place of {n_rows}"
            self.changes.append(Change(text))
        return found

    @cached_property
    def logp(self) -> Variable:
        """The log-density: 0-d, with the terms of the transforms in the unconstrained space."""
        return self.density()

    def gradient(self, logp: Variable) -> list[Variable]:
        """Return the gradient of a log-density with respect to each of the continuous values.

        The rewrites that PyMC runs before a gradient change a copy: they lose digits of the
        log-density itself in the tails.
        """
        copy = FunctionGraph(outputs=[logp], clone=True, copy_inputs=False)
        widen_numbers.rewrite(copy)
        return self.derivatives(rewrite_pregrad(copy.outputs[0]))

    def derivatives(self, cost: Variable) -> list[Variable]:
        """Return the derivatives by each of the continuous values, without any rewrites."""
        wrt = [value.variable for value in self.continuous]
        gradients = grad(cost, wrt, disconnected_inputs="ignore") if wrt else []
        return [tensor_of(g) for g in gradients]

    def of_variables(self, variables: Sequence[Variable]) -> list[Variable]:
        """Return variables of the model as functions of its values."""
        return list(
            replace_rvs_by_values(
                list(variables),
                rvs_to_values={**self.model.rvs_to_values, **self._arguments},
                rvs_to_transforms=self._transforms,
            )
        )

    @cached_property
    def constrained(self) -> dict[str, Variable]:
        """The free random variables by name, as functions of the values."""
        rvs = self.model.free_RVs
        return dict(zip([str(v.name) for v in rvs], self.of_variables(rvs), strict=True))

    @cached_property
    def unconstrained(self) -> dict[str, Variable]:
        """The transformed values by name, as functions of the values."""
        model = self.model
        names = [str(model.rvs_to_values[rv].name) for rv in model.free_RVs]
        if not self.is_constrained:
            return dict(zip(names, [v.variable for v in self.values], strict=True))
        forward = [
            argument
            if (transform := model.rvs_to_transforms[rv]) is None
            else transform.forward(argument, *rv.owner.inputs)
            for rv, argument in self._arguments.items()
        ]
        return dict(zip(names, replace_vars_in_graphs(forward, self._arguments), strict=True))

    @cached_property
    def deterministics(self) -> dict[str, Variable]:
        """The deterministics by name, as functions of the values."""
        wanted = self.model.deterministics
        return dict(zip([str(v.name) for v in wanted], self.of_variables(wanted), strict=True))

    def of_values(self, graphs: Sequence[Variable]) -> list[Variable]:
        """Return graphs of the inputs in `containers`, without errors for invalid parameters.

        They are tensors, also those of variables with named dimensions.
        """
        replaced = without_named(_replaced(graphs, self._data_replacements()))
        return replace_checks(replaced)

    def of_point(self, graphs: Sequence[Variable]) -> list[Variable]:
        """Return graphs of `point` in the place of the continuous values."""
        parts = {
            value.variable: value.variable.type.filter_variable(part)
            for value, part in zip(self.continuous, self.split(self.point), strict=True)
        }
        return self.of_values(_replaced(graphs, parts))

    def split(self, vector: Variable) -> list[Variable]:
        """Return the parts of a vector that belong to the continuous values, in their shapes."""
        parts = []
        offset: Size = 0
        for value in self.continuous:
            part = vector[offset : offset + value.size]
            parts.append(part.reshape(value.sizes, ndim=len(value.sizes)).astype(value.start.dtype))
            offset = offset + value.size
        return parts

    def join(self, parts: Sequence[Variable]) -> Variable:
        """Return parts for the continuous values as one vector."""
        dtype = self.point.type.dtype
        vectors = [tensor_of(p).ravel() for p in parts]
        return pt.concatenate(vectors).astype(dtype) if vectors else pt.zeros((0,), dtype=dtype)

    @property
    def data_tensors(self) -> dict[Variable, Variable]:
        """Replacements of the containers: inputs, and tensors for stored named dimensions."""
        tensors = {**self.containers, **self._stored}
        return {v: v.type.filter_variable(tensor) for v, tensor in tensors.items()}

    def _input_for(self, container: SharedVariable) -> Variable:
        """Return the input that replaces a data container."""
        name, tensor = str(container.name), tensor_of(container)
        known = self.data_dims.get(name, tensor.type.shape)
        shape = [n if isinstance(n, int) else None for n in known]
        return tensor.type.clone(shape=shape)(name=name)

    def _data_replacements(self) -> dict[Variable, Variable]:
        """Return the inputs for the containers, and their sizes for the lengths of dimensions."""
        replacements = self.data_tensors
        for container, tensor in self.containers.items():
            dims = self.model.named_vars_to_dims.get(str(container.name), ())
            for axis, dim in enumerate(dims):
                length = self.model.dim_lengths.get(dim)
                if isinstance(length, SharedVariable):
                    replacements.setdefault(length, tensor.shape[axis].astype(length.type.dtype))
        for dim, known in self._lengths.items():
            length = self.model.dim_lengths[dim]
            replacements.setdefault(length, pt.constant(known, dtype=length.type.dtype))
        return replacements

    def _sizes(self, starts: Mapping[Variable, np.ndarray]) -> dict[Variable, tuple[Size, ...]]:
        """Return the sizes of the values; sizes that depend on inputs are symbolic."""
        known = {rv: tuple(start.shape) for rv, start in starts.items()}
        if not self.containers:
            return known
        replacements = self._data_replacements().keys() - self._stored.keys()
        shapes = {rv: self._symbolic_value(rv).shape for rv in known if known[rv]}
        resolved = dict(zip(shapes, resolve_shapes(list(shapes.values())), strict=True))
        sizes: dict[Variable, tuple[Size, ...]] = {}
        for rv, shape in known.items():
            symbolic = [resolved[rv][axis] for axis in range(len(shape))]
            symbolic = list(resolve_shapes(symbolic)) if symbolic else []
            sizes[rv] = tuple(
                graph if not replacements.isdisjoint(ancestors([graph])) else size
                for size, graph in zip(shape, symbolic, strict=True)
            )
        return sizes

    def _symbolic_value(self, rv: Variable) -> Variable:
        transform = None if self.is_constrained else self.model.rvs_to_transforms[rv]
        value = rv if transform is None else transform.forward(rv, *rv.owner.inputs)
        return tensor_of(value)


def as_compiled(logps: Sequence[Variable]) -> list[Variable]:
    """Return log-densities as PyMC's compiled functions of these alone compute them."""
    return stabilised(replace_checks(logps))


def _replaced(
    graphs: Sequence[Variable], replacements: Mapping[Variable, Variable]
) -> list[Variable]:
    return list(clone_replace(list(graphs), dict(replacements), rebuild_strict=False))


type Size = int | Variable


@dataclass(frozen=True)
class FreeValue:
    """A free variable of a model as an argument of the density.

    Attributes
    ----------
    name
        Name of the argument: that of the transformed value, such as ``sigma_log__``, or of the
        variable itself where the space is constrained or there is no transform.
    variable
        The argument in graphs of `ModelGraph`.
    rv
        The random variable of the model.
    transform
        Name of the transform between the two, empty without one.
    start
        Value at the initial point of the model.
    sizes
        Sizes of the axes: numbers, or graphs of the data on which they depend.
    """

    name: str
    variable: Variable
    rv: Variable
    transform: str
    start: np.ndarray
    sizes: tuple[Size, ...]

    @property
    def is_continuous(self) -> bool:
        """Whether the density has a derivative with respect to the value."""
        return self.start.dtype.kind == "f"

    @property
    def open_axes(self) -> list[int]:
        """The axes whose size depends on data."""
        return [axis for axis, n in enumerate(self.sizes) if not isinstance(n, int)]

    @property
    def size(self) -> Size:
        """Number of elements."""
        return prod(self.sizes)


def initial_point(model: pm.Model, constrained: bool) -> dict[Variable, np.ndarray]:
    """Return the initial value of each free variable, in one of the spaces."""
    make = model._make_initial_point(return_transformed=not constrained)
    values = make(0)
    found = {}
    for rv, value in zip(model.free_RVs, values.values(), strict=True):
        dtype = (rv if constrained else model.rvs_to_values[rv]).type.dtype
        found[rv] = np.asarray(value, dtype)
    return found


_OF_FIRST_INPUT = (Sum, DimShuffle, CheckAndRaise, SpecifyShape, Alloc)


def drop_constants(terms: Sequence[Variable], parameters: Collection[Variable]) -> list[Variable]:
    """Return log-densities without the summands that depend on no parameter.

    Summands are found below sums, differences, multiples by constants and checks. Checks stay, and
    so do infinite constants: data that have no density still have none. A constant stays, too,
    where parameters decide whether it counts.

    Parameters
    ----------
    terms
        The log-densities.
    parameters
        The variables on which a summand must depend.

    Examples
    --------
    >>> x, y = pt.scalar("x"), pt.vector("y")
    >>> (term,) = drop_constants([2 * (x * y - pt.gammaln(y + 1) - 0.5)], [x])
    >>> term.eval({x: 3.0, y: [1.0, 2.0]}, mode="FAST_COMPILE")
    array([ 6., 12.])
    """
    nodes = list(toposort(list(terms)))
    # A constant that a check or an infinite branch is behind cannot be dropped as a whole.
    dependent, guarded = set(parameters), set[Variable]()
    for node in nodes:
        if not isinstance(node.op, Shape | Shape_i) and not dependent.isdisjoint(node.inputs):
            dependent.update(node.outputs)
        if _is_guard(node) or not guarded.isdisjoint(node.inputs):
            guarded.update(node.outputs)
    kept = dependent | guarded
    summands = set(terms)
    for node in reversed(nodes):
        if not summands.isdisjoint(node.outputs) and not kept.isdisjoint(node.outputs):
            summands.update(node.inputs[i] for i in _summands_of(node, dependent, kept))
    reduced: dict[Variable, Variable] = {
        v: pt.zeros_like(v) for v in summands if v not in kept and not _is_infinite(v)
    }
    for node in nodes:
        (variable, *_) = node.outputs
        if variable in summands and variable in kept:
            places = _summands_of(node, dependent, kept)
            inputs = [reduced.get(v, v) if i in places else v for i, v in enumerate(node.inputs)]
            if inputs != node.inputs:
                reduced[variable] = node.clone_with_new_inputs(inputs).outputs[0]
    return [reduced.get(term, term) for term in terms]


def _summands_of(
    node: Apply, dependent: Collection[Variable], kept: Collection[Variable]
) -> list[int]:
    """Return the positions of the inputs whose constants are constants of the result."""
    if isinstance(node.op, _OF_FIRST_INPUT):
        return [0]
    if not applies(node):
        return []
    inputs = node.inputs
    match node.op.scalar_op:
        case ps.Add() | ps.Sub() | ps.Neg():
            return list(range(len(inputs)))
        case ps.Mul():
            factors = [i for i, v in enumerate(inputs) if v in kept]
            return factors if len(factors) == 1 else []
        case ps.TrueDiv():
            return [] if inputs[1] in dependent else [0]
        case ps.Second():
            return [1]
        case ps.Switch():
            branches = [i for i in (1, 2) if not _is_infinite(inputs[i])]
            # Constants of two branches differ, where the parameters decide between them.
            return branches if inputs[0] not in dependent or len(branches) == 1 else []
    return []


def _is_guard(node: Apply) -> bool:
    """Whether a result is minus infinity, or an error, for invalid parameters or values."""
    return isinstance(node.op, CheckAndRaise) or (
        applies(node, ps.Switch) and any(map(_is_infinite, node.inputs[1:]))
    )


def _is_infinite(variable: Variable) -> bool:
    """Whether a variable is a constant without a finite value."""
    value = filling_of(variable)
    return value is not None and not np.isfinite(value)
