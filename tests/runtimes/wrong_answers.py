"""The smallest files for which a runtime returns other numbers without an error."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx.parser
import onnxruntime

from tests.runtimes.results import NAMES, run_files


class WrongAnswer(NamedTuple):
    """A file in ONNX's text, its inputs, and the wrong answer of a runtime."""

    runtime: str
    behaviour: str
    text: str
    inputs: dict[str, np.ndarray]


_X = np.array([1.5, -0.5, 2.0], "float32")
_STATE_BEFORE = """(float[2,3] x, float[3] s) => (float[3] y, float[2,3] rows) {
  y, rows = Scan <num_scan_inputs = 1, body = step (float[3] before, float[3] row)
    => (float[3] after, float[3] kept) {after = Identity(row) kept = Identity(before)}> (s, x)
}"""
_COUNTED = """(float[3] s, float[4] x) => (float[3] y) {
  y = Scan <num_scan_inputs = 1, body = step (float[3] before, float row)
    => (float[3] after) {after = Cos(before)}> (s, x)
}"""
_UNTIL = """(float s) => (float y)
<int64 steps = {9}, bool going = {1}, float limit = {5.0}> {
  y = Loop <body = step (int64 i, bool g, float before) => (bool goes, float after)
    {after = Add(before, before) goes = Less(after, limit)}> (steps, going, s)
}"""
_TRACE = """(float s, float[n] x) => (float y, float[n] rows) {
  y, rows = Scan <num_scan_inputs = 1, body = step (float before, float row)
    => (float after, float kept) {after = Add(before, row) kept = Identity(after)}> (s, x)
}"""
_WRITES = """(float[3] x) => (float[3] y, float[3] z)
<int64[1,1] i = {0}, float[1] u = {9.0}> {y = ScatterND(x, i, u) z = Neg(x)}"""
_ROUNDED = """(float[3] x) => (float[3] y) <float c = {8388609.0}> {
  p = Mul(x, c) s = Add(x, p) y = Sub(s, p)
}"""
_ADDED = """(float[3] x, int64[1,1] i, float[1] u) => (float[3] y) {
  y = ScatterND <reduction = "add"> (x, i, u)
}"""
_BY_SIZE = """(float[n] x) => (float[n] y) {
  sizes = Shape(x) size = Cast <to = 1> (sizes) y = Div(x, size)
}"""

WRONG_ANSWERS = (
    WrongAnswer(
        "openvino",
        'rows of a Scan that are the state before a step; `target="openvino"` writes a Loop',
        _STATE_BEFORE,
        {"x": np.stack([_X, 2 * _X]), "s": np.zeros(3, "float32")},
    ),
    WrongAnswer(
        "openvino",
        "a Scan that only counts its steps; portable files count by a Loop",
        _COUNTED,
        {"s": _X, "x": np.zeros(4, "float32")},
    ),
    WrongAnswer(
        "openvino",
        "integers of 64 bits are computed in 32; random draws of portable files do without",
        "(int64[1] x) => (int64[1] y) {y = Mul(x, x)}",
        {"x": np.array([2**20])},
    ),
    WrongAnswer(
        "openvino",
        'float64 is computed in float32; `target="openvino"` refuses it',
        "(double[1] x) => (double[1] y) <double c = {1.0}> {y = Add(x, c)}",
        {"x": np.array([2.0**-40])},
    ),
    WrongAnswer(
        "iree",
        "a Loop does not end by its condition",
        _UNTIL,
        {"s": np.array(1, "float32")},
    ),
    WrongAnswer(
        "iree",
        "a Scan of unknown length returns its last row only",
        _TRACE,
        {"s": np.array(1, "float32"), "x": np.arange(4, dtype="float32")},
    ),
    WrongAnswer(
        "tinygrad",
        "ScatterND writes into its operand, which other nodes read",
        _WRITES,
        {"x": _X},
    ),
    WrongAnswer(
        "tinygrad",
        "sums of products by constants are rearranged as if they were exact",
        _ROUNDED,
        {"x": np.array([0.1, 0.2, 0.3], "float32")},
    ),
    WrongAnswer(
        "MNN",
        "Gelu has errors of 2e-4, where it is written by Erf as well",
        "(float[3] x) => (float[3] y) {y = Gelu(x)}",
        {"x": _X},
    ),
    WrongAnswer(
        "MNN",
        "ScatterND sets elements where it is to add to them",
        _ADDED,
        {"x": _X, "i": np.array([[1]]), "u": np.array([2], "float32")},
    ),
    WrongAnswer(
        "MNN",
        "quotients by the unknown size of a vector, which counts as one",
        _BY_SIZE,
        {"x": _X},
    ),
)


def shown(runtimes: Sequence[str], folder: Path) -> list[tuple[WrongAnswer, str]]:
    """Run the files in the runtimes that are there, and return the answers that differ."""
    found = []
    for number, wrong in enumerate(WRONG_ANSWERS):
        if wrong.runtime in runtimes:
            name = _write(wrong, folder / f"wrong{number}")
            _, answers = run_files(wrong.runtime, [name], folder)
            found += [(wrong, answers[name])] if answers[name] else []
    return found


def section(found: Sequence[tuple[WrongAnswer, str]]) -> str:
    """Return the section of the page."""
    lines = [
        "## Wrong answers",
        "",
        "Runtimes return other numbers without an error for these files, in ONNX's text.",
    ]
    for wrong, answer in found:
        title = f"{NAMES[wrong.runtime]}: {wrong.behaviour} ({answer})."
        lines += ["", title, "", "```text", wrong.text, "```"]
    return "\n".join(lines) + "\n"


def _write(wrong: WrongAnswer, path: Path) -> str:
    header = '<ir_version: 9, opset_import: ["": 20]> main_graph '
    proto = onnx.parser.parse_model(header + wrong.text)
    onnx.save(proto, f"{path}.onnx")
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    names = [output.name for output in session.get_outputs()]
    results = dict(zip(names, session.run(None, wrong.inputs), strict=True))
    np.savez(f"{path}.npz", **wrong.inputs)
    np.savez(f"{path}.wanted.npz", **results)
    return path.name
