"""Differences of results from PyTensor's, and the first node that diverges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Variable

from pytensor_onnx.exporting.verification.array_differences import disagreement, errors_of
from pytensor_onnx.exporting.verification.converted_graph import Conversion
from pytensor_onnx.exporting.verification.reference_evaluation import evaluate_all
from pytensor_onnx.exporting.verification.results import ValueDifference
from pytensor_onnx.running.session import Session
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
