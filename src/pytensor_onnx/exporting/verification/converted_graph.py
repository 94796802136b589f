"""A converted graph: the model, with the PyTensor graphs, names and lines behind its values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph

from pytensor_onnx.changes import Change
from pytensor_onnx.exporting.requests.request import Request
from pytensor_onnx.exporting.requests.signature import Signature
from pytensor_onnx.exporting.requests.state_files import State
from pytensor_onnx.exporting.verification.precision import Narrowing
from pytensor_onnx.graph.origins import Lines
from pytensor_onnx.running.session import Session, SessionOptions


@dataclass(frozen=True)
class Conversion:
    """A graph of PyTensor and the model that computes it.

    Attributes
    ----------
    model
        The model.
    reference, rewritten
        The graph as written, and the graph as it was converted. A loaded file has graphs without
        outputs.
    signature
        Values that a caller passes and gets.
    states
        Variables that the graph updates.
    values
        Value of the model for each variable of the converted graph.
    owners
        Node of the converted graph for the name of each value of the model.
    lines
        Lines of the user's code that made the nodes.
    failures
        Exceptions that checks raise, by type and message.
    changes
        Changes for the target.
    target
        Runtime that the model is made for.
    narrowing
        The graph in both precisions, where an export replaces floats.
    request
        Options and interface that the graph was converted with; None for a loaded file.
    """

    model: ir.Model
    reference: FunctionGraph
    rewritten: FunctionGraph
    signature: Signature
    states: tuple[State, ...] = ()
    values: Mapping[Variable, ir.Value] = field(default_factory=dict)
    owners: Mapping[str, Apply] = field(default_factory=dict)
    lines: Lines = field(default_factory=dict)
    failures: Mapping[str, Exception] = field(default_factory=dict)
    changes: tuple[Change, ...] = ()
    target: str = "unknown"
    narrowing: Narrowing | None = None
    request: Request | None = None

    @property
    def inputs(self) -> list[ir.Value]:
        """The inputs of the model that a caller gives, without the state."""
        states = {state.name for state in self.states}
        return [value for value in self.model.graph.inputs if value.name not in states]

    @property
    def state_inputs(self) -> list[ir.Value]:
        """The inputs of the model that are its state."""
        states = {state.name for state in self.states}
        return [value for value in self.model.graph.inputs if value.name in states]

    @property
    def output_names(self) -> list[str]:
        """The names of the outputs of the model, next values of the state included."""
        return [str(value.name) for value in self.model.graph.outputs]

    def arrays(self, arguments: Sequence[Any]) -> list[np.ndarray]:
        """Return arguments as arrays of the inputs, or raise for all that do not fit."""
        return self.signature.arrays(arguments, self.inputs, self.reference.inputs)

    def open_session(
        self,
        providers: str | Sequence[str] = "cpu",
        options: SessionOptions | None = None,
        *,
        regions: bool = True,
    ) -> Session:
        """Load the model into ONNX Runtime; see `Session`."""
        return Session(
            self.model,
            providers=providers,
            options=options,
            failures=self.failures,
            lines=self.lines,
            regions=regions,
        )
