"""Names and types of the inputs, results and states of a model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx_ir as ir
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.random.type import RandomType

from pytensor_onnx.conversion import names_of
from pytensor_onnx.encodings import Boundary
from pytensor_onnx.encodings.registry import tensor_types
from pytensor_onnx.encodings.small_states import in_dtype, in_small_words
from pytensor_onnx.exporting.requests.output_names import check_names
from pytensor_onnx.exporting.requests.signature import Signature
from pytensor_onnx.exporting.requests.source import Source
from pytensor_onnx.exporting.requests.state_files import State, values_as_text
from pytensor_onnx.rewriting.engine.keep_origins import KeepOrigins
from pytensor_onnx.running.linker import ONNX


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

    def rewritten(self, reference: FunctionGraph) -> FunctionGraph:
        """Return a rewritten copy of a graph, whose last outputs update its last inputs."""
        fgraph = reference.clone(check_integrity=False)
        fgraph.update_mapping = {
            self.returned.width + i: self.given.width + i for i in range(self.state.width)
        }
        ONNX.optimizer.rewrite(fgraph)
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
