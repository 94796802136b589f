"""The graph to export: constants in place of shared variables, shapes of the example inputs."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.replace import clone_replace

from pytensor_onnx.errors import InputError
from pytensor_onnx.named_dims import is_tensor, lower_named
from pytensor_onnx.random import is_generator, state_of
from pytensor_onnx.rewriting.generators import draw_from_states, with_states
from pytensor_onnx.rewriting.keep_origins import KeepOrigins


@dataclass
class Source:
    """What is exported: a graph, and the values of its variables that are not inputs."""

    inputs: list[Variable]
    results: list[Variable]
    updates: dict[Variable, Variable]
    values: dict[Variable, Any] = field(default_factory=dict)
    returns_single: bool = False
    name: str | None = None
    dynamic: list[Collection[int]] = field(default_factory=list)


def reference_graph(
    source: Source, example_inputs: Sequence[Any] | None, static_state: bool = False
) -> FunctionGraph:
    """Return the graph to export: constants in place of shared variables, shapes specialised."""
    inputs = [*source.inputs, *source.updates]
    replacements: dict[Variable, Variable] = {
        variable: _constant(variable, value)
        for variable, value in source.values.items()
        if variable not in source.updates and has_value(variable)
    }
    # A loop cannot be made again from them: it refuses a state that is known to have a size of one
    # after a step, but not before.
    late = {v: (v.type(), c) for v, c in replacements.items() if _knows_more(c, v)}
    replacements.update((variable, stand_in) for variable, (stand_in, _) in late.items())
    for i, variable in enumerate(inputs):
        new = variable.type()
        if example_inputs is not None and i < len(source.inputs):
            new = _specialised(variable, example_inputs[i], source.dynamic[i])
        elif static_state and variable in source.updates and is_tensor(variable.type):
            new = variable.type.clone(shape=np.shape(source.values[variable]))()
        new.name = variable.name
        new.tag = variable.tag
        replacements[variable] = inputs[i] = new
    results = clone_replace(
        [*source.results, *source.updates.values()],
        replacements,
        rebuild_strict=example_inputs is None and not static_state,
    )
    stand_ins = [stand_in for stand_in, _ in late.values()]
    fgraph = FunctionGraph([*inputs, *stand_ins], results, clone=False)
    for stand_in, constant in late.values():
        fgraph.replace(stand_in, constant, import_missing=True)
        fgraph.remove_input(fgraph.inputs.index(stand_in))
    fgraph.attach_feature(KeepOrigins())
    lower_named(fgraph)
    draw_from_states.rewrite(fgraph)
    return with_states(fgraph)


def has_value(variable: Variable) -> bool:
    """Return whether the value of a shared variable can be part of a model."""
    return is_tensor(variable.type) or is_generator(variable)


def warn_of_constant_draws(source: Source) -> None:
    """Warn of generators whose next state goes nowhere: PyTensor, too, draws the same again."""
    names = [str(v) for v in source.values if is_generator(v) and v not in source.updates]
    if names:
        warnings.warn(
            f"{', '.join(names)}: every run of the model draws the same, as the generator has no "
            "update. Give its next state in updates={rng: next_rng}",
            UserWarning,
            stacklevel=5,
        )


def state_value(variable: Variable, value: Any) -> np.ndarray:
    """Return the value of a shared variable as the model holds it, the state of a generator."""
    return state_of(value) if is_generator(variable) else np.asarray(value)


def _constant(variable: Variable, value: Any) -> Constant:
    if is_generator(variable):
        return Constant(variable.type, value, name=variable.name)
    return variable.type.constant_type(variable.type, np.asarray(value), name=variable.name)


def _knows_more(constant: Constant, variable: Variable) -> bool:
    """Return whether a constant is known to have sizes of one where its variable is not."""
    if is_generator(variable):
        return False
    return [n == 1 for n in constant.type.shape] != [n == 1 for n in variable.type.shape]


def _specialised(variable: Variable, example: Any, dynamic: Collection[int]) -> Variable:
    """Return a variable of the shape of an array, but for the axes that are to be dynamic."""
    if is_generator(variable):
        return variable.type()
    try:
        shape = variable.type.filter(example, allow_downcast=True).shape
    except (TypeError, ValueError) as error:
        raise InputError(f"the example of input {variable} does not fit it: {error}") from error
    kept = {axis % len(shape) for axis in dynamic if shape}
    sizes = [
        known if axis in kept else size
        for axis, (size, known) in enumerate(zip(shape, variable.type.shape, strict=True))
    ]
    return variable.type.clone(shape=sizes)()
