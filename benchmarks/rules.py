"""What single rules of the conversion save: the exported graph against the plain form by hand.

``python -m benchmarks.rules``; both forms run with the same options on one thread.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import onnx
import onnxruntime
import pytensor.tensor as pt
from pytensor.graph.basic import Variable

from benchmarks.timing import Table, interleaved
from pytensor_onnx import export_onnx
from pytensor_onnx.running.session import SessionOptions


@dataclass(frozen=True)
class Rule:
    """A graph to export, the same in ONNX by hand without the rule, and values of its inputs."""

    label: str
    inputs: Sequence[Variable]
    output: Variable
    by_hand: str
    values: Sequence[np.ndarray]
    bound: float
    tolerance: float = 0.0


def number_beside_short_axes() -> Rule:
    """Return a step of gradient descent for filters of 1 by 1."""
    shape = (256, 256, 1, 1)
    w, g = (pt.tensor(name, shape=shape, dtype="float32") for name in "wg")
    by_hand = """
        <ir_version: 10, opset_import: ["": 21]>
        main (float[256, 256, 1, 1] w, float[256, 256, 1, 1] g) => (float[256, 256, 1, 1] y)
        <float rate = {0.125}> { step = Mul(rate, g)  y = Sub(w, step) }
    """
    values = [np.random.default_rng(0).normal(size=shape).astype("float32") for _ in range(2)]
    return Rule(
        "descent step of filters (256, 256, 1, 1)",
        [w, g],
        w - np.float32(0.125) * g,
        by_hand,
        values,
        0.3,
    )


RULES: list[Callable[[], Rule]] = [number_beside_short_axes]


def measure() -> Table:
    """Time both forms of each rule, and compare what they return."""
    table = Table(
        "Rules of the conversion",
        ["one thread, µs a call", "exported", "plain form", "ratio"],
        note="The plain form has the operators that the graph is written with.",
    )
    for make in RULES:
        rule = make()
        names = [str(v.name) for v in rule.inputs]
        feed = dict(zip(names, rule.values, strict=True))
        program = export_onnx(rule.inputs, rule.output, verify=False)
        plain = onnx.parser.parse_model(rule.by_hand)
        sessions = [_session(model) for model in (program.proto, plain)]
        results = [session.run(None, feed)[0] for session in sessions]
        np.testing.assert_allclose(*results, rtol=rule.tolerance, atol=rule.tolerance)
        calls = {str(i): partial(s.run, None, feed) for i, s in enumerate(sessions)}
        ours, theirs = interleaved(calls, rounds=40).values()
        cells = (f"{1e6 * ours:.1f}", f"{1e6 * theirs:.1f}", f"{ours / theirs:.2f}")
        table.rows.append([rule.label, *cells])
        table.claim(f"{rule.label}, exported against plain", ours / theirs, rule.bound)
    return table


def _session(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    options = SessionOptions(threads=1).to_runtime()
    return onnxruntime.InferenceSession(model.SerializeToString(), options)


if __name__ == "__main__":
    measure().show()
