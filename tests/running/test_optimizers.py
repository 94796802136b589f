"""Optimizers that cannot change a large model are disabled, and no others."""

import re

import onnx
import onnxruntime
import pytensor.tensor as pt
import pytest

from pytensor_onnx import export_onnx
from pytensor_onnx.running.optimizers import LARGE, OPERATORS, needless_optimizers
from pytensor_onnx.running.session import Session, SessionOptions

ENDS = {
    "elementwise": lambda y, w: y,
    "product and rectifier": lambda y, w: pt.maximum(y[None] @ w + 1, 0),
    "transposed": lambda y, w: pt.exp(pt.exp(w.T + y).T),
    "reshaped": lambda y, w: y.reshape((-1, 2)).reshape((-1,)),
}


def model_of(end):
    x, w = pt.vector("x"), pt.matrix("w")
    y = x
    for _ in range(20):
        y = pt.exp(y) - x
    return export_onnx([x, w], end(y, w), verify=False).model


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_large_models_are_optimized_as_before(end, tmp_path, monkeypatch):
    monkeypatch.setattr("pytensor_onnx.running.optimizers.LARGE", 40)
    model = model_of(end)
    assert len(needless_optimizers(model)) > 20
    optimized = []
    for name in ("some", "all"):
        path = tmp_path / f"{name}.onnx"
        Session(model, options=SessionOptions(optimized_model_path=path))
        optimized.append([node.op_type for node in onnx.load(path).graph.node])
        monkeypatch.setattr("pytensor_onnx.running.session.needless_optimizers", lambda _: [])
    assert optimized[0] == optimized[1]


def test_small_models_keep_all_optimizers():
    assert needless_optimizers(model_of(ENDS["elementwise"])) == []


def test_called_functions_count():
    x = y = pt.vector("x")
    for _ in range(LARGE // 10):
        y = pt.sin(y)
    assert needless_optimizers(export_onnx([x], y, verify=False).model)


def test_names_are_those_of_the_runtime(capfd):
    options = SessionOptions().to_runtime()
    options.log_severity_level = 0
    options.log_verbosity_level = 1
    model = export_onnx([x := pt.vector("x")], x + 1, verify=False).proto
    onnxruntime.InferenceSession(model.SerializeToString(), options)
    names = set(re.findall(r"Applying graph transformer (\w+) on", capfd.readouterr().err))
    assert set(OPERATORS) <= names
