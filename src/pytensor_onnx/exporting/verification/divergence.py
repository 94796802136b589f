"""Differences of results from PyTensor's, and the first node that diverges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply

from pytensor_onnx.exporting.verification.evaluation import evaluate_all
from pytensor_onnx.exporting.verification.rounding import RELATIVE_TOLERANCE
from pytensor_onnx.running.session import Session
from pytensor_onnx.user_code import user_line

if TYPE_CHECKING:
    from pytensor_onnx.exporting.program.program import ONNXProgram


def disagreement(found: np.ndarray, expected: np.ndarray) -> str:
    """Describe how two arrays differ beyond rounding; empty if they agree.

    Examples
    --------
    >>> disagreement(np.array([1.0, 2.0]), np.array([1.0, 2.0]))
    ''
    >>> disagreement(np.array([1.0]), np.array([1.5]))
    'largest difference 0.5 (found 1.0, expected 1.5 at [0])'
    """
    if found.dtype != expected.dtype:
        return f"dtype {found.dtype} instead of {expected.dtype}"
    if found.shape != expected.shape:
        return f"shape {found.shape} instead of {expected.shape}"
    if not found.size:
        return ""
    if found.dtype.kind != "f":
        differs = found != expected
        if not differs.any():
            return ""
    else:
        with np.errstate(all="ignore"):
            relative = RELATIVE_TOLERANCE[str(found.dtype)]
            finite = np.abs(expected[np.isfinite(expected)])
            scale = float(finite.max()) if finite.size else 0.0
            close = np.isclose(
                found, expected, rtol=relative, atol=relative * scale, equal_nan=True
            )
        if close.all():
            return ""
        differs = ~close
    position = np.unravel_index(np.argmax(differs), found.shape)
    a, b = found[position], expected[position]
    with np.errstate(all="ignore"):
        distances = np.abs(found.astype("f8") - expected.astype("f8"))[differs]
        largest = np.max(distances, initial=0.0, where=~np.isnan(distances))
    where = [int(i) for i in position]
    return f"largest difference {largest:.3g} (found {a}, expected {b} at {where})"


def first_divergence(program: ONNXProgram, feed: Mapping[str, np.ndarray]) -> str:
    """Return a sentence on the first node, in the order of computation, whose results differ."""
    expected = evaluate_all(program._rewritten, list(feed.values()))
    nodes = program._rewritten.toposort()
    found = _intermediate_values(program, nodes, feed)
    for node in nodes:
        for variable in node.outputs:
            value = program._values.get(variable)
            if value is None or value.name not in found or variable not in expected:
                continue
            difference = disagreement(found[value.name], np.asarray(expected[variable]))
            if difference:
                line = user_line(variable)
                made = f", made at {line}" if line else ""
                return (
                    f"The first node that diverges is {value.name!r}, which computes {node.op}"
                    f"{made}: {difference}."
                )
    return (
        "No single node diverges from PyTensor's own value of it: the rewrites before the "
        "conversion changed the result."
    )


def _intermediate_values(
    program: ONNXProgram, nodes: Sequence[Apply], feed: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Run the model with the value of every PyTensor variable as an output."""
    model = ir.from_proto(program.proto)
    known = {v.name: v for node in model.graph for v in node.outputs}
    outputs = {v.name for v in model.graph.outputs}
    wanted = [
        program._values[v].name for node in nodes for v in node.outputs if v in program._values
    ]
    for name in dict.fromkeys(wanted):
        if name in known and name not in outputs:
            model.graph.outputs.append(known[name])
    session = Session(model, options=program.session_options)
    return dict(zip(session.output_names, session.run(feed), strict=True))
