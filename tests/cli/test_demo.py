import json
import sys

import numpy as np
import onnx
import onnxruntime
import pytest

from pytensor_onnx.cli.demo import load_digits, run_digits
from pytensor_onnx.errors import MissingExtraError

pytest.importorskip("pytensor_ml")
pytest.importorskip("sklearn")


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    path = tmp_path_factory.mktemp("digits") / "digits.onnx"
    return run_digits(path, epochs=4, hidden=16)


def test_digits_are_predicted_equally_by_pytensor_and_the_file(result):
    np.testing.assert_array_equal(result.predictions, result.runtime_predictions)
    np.testing.assert_allclose(
        result.runtime_probabilities, result.probabilities, rtol=1e-4, atol=1e-6
    )


def test_digits_have_a_summary_for_json(result):
    found = json.loads(json.dumps(result.summary()))
    assert found["operators"] == ["Gemm", "Relu", "Gemm", "Softmax"]
    assert found["accuracy"] == found["runtime_accuracy"]
    assert found["images"] == 450


def test_digits_are_learned(result):
    assert (result.predictions == result.labels).mean() > 0.85


def test_digits_file_equals_one_written_by_hand(result):
    graph = onnx.load(result.path).graph
    assert [(n.op_type, list(n.input), list(n.output)) for n in graph.node] == [
        ("Gemm", ["pixels", "hidden_W", "hidden_b"], ["hidden_output"]),
        ("Relu", ["hidden_output"], ["relu"]),
        ("Gemm", ["relu", "logits_W", "logits_b"], ["logits_output"]),
        ("Softmax", ["logits_output"], ["probabilities"]),
    ]
    assert {x.name: (list(x.dims), x.data_type) for x in graph.initializer} == {
        "hidden_W": ([64, 16], onnx.TensorProto.FLOAT),
        "hidden_b": ([16], onnx.TensorProto.FLOAT),
        "logits_W": ([16, 10], onnx.TensorProto.FLOAT),
        "logits_b": ([10], onnx.TensorProto.FLOAT),
    }
    weights = {x.name for x in graph.initializer}
    shapes = {
        v.name: [d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim]
        for v in [*graph.input, *graph.value_info, *graph.output]
        if v.name not in weights
    }
    assert shapes == {
        "pixels": ["batch", 64],
        "hidden_output": ["batch", 16],
        "relu": ["batch", 16],
        "logits_output": ["batch", 10],
        "probabilities": ["batch", 10],
    }


@pytest.mark.parametrize("batch", [0, 1, 7])
def test_digits_file_runs_in_bare_onnxruntime_for_any_batch(result, batch):
    session = onnxruntime.InferenceSession(result.path, providers=["CPUExecutionProvider"])
    images = load_digits().test_images[:batch]
    (probabilities,) = session.run(["probabilities"], {"pixels": images})
    np.testing.assert_allclose(probabilities, result.probabilities[:batch], rtol=1e-4, atol=1e-6)


def test_digits_for_training_and_test_are_apart():
    digits = load_digits()
    assert len(digits.train_images) == 1347
    assert len(digits.test_images) == 450
    assert set(digits.test_labels) == set(range(10))
    assert (digits.train_images.min(), digits.train_images.max()) == (0, 1)


@pytest.mark.parametrize("package", ["sklearn", "pytensor_ml"])
def test_missing_extra_is_named(monkeypatch, tmp_path, package):
    for module in [m for m in sys.modules if m.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'pytensor-onnx\[ml\]'"):
        run_digits(tmp_path / "digits.onnx", epochs=1)
    assert not (tmp_path / "digits.onnx").exists()
