"""Make a program from the source of an export: rewrites, conversion, verification, files."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.fg import FunctionGraph

from pytensor_onnx.conversion import convert, names_of
from pytensor_onnx.dynamic_axes import DynamicAxes, named_axes
from pytensor_onnx.encodings import Boundary
from pytensor_onnx.exporting.program.program import ONNXProgram
from pytensor_onnx.exporting.requests.arguments import (
    check_names,
    check_outputs,
    check_state_path,
    read_examples,
    read_names,
    read_opset,
)
from pytensor_onnx.exporting.requests.paths import check_file
from pytensor_onnx.exporting.requests.reference_graph import reference_graph
from pytensor_onnx.exporting.requests.signature import Signature
from pytensor_onnx.exporting.requests.source import Source, warn_of_stored_values
from pytensor_onnx.exporting.requests.state_files import State, check_state_file
from pytensor_onnx.exporting.verification.precision import narrowed_for
from pytensor_onnx.graph.origins import take_lines, take_owners
from pytensor_onnx.named_dims import is_tensor
from pytensor_onnx.pipeline import prepare
from pytensor_onnx.rewriting.declared_types import with_right_types
from pytensor_onnx.running.linker import ONNX, OPSET_VERSION
from pytensor_onnx.running.session import SessionOptions
from pytensor_onnx.targets import get_profile
from pytensor_onnx.user_code import untraced


@untraced()
def export_source(
    source: Source,
    path: str | os.PathLike | None = None,
    *,
    output_names: Sequence[str] | None = None,
    state_path: str | os.PathLike | None = None,
    state_defaults: bool = True,
    static_state: bool = False,
    dynamic_axes: DynamicAxes | None = None,
    example_inputs: Sequence[Any] | Mapping[str, Any] | None = None,
    opset_version: int | str = OPSET_VERSION,
    target: str = "onnxruntime",
    verify: bool = True,
    assume_finite: bool = False,
    inline_functions: bool = False,
    precision: str | None = None,
    providers: str | Sequence[str] = "cpu",
    session_options: SessionOptions | None = None,
) -> ONNXProgram:
    """Export a source as a program; see `export_onnx` for the options."""
    profile = get_profile(target)
    check_file(path)
    check_state_file(state_path, path)
    if source.updates:
        check_state_path(target, path, state_path)
    warn_of_stored_values(source)
    source.results = list(with_right_types(source.results))
    interface = _Interface.of(source, read_names(output_names))
    check_outputs(interface.output_tensors)
    axes = named_axes(dynamic_axes)
    examples = read_examples(example_inputs, interface.inputs)
    source.dynamic = [axes.get(name, ()) for name in interface.inputs]
    reference = reference_graph(source, examples, static_state)
    narrowing, notes = narrowed_for(reference, precision, profile.precision)
    if narrowing:
        reference = narrowing.narrow
    fgraph = interface.rewritten(reference)

    values = interface.state_values(source, fgraph)
    stores_state = state_defaults and state_path is None and not profile.refuses_defaults
    converted = convert(
        fgraph,
        opset_version=read_opset(opset_version, profile),
        input_names=interface.input_tensors,
        output_names=interface.output_tensors,
        defaults=values if stores_state else {},
        dynamic_axes=axes,
        fixes_sizes=True,
        dim_names=True,
        constant_names=_constant_names(reference),
        name=source.name or (Path(path).stem if path else "main_graph"),
    )
    model = converted.model
    states = interface.states_of(model, list(values.values()))
    _describe(model, states, interface.encodings(model))
    options = {"assume_finite": assume_finite, "inline": inline_functions}
    changes = notes + prepare(converted, target, **options)
    program = ONNXProgram(
        model,
        reference=reference,
        rewritten=fgraph,
        states=states,
        signature=interface.signature(model, source.returns_single),
        failures=converted.failures,
        lines=take_lines(model),
        owners=take_owners(model, fgraph),
        values=converted.values,
        changes=changes,
        target=target,
        narrowing=narrowing,
        providers=providers,
        session_options=session_options,
    )
    if verify:
        program.verify(examples)
    if state_path is not None:
        program.save_state(state_path)
    if path is not None:
        program.save(path)
    return program


@dataclass(frozen=True)
class _Interface:
    """Names and types of the inputs, results and states of a source.

    In the graph and in the model, states follow the inputs, and their next values the results.
    """

    inputs: list[str]
    results: list[str]
    states: list[str]
    given: Boundary
    returned: Boundary
    state: Boundary

    @classmethod
    def of(cls, source: Source, result_names: Sequence[str] | None) -> _Interface:
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

    def rewritten(self, reference: FunctionGraph) -> FunctionGraph:
        """Return a rewritten copy of a graph, whose last outputs update its last inputs."""
        fgraph = reference.clone(check_integrity=False)
        fgraph.update_mapping = {
            self.returned.width + i: self.given.width + i for i in range(self.state.width)
        }
        ONNX.optimizer.rewrite(fgraph)
        return fgraph

    def state_values(self, source: Source, fgraph: FunctionGraph) -> dict[Variable, np.ndarray]:
        """Return the values of the states, by the inputs of the graph."""
        encoded = self.state.encode([source.values[v] for v in source.updates])
        variables = fgraph.inputs[self.given.width :]
        return {
            v: np.array(value, v.type.dtype) for v, value in zip(variables, encoded, strict=True)
        }

    def states_of(self, model: ir.Model, values: Sequence[np.ndarray]) -> list[State]:
        """Return the states of the model: names, and values before the first call."""
        inputs = model.graph.inputs[self.given.width :]
        outputs = model.graph.outputs[self.returned.width :]
        return [
            State(str(now.name), str(then.name), value)
            for now, then, value in zip(inputs, outputs, values, strict=True)
        ]

    def encodings(self, model: ir.Model) -> dict[str, Any]:
        """Describe the inputs and outputs of the model that are parts of encoded values."""
        inputs, outputs = self.given + self.state, self.returned + self.state
        return {
            "inputs": inputs.described([*self.inputs, *self.states], _names(model.graph.inputs)),
            "outputs": outputs.described(
                [*self.results, *self.next_states], _names(model.graph.outputs)
            ),
        }

    def signature(self, model: ir.Model, returns_single: bool) -> Signature:
        """Return the signature of the program."""
        names = self.given.value_names(self.inputs, _names(model.graph.inputs))
        return Signature(self.given, self.returned, names, returns_single)


def _names(values: Sequence[ir.Value]) -> list[str]:
    return [str(value.name) for value in values]


def _constant_names(fgraph: FunctionGraph) -> dict[str, np.ndarray]:
    """Return the named constants of a graph."""
    return {
        constant.name: np.asarray(constant.data)
        for constant in fgraph.variables
        if isinstance(constant, Constant) and constant.name and is_tensor(constant.type)
    }


def _describe(model: ir.Model, states: Sequence[State], encodings: Mapping[str, Any]) -> None:
    """Write the states and the encoded values into the metadata of the model."""
    if states:
        model.metadata_props["state"] = json.dumps({s.name: s.next_name for s in states})
    if any(encodings.values()):
        model.metadata_props["encodings"] = json.dumps(encodings)
