"""Models whose weights do not fit into one message of protobuf, with a limit of some kilobytes."""

import pickle
import tracemalloc

import numpy as np
import onnx_ir as ir
import onnxruntime
import pytensor
import pytensor.tensor as pt
import pytest

import pytensor_onnx.graph.weights
from pytensor_onnx import VerificationError, export_onnx
from pytensor_onnx.digests import content_key
from pytensor_onnx.encodings.registry import LARGE, LargeConstant

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def low_limit(monkeypatch):
    monkeypatch.setattr(pytensor_onnx.graph.weights, "LARGEST_MESSAGE", 1000)


def shared(*shape, name):
    return pytensor.shared(RNG.normal(size=shape).astype("float32"), name=name)


def test_the_model_is_verified_and_its_file_runs(tmp_path):
    x, w, b = pt.fmatrix("x"), shared(40, 50, name="w"), shared(50, name="b")
    program = export_onnx([x], pt.tanh(x @ w + b), tmp_path / "model.onnx")
    assert str(program.verification).startswith("checked, loaded and equal to PyTensor")
    assert {path.name for path in tmp_path.iterdir()} == {"model.onnx", "model.onnx.data"}
    values = RNG.normal(size=(3, 40)).astype("float32")
    expected = np.tanh(values @ w.get_value() + b.get_value())
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    assert [value.name for value in session.get_inputs()] == ["x"]
    np.testing.assert_allclose(session.run(None, {"x": values})[0], expected, rtol=1e-5)
    np.testing.assert_allclose(program(values), expected, rtol=1e-5)
    assert program.session.input_names == ["x"]


def test_a_state_among_the_weights_is_updated():
    x, w = pt.fvector("x"), shared(40, 50, name="w")
    start = w.get_value()
    program = export_onnx([x], x @ w, updates={w: w + 1})
    values = RNG.normal(size=40).astype("float32")
    program(values)
    np.testing.assert_allclose(program(values), values @ (start + 1), rtol=1e-5)
    np.testing.assert_array_equal(program.state["w"], start + 1 + 1)


def test_a_pickled_program_has_its_weights_and_its_state():
    x, w, b = pt.fvector("x"), shared(40, 50, name="w"), shared(50, 30, name="b")
    program = export_onnx([x], x @ w @ b, updates={w: w + 1})
    again = pickle.loads(pickle.dumps(program))
    values = RNG.normal(size=40).astype("float32")
    for _ in range(2):
        np.testing.assert_array_equal(again(values), program(values))
    assert repr(again) == repr(program)
    assert again.verify().verification.verdict == program.verification.verdict


def test_a_wrong_result_is_found():
    x, w = pt.fvector("x"), shared(40, 50, name="w")
    program = export_onnx([x], x @ w, verify=False)
    (stored,) = (v for v in program.model.graph.initializers.values() if v.const_value.size > 100)
    stored.const_value = ir.tensor(stored.const_value.numpy() + 1, name=stored.name)
    with pytest.raises(VerificationError, match="differs from PyTensor"):
        program.verify()


def test_weights_are_copied_once(tmp_path, monkeypatch):
    monkeypatch.setattr(pytensor_onnx.encodings.registry, "LARGE", 2**20)
    arrays = [RNG.uniform(-0.01, 0.01, size=(1000, 1000)).astype("float32") for _ in range(3)]
    weights = [pytensor.shared(array, name=f"w{i}") for i, array in enumerate(arrays)]
    x = pt.fmatrix("x")
    y = x
    for w in weights:
        y = pt.tanh(y @ w)
    export_onnx([x], y[:, :10], tmp_path / "first.onnx")  # whatever is loaded and compiled once
    tracemalloc.start()
    try:
        program = export_onnx([x], y, tmp_path / "model.onnx")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1.2 * sum(array.nbytes for array in arrays)
    assert len(program.session.runtime.get_inputs()) == 4  # the runtime reads them in place


@pytest.mark.parametrize("shape", [(3, 5, 7), (300, 400), (1, 100_000), (100_000, 1), (17,)])
def test_a_key_depends_on_bits_and_not_on_strides(shape):
    array = RNG.normal(size=shape)
    assert content_key(array.T) == content_key(np.ascontiguousarray(array.T))
    assert content_key(np.repeat(array, 2, axis=0)[::2]) == content_key(array)
    other = array.copy()
    other.flat[-1] *= -1
    assert content_key(other) != content_key(array)


def test_large_constants_are_compared_by_their_data():
    data = np.full(LARGE // 4, 2.0, "float32")
    first, second, other = (
        LargeConstant(pt.fvector().type, x) for x in (data, data.copy(), 2 * data)
    )
    assert first.equals(second)
    assert not first.equals(other)
    assert first.unique_value == 2
    data[5] = np.nan
    first, second = (LargeConstant(pt.fvector().type, x) for x in (data, data.copy()))
    assert first.equals(second)
    assert first.unique_value is None
