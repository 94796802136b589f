"""The first value that differs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph

from pytensor_onnx.changes import Change
from pytensor_onnx.exporting.requests.options import Request
from pytensor_onnx.exporting.requests.signature import Signature
from pytensor_onnx.exporting.requests.state_files import State
from pytensor_onnx.exporting.verification.array_differences import disagreement, errors_of
from pytensor_onnx.exporting.verification.results import ValueDifference, evaluate_all
from pytensor_onnx.exporting.verification.rounding import Narrowing
from pytensor_onnx.graph.names import Lines
from pytensor_onnx.running.session import Session, SessionOptions
from pytensor_onnx.user_code import user_line


def differences_by_value(
    conversion: Conversion, session: Session, feed: Mapping[str, np.ndarray]
) -> tuple[ValueDifference, ...]:
    """Return the differences of all values of a model from PyTensor's, in the order of computation.

    Parameters
    ----------
    conversion
        The model, and the graph that it was converted from.
    session
        Session of the model, whose options are taken.
    feed
        Inputs and state by name.
    """
    expected = evaluate_all(conversion.rewritten, list(feed.values()))
    variables = [
        variable
        for node in conversion.rewritten.toposort()
        for variable in node.outputs
        if variable in conversion.values and variable in expected
    ]
    found = _values_by_name(conversion, variables, session, feed)
    return tuple(
        _difference(name, variable, found[name], np.asarray(expected[variable]))
        for variable in variables
        if (name := str(conversion.values[variable].name)) in found
    )


def divergence(values: Sequence[ValueDifference]) -> str:
    """Return a sentence on the first value that differs."""
    first = next((value for value in values if value.problem), None)
    if first is not None:
        return f"The first node that diverges is {first}."
    return (
        "No single node diverges from PyTensor's own value of it: the rewrites before the "
        "conversion changed the result."
    )


def _difference(
    name: str, variable: Variable, found: np.ndarray, expected: np.ndarray
) -> ValueDifference:
    largest, scale = np.inf, 0.0
    if found.shape == expected.shape:
        largest = float(np.max(errors_of(found, expected), initial=0.0))
        finite = np.abs(expected[np.isfinite(expected)].astype("float64"))
        scale = float(np.max(finite, initial=0.0))
    return ValueDifference(
        name,
        computes=str(variable.owner.op),
        largest=largest,
        relative=largest / scale if scale else largest,
        line=user_line(variable),
        problem=disagreement(found, expected),
    )


def _values_by_name(
    conversion: Conversion,
    variables: Sequence[Variable],
    session: Session,
    feed: Mapping[str, np.ndarray],
) -> dict[str, np.ndarray]:
    """Run the model with the values of variables as further outputs."""
    model = ir.from_proto(ir.to_proto(conversion.model))
    known = {v.name: v for node in model.graph for v in node.outputs}
    outputs = {v.name for v in model.graph.outputs}
    for name in dict.fromkeys(conversion.values[v].name for v in variables):
        if name in known and name not in outputs:
            model.graph.outputs.append(known[name])
    traced = Session(model, options=session.options)
    return dict(zip(traced.output_names, traced.run(feed), strict=True))


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
