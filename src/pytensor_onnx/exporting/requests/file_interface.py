"""Inputs and outputs of a file, and the metadata about rows."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import onnx_ir as ir
from pytensor.compile.mode import Mode
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.traversal import graph_inputs
from pytensor.graph.type import Type
from pytensor.tensor.random.type import RandomType

from pytensor_onnx.conversion import names_of
from pytensor_onnx.encodings import Boundary, encoding_of
from pytensor_onnx.encodings.generators import in_dtype, in_small_words
from pytensor_onnx.encodings.registry import tensor_types
from pytensor_onnx.errors import ArgumentError, PyTensorONNXError, choose_of
from pytensor_onnx.exporting.requests.arguments import Arguments
from pytensor_onnx.exporting.requests.output_names import check_names
from pytensor_onnx.exporting.requests.signature import Signature
from pytensor_onnx.exporting.requests.state_files import State, values_as_text
from pytensor_onnx.named_dims import is_tensor
from pytensor_onnx.operators.dims import dims_of
from pytensor_onnx.rewriting.engine.walkers import KeepOrigins
from pytensor_onnx.rewriting.random import with_noise_inputs
from pytensor_onnx.running.linker import ONNX
from pytensor_onnx.user_code import NOT_OF_USERS, user_line
from pytensor_onnx_scoring.interface import BATCH_AXIS, FEATURE_NAMES, ROW_BYTES

Updates = Mapping[SharedVariable, Variable] | Iterable[tuple[SharedVariable, Variable]]


@dataclass
class Source:
    """Graph to export, with the values of its variables that are not inputs."""

    inputs: list[Variable]
    results: list[Variable]
    updates: dict[Variable, Variable]
    values: dict[Variable, Any] = field(default_factory=dict)
    returns_single: bool = False
    name: str | None = None
    dynamic: list[Collection[int]] = field(default_factory=list)
    is_as_in_file: bool = False
    maps: dict[int, Any] = field(default_factory=dict)
    encoder: Any = None


@cache
def _mode_of_files() -> Mode:
    """Return the mode whose rewrites leave the functions of a file written out.

    ``1 / (1 + exp(x))`` is exact down to the smallest normal number, and has two nodes less than
    the function that is exact below it. ``log(1 + x)`` and ``exp(x) - 1`` are two nodes, and no
    operator has the functions that are exact near zero. Runtimes find a GELU by its cube.
    """
    logistic = ("local_exp_over_1_plus_exp", "local_reciprocal_1_plus_exp")
    powers = ("local_pow_to_nested_squaring", "guarded_local_pow_to_nested_squaring")
    return ONNX.excluding(*logistic, *powers, "local_expm1", "guarded_local_log1p")


def check_inputs(inputs: Sequence[Variable], results: Sequence[Variable]) -> list[SharedVariable]:
    """Return the shared variables of a graph; all other inputs must be given."""
    given = set(inputs)
    if len(given) != len(inputs):
        raise PyTensorONNXError("a variable stands more than once in the list of inputs")
    free = [v for v in graph_inputs(results, blockers=given) if v not in given]
    missing = [v for v in free if not isinstance(v, Constant | SharedVariable)]
    if missing:
        listing = "\n".join(f"- {v} of type {v.type}  {user_line(v)}".rstrip() for v in missing)
        raise PyTensorONNXError(
            f"the outputs depend on variables that are not among the inputs:\n{listing}"
        )
    return [v for v in free if isinstance(v, SharedVariable)]


def read_updates(updates: Updates | None) -> dict[SharedVariable, Variable]:
    """Return the new values of shared variables, converted to their types."""
    values: dict[SharedVariable, Variable] = {}
    for variable, new in dict(updates or {}).items():
        if not isinstance(variable, SharedVariable):
            raise ArgumentError(
                f"updates give new values to shared variables, and {variable} is none: "
                "updates={shared: new_value}"
            )
        values[variable] = new if isinstance(new, Variable) else variable.type.filter_variable(new)
    problems = [
        f"- {variable} of type {variable.type} is updated by a value of type {new.type}"
        for variable, new in values.items()
        if _differ(variable.type, new.type)
    ]
    if problems:
        listing = "\n".join(problems)
        raise PyTensorONNXError(f"updates change the type of their variables:\n{listing}")
    return values


def _differ(type_: Type, new: Type) -> bool:
    """Return whether an update has a type that its shared variable cannot hold."""
    if is_tensor(type_) and is_tensor(new):
        return bool(new.dtype != type_.dtype or new.ndim != type_.ndim)
    return encoding_of(type_) is not None and not type_.is_super(new)


def warn_of_stored_values(source: Source) -> None:
    """Warn of shared values that become constants, if their encoding asks for it."""
    texts: dict[str, list[str]] = {}
    for variable in source.values:
        encoding = encoding_of(variable.type)
        if encoding is not None and encoding.warning_if_stored and variable not in source.updates:
            texts.setdefault(encoding.warning_if_stored, []).append(str(variable))
    for text, names in texts.items():
        warnings.warn(f"{', '.join(names)}: {text}", UserWarning, skip_file_prefixes=NOT_OF_USERS)


@dataclass(frozen=True)
class Interface:
    """Names and types of the inputs, results and states of a source.

    In the graph and in the model, states follow the inputs, and their next values the results.
    """

    inputs: list[str]
    results: list[str]
    states: list[str]
    given: Boundary
    returned: Boundary
    state: Boundary
    returns_single: bool

    @classmethod
    def of(cls, source: Source, result_names: Sequence[str] | None) -> Interface:
        """Return the interface of a source, whose results may have names of their own."""
        inputs = names_of(source.inputs, "input")
        states = [v.name or f"state_{i}" for i, v in enumerate(source.updates)]
        check_names(result_names, source.results, {*inputs, *states})
        return cls(
            inputs,
            list(result_names or names_of(source.results, "output")),
            states,
            Boundary.of(source.inputs),
            Boundary.of(source.results),
            Boundary.of(source.updates),
            source.returns_single,
        )

    def part(self, inputs: Sequence[int], results: Sequence[int], *, single: bool) -> Interface:
        """Return the interface of some of the inputs and results, and of all states."""
        return replace(
            self,
            inputs=[self.inputs[i] for i in inputs],
            results=[self.results[i] for i in results],
            given=Boundary(tuple(self.given.types[i] for i in inputs)),
            returned=Boundary(tuple(self.returned.types[i] for i in results)),
            returns_single=single,
        )

    @property
    def next_states(self) -> list[str]:
        """The names of the next values of the states."""
        return [f"{name}_next" for name in self.states]

    @property
    def input_tensors(self) -> list[str]:
        """The names wanted for the inputs of the model."""
        return [*self.given.names(self.inputs), *self.state.names(self.states)]

    @property
    def output_tensors(self) -> list[str]:
        """The names wanted for the outputs of the model."""
        return [*self.returned.names(self.results), *self.state.names(self.next_states)]

    def rewritten(self, reference: FunctionGraph, *, is_as_in_file: bool = False) -> FunctionGraph:
        """Return a rewritten copy of a graph, whose last outputs update its last inputs."""
        fgraph = reference.clone(check_integrity=False)
        fgraph.update_mapping = {
            self.returned.width + i: self.given.width + i for i in range(self.state.width)
        }
        (_mode_of_files() if is_as_in_file else ONNX).optimizer.rewrite(fgraph)
        return fgraph

    @property
    def has_generator_states(self) -> bool:
        """Whether a state is that of a random generator."""
        return any(isinstance(type_, RandomType) for type_ in self.state.types)

    @property
    def has_generators(self) -> bool:
        """Whether an input, a result or a state is a random generator."""
        types = (*self.given.types, *self.returned.types, *self.state.types)
        return any(isinstance(type_, RandomType) for type_ in types)

    def in_small_words(
        self, fgraph: FunctionGraph, state: Sequence[np.ndarray]
    ) -> tuple[FunctionGraph, list[np.ndarray]]:
        """Return a graph and values whose generators are numbers of 16 bits."""
        places = _generators(self.state)
        changed = in_small_words(
            fgraph, _generators(self.given + self.state), _generators(self.returned + self.state)
        )
        changed.attach_feature(KeepOrigins())
        return changed, [in_dtype(v, "int32") if i in places else v for i, v in enumerate(state)]

    def states_of(self, model: ir.Model, values: Sequence[np.ndarray]) -> tuple[State, ...]:
        """Return the states of the model: names, and values before the first call."""
        inputs = model.graph.inputs[self.given.width :]
        outputs = model.graph.outputs[self.returned.width :]
        return tuple(
            State(str(now.name), str(then.name), value)
            for now, then, value in zip(inputs, outputs, values, strict=True)
        )

    def describe(
        self, model: ir.Model, states: Sequence[State], *, stores_values: bool = False
    ) -> None:
        """Write the states, their values if asked, and the encoded values into the metadata."""
        encodings = self._encodings(model)
        if states:
            model.metadata_props["state"] = json.dumps({s.name: s.next_name for s in states})
            if stores_values:
                model.metadata_props["state_values"] = values_as_text(states)
        if any(encodings.values()):
            model.metadata_props["encodings"] = json.dumps(encodings)

    def signature(self, model: ir.Model) -> Signature:
        """Return the signature of the program."""
        names = self.given.value_names(self.inputs, _names(model.graph.inputs))
        return Signature(self.given, self.returned, names, self.returns_single)

    def _encodings(self, model: ir.Model) -> dict[str, Any]:
        """Describe the inputs and outputs of the model that are parts of encoded values."""
        inputs, outputs = self.given + self.state, self.returned + self.state
        return {
            "inputs": inputs.described([*self.inputs, *self.states], _names(model.graph.inputs)),
            "outputs": outputs.described(
                [*self.results, *self.next_states], _names(model.graph.outputs)
            ),
        }


def _generators(boundary: Boundary) -> list[int]:
    """Return the positions of the states of generators among tensors."""
    kinds = [type_ for type_ in boundary.types for _ in tensor_types(type_)]
    return [i for i, kind in enumerate(kinds) if isinstance(kind, RandomType)]


def _names(values: Sequence[ir.Value]) -> list[str]:
    return [str(value.name) for value in values]


FeatureNames = Mapping[str, Sequence[str]]


def check_features(features: FeatureNames | None, names: Collection[str]) -> None:
    """Raise if names of columns are not given by names of inputs and outputs.

    Raises
    ------
    ArgumentError
        If a name is unknown, or columns have no names or equal ones.

    Examples
    --------
    >>> check_features({"x": ["age", "age"]}, ["x"])
    Traceback (most recent call last):
    pytensor_onnx.errors.ArgumentError: feature_names gives x the column 'age' twice
    """
    for name, columns in (features or {}).items():
        if name not in names:
            raise ArgumentError(f"feature_names has {name!r}: {choose_of(name, names)}")
        if isinstance(columns, str) or not all(isinstance(c, str) for c in columns):
            raise ArgumentError(f"feature_names[{name!r}] is {columns!r}: give a list of names")
        for column in columns:
            if list(columns).count(column) > 1:
                raise ArgumentError(f"feature_names gives {name} the column {column!r} twice")


def describe_rows(model: ir.Model, features: FeatureNames | None) -> None:
    """Write the dimension of the rows and the names of columns into the metadata.

    Raises
    ------
    ArgumentError
        If the number of names is not the size of the last of two axes, or outputs share a name.
    """
    given = {}
    for value in [*model.graph.inputs, *model.graph.outputs]:
        name = str(value.name)
        if name in (features or {}):
            given[name] = list((features or {})[name])
            _check_size(value, given[name])
    _check_results([str(value.name) for value in model.graph.outputs], given)
    rows = _batch_axis(model)
    metadata = {
        BATCH_AXIS: rows,
        FEATURE_NAMES: json.dumps(given) if given else None,
        ROW_BYTES: str(_bytes_of_row(model, rows)) if rows else None,
    }
    for key, text in metadata.items():
        model.metadata_props.pop(key, None)
        if text:
            model.metadata_props[key] = text


def _bytes_of_row(model: ir.Model, rows: str) -> int:
    """Return the bytes of one row in the largest array whose other sizes are known."""
    nodes = [x for node in model.graph for x in node.outputs]
    sizes = [0]
    for value in [*model.graph.inputs, *nodes]:
        dims = list(dims_of(value) or ())
        if rows in dims and value.dtype is not None:
            dims.remove(rows)
            known = [dim for dim in dims if isinstance(dim, int)]
            if len(known) == len(dims):
                sizes.append(int(math.prod(known) * value.dtype.itemsize))
    return max(sizes)


def _check_size(value: ir.Value, columns: Sequence[str]) -> None:
    dims = list(dims_of(value) or ())
    size = dims[-1] if len(dims) == 2 else 0
    if size != len(columns) and (isinstance(size, int) or len(dims) != 2):
        raise ArgumentError(
            f"feature_names gives {value.name} {len(columns)} columns: its shape is "
            f"[{', '.join(map(str, dims))}], and the last of two axes has the columns"
        )


def _check_results(outputs: Sequence[str], given: FeatureNames) -> None:
    """Raise if two outputs have columns of one name: a table would keep the last column only."""
    of_column: dict[str, str] = {}
    for output in outputs:
        for column in given.get(output, [output]):
            other = of_column.setdefault(column, output)
            if other != output:
                raise ArgumentError(
                    f"feature_names gives outputs {other} and {output} the column {column!r}"
                )


def _batch_axis(model: ir.Model) -> str | None:
    """Return the one name of first axes of inputs that outputs have too, None if not one."""
    first = {
        str(dims[0])
        for value in model.graph.inputs
        if not value.is_initializer() and (dims := dims_of(value)) and not isinstance(dims[0], int)
    }
    returned = {str(dim) for value in model.graph.outputs for dim in dims_of(value) or ()}
    shared = first & returned
    return shared.pop() if len(shared) == 1 else None


Updated = dict[SharedVariable, Variable]


def with_noise(rng: str, request: Arguments, updated: Updated) -> tuple[Arguments, Updated]:
    """Return the arguments and the updates of an export, without generators if asked for.

    Parameters
    ----------
    rng
        ``"state"`` or ``"inputs"``.
    request, updated
        Arguments and updates of the export.

    Raises
    ------
    ArgumentError
        If ``rng`` is neither.
    """
    if rng == "state":
        return request, updated
    if rng != "inputs":
        raise ArgumentError(f"rng is {rng!r}: give 'state' or 'inputs'")
    kept = {v: x for v, x in updated.items() if not isinstance(v.type, RandomType)}
    outputs, noise = with_noise_inputs([*request.results, *kept.values()])
    inputs = [x for x in request.inputs if not isinstance(x.type, RandomType)]
    count = len(request.results)
    return (
        replace(request, inputs=[*inputs, *noise], results=outputs[:count]),
        dict(zip(kept, outputs[count:], strict=True)),
    )
