"""Discrete variables of a model: summed out for NUTS, and drawn back for each of its draws.

The sums are those of pymc-extras, which is imported for models that need it.
"""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pymc as pm
import pytensor
import pytensor.tensor as pt
from pymc.model.fgraph import ModelDeterministic, fgraph_from_model, model_from_fgraph
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.random.basic import CategoricalRV
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.errors import ArgumentError
from pytensor_onnx.named_dims import without_named
from pytensor_onnx.pymc.model_graphs import ModelGraph

SUMMED = ("Bernoulli", "Categorical", "DiscreteUniform", "DiscreteMarkovChain")
"""Distributions that pymc-extras sums over."""

MOST_SUMMED = 3
"""Discrete variables of a model that is sampled by NUTS unless another sampler is asked for."""

PROBABILITIES = "probabilities"
VALUE = "value"
"""Endings of the names of the probabilities of a variable, and of their last dimension."""

_PAGE = "https://pytensor-onnx.github.io/pytensor-onnx/how-to/sampler.html#discrete-variables"


@dataclass(frozen=True, eq=False)
class Marginalized:
    """A model as NUTS takes it, and the variables that are drawn back.

    Attributes
    ----------
    original
        The model as it was given.
    model
        The model without discrete free variables, and without deterministics that depend on them.
    conditional
        The model with the distributions of the summed variables, given all others; None if there
        are none.
    summed
        Names and dimensions of these variables.
    """

    original: pm.Model
    model: pm.Model
    conditional: pm.Model | None = None
    summed: Mapping[str, Sequence[str | None]] = field(default_factory=dict)

    @classmethod
    def of(cls, model: pm.Model) -> Marginalized:
        """Sum the discrete free variables out of a model; one without them stays as it is.

        Raises
        ------
        ArgumentError
            If pymc-extras is not installed, or cannot sum over one of them.
        """
        discrete = discrete_variables(model)
        names = names_of_marginalized(model)
        if not discrete and not names:
            return cls(model, model)
        base = model
        if discrete:
            last = _without_dependents(model, discrete)
            base = _without(model, last, discrete)
            base = _summed(base, [rv for rv in discrete if rv not in last])
            _complete(base, model)
        names = names_of_marginalized(base)
        conditional = None
        if names:
            from pymc_extras.marginal import conditional as condition

            try:
                conditional = condition(base)
            except NotImplementedError:
                # A Laplace approximation, from which pymc-extras draws nothing.
                names = {}
        return cls(model, base, conditional, names)

    @property
    def draws(self) -> bool:
        """Whether variables are drawn back."""
        return self.copy is not None or self.conditional is not None

    @property
    def copy(self) -> pm.Model | None:
        """The model as NUTS takes it, None if it is the model that was given."""
        return self.model if self.model is not self.original else None

    @property
    def dims(self) -> dict[str, list[str | None]]:
        """The dimensions of all variables by name, with those of probabilities."""
        model = self.conditional or self.original
        found = {**self.original.named_vars_to_dims, **model.named_vars_to_dims}
        dims = {name: list(of_name) for name, of_name in found.items()}
        for name in self.summed:
            if name in dims or not model[name].type.ndim:
                of_values = [*dims.get(name, []), f"{name}_{VALUE}"]
                dims[f"{name}_{PROBABILITIES}"] = of_values
        return dims

    def variables(self, graph: ModelGraph) -> dict[str, Variable]:
        """Return all variables by name, as functions of the values of a graph of `model`.

        Those that are drawn back depend on the generators of the model.
        """
        known = {**graph.constrained, **self._summed_of(graph), **graph.deterministics}
        original = self.original
        names = [str(v.name) for v in original.free_RVs]
        names += [name for name in self.summed if name not in names]
        names += [str(v.name) for v in original.deterministics]
        rest = [name for name in names if name not in known]
        if rest:
            model = self.model
            given = {original[name]: x for name, x in known.items() if name in original.named_vars}
            given |= {rv: original.rvs_to_values[rv] for rv in original.observed_RVs}
            found = _replaced([original[name] for name in rest], given)
            known |= zip(rest, _replaced(found, _shared_of(original, model)), strict=True)
        return {name: known[name] for name in names}

    def probabilities(self, graph: ModelGraph) -> dict[str, Variable]:
        """Return the probabilities of the values of summed variables, given those of a graph.

        The names end with ``_probabilities``, and the values are on the last axis.
        """
        found: dict[str, Variable] = {}
        if self.conditional is not None:
            for name in self.summed:
                variable = probabilities_of(self.conditional[name])
                if variable is not None:
                    found[f"{name}_{PROBABILITIES}"] = variable
        return dict(zip(found, self._of_graph(graph, list(found.values())), strict=True))

    def _summed_of(self, graph: ModelGraph) -> dict[str, Variable]:
        if self.conditional is None:
            return {}
        variables = [self.conditional[name] for name in self.summed]
        return dict(zip(self.summed, self._of_graph(graph, variables), strict=True))

    def _of_graph(self, graph: ModelGraph, variables: Sequence[Variable]) -> list[Variable]:
        """Return variables of the conditional model as functions of the values of a graph."""
        if self.conditional is None:
            return list(variables)
        given = {self.conditional[name]: x for name, x in graph.constrained.items()}
        found = _replaced(variables, given)
        return _replaced(found, _shared_of(self.conditional, self.model))


def discrete_variables(model: pm.Model) -> list[Variable]:
    """Return the free variables of a model that are not continuous."""
    return [rv for rv in model.free_RVs if not rv.type.dtype.startswith("float")]


def names_of_marginalized(model: pm.Model) -> dict[str, tuple[str | None, ...]]:
    """Return names and dimensions of the variables that pymc-extras has summed out of a model.

    Variables of one that is summed out, too, come after it.
    """
    found: dict[str, tuple[str | None, ...]] = {}
    nodes = {v.owner: None for v in ancestors(model.basic_RVs) if v.owner is not None}
    ops = [node.op for node in nodes]
    while ops:
        op = ops.pop(0)
        if hasattr(op, "marginalized_name") and hasattr(op, "n_dependent_rvs"):
            found[op.marginalized_name] = tuple(op.marginalized_dims)
            ops += [node.op for node in op.fgraph.apply_nodes]
    return found


def has_drawn_back(model: pm.Model) -> bool:
    """Whether NUTS draws a model without some of its variables, which are drawn back."""
    return bool(discrete_variables(model) or names_of_marginalized(model))


def can_be_summed(model: pm.Model) -> bool:
    """Whether NUTS is the first choice for a model: it has few discrete variables, of finite sums.

    Each of several variables multiplies the terms of a sum.
    """
    discrete = discrete_variables(model)
    if not discrete:
        return True
    is_installed = importlib.util.find_spec("pymc_extras") is not None
    if not is_installed or len(discrete) > MOST_SUMMED:
        return False
    try:
        return bool(Marginalized.of(model).model.free_RVs)
    except ArgumentError:
        return False


def initvals_of(
    initvals: Mapping[Any, Any] | None, model: pm.Model, original: pm.Model
) -> dict[str, Any]:
    """Return the initial values, by name, that a model has a use for and its original has."""
    given = {str(getattr(key, "name", key)): x for key, x in (initvals or {}).items()}
    unused = original.named_vars.keys() - model.named_vars.keys()
    return {name: x for name, x in given.items() if name not in unused}


def advice_on(discrete: Iterable[Variable]) -> str:
    """Return the sentence that tells how to sample a model of discrete variables.

    Examples
    --------
    >>> with pm.Model() as model:
    ...     group, count = pm.Bernoulli("group", 0.5), pm.Poisson("count", 2.0)
    >>> advice_on([group])
    "sum them out by pymc_extras.marginal.marginalize(model, ['group'])"
    >>> print(advice_on([group, count]))
    count is Poisson, which pymc_extras.marginal.marginalize cannot sum out: ...
    """
    others = [rv for rv in discrete if _kind(rv) not in SUMMED]
    if others:
        named = ", ".join(f"{rv.name} is {_kind(rv)}" for rv in others)
        return (
            f"{named}, which pymc_extras.marginal.marginalize cannot sum out: sample the model by "
            f"pytensor_onnx.pymc.sample, or write it with a Categorical of as many values as count "
            f"({_PAGE})"
        )
    return (
        f"sum them out by pymc_extras.marginal.marginalize(model, {[rv.name for rv in discrete]})"
    )


def name_of_variable(name: str) -> str:
    """Return the name of the variable that probabilities are of.

    Examples
    --------
    >>> name_of_variable("group_probabilities")
    'group'
    """
    return name.removesuffix(f"_{PROBABILITIES}")


def probabilities_of(variable: Variable) -> TensorVariable | None:
    """Return the probabilities of the values of a random variable; None if it is not finite.

    Those of a Markov chain are of its state at each step.
    """
    node = variable.owner
    if node is not None and isinstance(node.op, Elemwise):
        # A Categorical and the least value of a DiscreteUniform.
        node = next((v.owner for v in node.inputs if v.owner is not None), None)
    if node is None:
        return None
    if isinstance(node.op, CategoricalRV):
        return node.op.dist_params(node)[0]
    if not is_chain(variable) or node.op.n_lags != 1:
        return None
    transitions, _, start, *_ = node.inputs
    first = probabilities_of(start)
    return None if first is None else _of_states(transitions, first)


def is_chain(variable: Variable) -> bool:
    """Return whether a variable is a DiscreteMarkovChain of pymc-extras."""
    node = variable.owner
    return node is not None and type(node.op).__name__ == "DiscreteMarkovChainRV"


def _of_states(transitions: Variable, first: Variable) -> TensorVariable:
    """Return the probabilities of the states of a chain at each step, on the last axis but one.

    The rows of states that the chain does not reach may be NaN.
    """
    transitions = pt.switch(pt.isnan(transitions), 0.0, transitions)

    def step(transition: Variable, before: Variable) -> Variable:
        return (before[..., None] * transition).sum(axis=-2)

    start = first[..., 0, :]
    states = pytensor.scan(
        step, [pt.moveaxis(transitions, -3, 0)], [start], return_updates=False, name="states"
    )
    return pt.moveaxis(pt.concatenate([start[None], states]), 0, -2)


def _kind(rv: Variable) -> str:
    """Return the name of a distribution."""
    return type(rv.owner.op).__name__.removesuffix("RV")


def _without_dependents(model: pm.Model, discrete: Sequence[Variable]) -> list[Variable]:
    """Return the discrete variables that the density of no other variable depends on."""
    found: list[Variable] = []
    for rv in reversed(discrete):
        others = [
            v for v in [*model.basic_RVs, *model.potentials] if v not in found and v is not rv
        ]
        if rv not in set(ancestors(others)):
            found.append(rv)
    return found


def _without(
    model: pm.Model, variables: Sequence[Variable], discrete: Sequence[Variable]
) -> pm.Model:
    """Return a copy without some variables, and without the deterministics of discrete ones."""
    rvs = model.basic_RVs
    dependent = [
        v for v in model.deterministics if not set(ancestors([v], rvs)).isdisjoint(discrete)
    ]
    # PyMC copies no model with initial values.
    view = object.__new__(type(model))
    none = dict.fromkeys(model.rvs_to_initial_values)
    view.__dict__.update({**model.__dict__, "rvs_to_initial_values": none})
    fgraph, memo = fgraph_from_model(view)
    for variable in [*dependent, *variables]:
        new = memo[variable]
        fgraph.remove_output(fgraph.outputs.index(new))
        if isinstance(new.owner.op, ModelDeterministic):
            fgraph.replace(new, new.owner.inputs[0])
    return model_from_fgraph(fgraph, mutate_fgraph=True)


def _complete(copy: pm.Model, model: pm.Model) -> None:
    """Give a copy the order and the initial values of the variables of a model."""
    order = {rv.name: i for i, rv in enumerate(model.free_RVs)}
    copy.free_RVs.sort(key=lambda rv: order[rv.name])
    for rv, value in model.rvs_to_initial_values.items():
        # A variable would belong to the graphs of the model.
        if rv.name in copy.named_vars and not isinstance(value, Variable):
            copy.rvs_to_initial_values[copy[rv.name]] = value


def _summed(model: pm.Model, discrete: Sequence[Variable]) -> pm.Model:
    """Return a model without discrete variables."""
    names = [str(rv.name) for rv in discrete]
    if not names:
        return model
    try:
        from pymc_extras.marginal import marginalize
    except ImportError as error:
        raise ArgumentError(
            f"the model has discrete variables: {', '.join(names)}. With pymc-extras they are "
            f"summed out, and drawn back: pip install 'pytensor-onnx[discrete]'"
        ) from error
    if any(_kind(rv) not in SUMMED for rv in discrete):
        raise ArgumentError(f"the model has discrete variables: {advice_on(discrete)}")

    def without(names: Sequence[str]) -> pm.Model:
        # PyTensor would log the reason, and go on.
        log = logging.getLogger("pytensor.graph.rewriting.basic")
        log.disabled = True
        try:
            with pytensor.config.change_flags(on_opt_error="raise"):
                return marginalize(model, names)
        finally:
            log.disabled = False

    try:
        summed = without(names)
    except (NotImplementedError, ValueError) as error:
        raise _refused(names, error, without) from error
    if left := discrete_variables(summed):
        # pymc-extras leaves a variable that no random variable depends on.
        reason = ValueError("no random variable depends on it, but a potential does")
        raise _refused([str(rv.name) for rv in left], reason, without)
    return summed


def _refused(
    names: Sequence[str], error: Exception, without: Callable[[Sequence[str]], pm.Model]
) -> ArgumentError:
    """Return the error for variables of finitely many values that cannot be summed out."""
    reasons: dict[str, Exception] = {}
    for name in names:
        try:
            without([name])
        except (NotImplementedError, ValueError) as of_name:
            reasons[name] = of_name
    reasons = reasons or {", ".join(names): error}
    told = "; ".join(
        f"{name} ({str(reason).rpartition('marginalizing them separately. ')[2].rstrip('. ')})"
        for name, reason in reasons.items()
    )
    is_missing = any(name.endswith("_unobserved") for name in reasons)
    advice = "give the rows with missing values variables of their own, or " if is_missing else ""
    return ArgumentError(
        f"the model has discrete variables, and pymc_extras.marginal.marginalize cannot sum these "
        f"out: {told}: {advice}sample the model by pytensor_onnx.pymc.sample ({_PAGE})"
    )


def _shared_of(copy: pm.Model, model: pm.Model) -> dict[Variable, Variable]:
    """Return the data and the lengths of dimensions of a model in place of those of its copy."""
    found = {v: model[str(v.name)] for v in copy.data_vars if v.name in model.named_vars}
    lengths = model.dim_lengths
    found |= {
        v: lengths[dim] for dim, v in copy.dim_lengths.items() if isinstance(v, SharedVariable)
    }
    return {old: new for old, new in found.items() if old is not new}


def _replaced(
    variables: Sequence[Variable], replacements: Mapping[Variable, Variable]
) -> list[Variable]:
    given = {old: old.type.filter_variable(new) for old, new in replacements.items()}
    return without_named(clone_replace(list(variables), given, rebuild_strict=False))
