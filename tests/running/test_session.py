"""The session wrapper passes options on and explains errors."""

import json
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytensor.tensor as pt
import pytest

from pytensor_onnx import InputError, PyTensorONNXError, SessionOptions, export_onnx
from pytensor_onnx.running.ort_optimizers import provider_names
from pytensor_onnx.running.session import Session


@pytest.fixture
def model():
    x = pt.vector("x")
    return export_onnx([x], [x + 1, x.argmax()], verify=False).model


def test_session_runs_a_model_and_a_file(model, tmp_path):
    ir.save(model, tmp_path / "model.onnx")
    for source in (model, tmp_path / "model.onnx", str(tmp_path / "model.onnx")):
        total, position = Session(source).run({"x": np.array([1.0, 5.0])})
        np.testing.assert_array_equal(total, [2.0, 6.0])
        assert position == 1


def test_int64_results_are_numpys_own_int64(model):
    _, position = Session(model).run({"x": np.array([1.0, 5.0])})
    assert repr(position.dtype) == "dtype('int64')"


def test_options_reach_the_runtime(model):
    options = SessionOptions(
        threads=1, optimization="none", config={"session.set_denormal_as_zero": "1"}
    ).to_runtime()
    assert options.intra_op_num_threads == 1
    assert options.graph_optimization_level.name == "ORT_DISABLE_ALL"
    assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"
    assert options.get_session_config_entry("session.set_denormal_as_zero") == "1"


def test_unknown_optimization_level_lists_the_known_ones():
    with pytest.raises(PyTensorONNXError, match="'none', 'basic', 'extended', 'all'"):
        SessionOptions(optimization="fast").to_runtime()


def test_profiling_writes_a_file(model, tmp_path):
    session = Session(model, options=SessionOptions(profile_prefix=str(tmp_path / "profile")))
    session.run({"x": np.ones(2)})
    events = json.loads(Path(session.runtime.end_profiling()).read_text())
    assert any(event["cat"] == "Node" for event in events)


def test_providers_go_by_short_names():
    assert provider_names("CPU") == provider_names(["CPUExecutionProvider"])
    with pytest.raises(PyTensorONNXError, match="has no CUDAExecutionProvider; it has"):
        provider_names(["cuda"])


def test_model_that_the_runtime_refuses(model):
    model.graph.opset_imports[""] = 99
    with pytest.raises(PyTensorONNXError, match="ONNX Runtime refuses the model"):
        Session(model)


def test_errors_at_run_time_are_explained(model):
    with pytest.raises(InputError, match="input x has 2 axes, but 1 are expected\n"):
        Session(model).run({"x": np.ones((2, 2))})


def test_the_runtime_does_not_drop_an_expand_to_a_size_that_it_finds_to_be_zero():
    text = """<ir_version: 10, opset_import: ["": 21]>
    main (double[0] x, double[1] y) => (double[n] z) {
        shape = Shape(x)
        negative = Neg(y)
        expanded = Expand(negative, shape)
        z = Neg(expanded)
    }"""
    session = Session(ir.from_onnx_text(text))
    assert session.run({"x": np.ones(0), "y": np.ones(1)})[0].shape == (0,)
