"""A loaded program computes, describes and verifies as the exported one."""

import pickle

import numpy as np
import onnx
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.sparse
from onnx import helper
from pytensor import sparse

import pytensor_onnx.graph.weights
from pytensor_onnx import InputError, PyTensorONNXError, export_onnx, load

OF_EXPORT = ("Changes", "Verification", "ONNX model")


def sections(program):
    parts = program.report().lstrip("# ").split("\n## ")
    return [part.strip() for part in parts if not part.startswith(OF_EXPORT)]


@pytest.fixture
def pair(tmp_path):
    """An exported program with all encodings and a state, and that of its file."""
    rng = pytensor.shared(np.random.default_rng(0), name="rng")
    total = pytensor.shared(np.arange(2.0), name="total")
    z, m, r = pt.zvector("z"), sparse.csc_matrix("m"), pt.random.rng("r")
    following, noise = pt.random.normal(rng=rng, size=2).owner.outputs
    other = pt.random.normal(rng=r).owner.outputs[1]
    results = {"a": z * 2, "b": m, "c": sparse.dense_from_sparse(m).sum() + noise + other}
    path = tmp_path / "model.onnx"
    exported = export_onnx(
        [z, m, r],
        results,
        path,
        updates={rng: following, total: total + 1},
        dynamic_axes={"z": {0: "batch"}},
    )
    return exported, load(path)


def test_an_input_that_gives_only_its_size_stays_an_input(tmp_path):
    x, y = pt.matrix("x"), pt.vector("y")
    export_onnx([x, y], y.sum() + x.shape[0], tmp_path / "model.onnx")
    program = load(tmp_path / "model.onnx")
    assert program(np.ones((3, 2)), np.ones(4)) == 7
    with pytest.raises(InputError, match=r"x: float64\[x_dim0, x_dim1\] was given float64\[3\]"):
        program(np.ones(3), np.ones(4))


@pytest.mark.parametrize("outputs", [lambda y: y, lambda y: [y], lambda y: {"y": y}])
def test_one_output_is_in_a_list_where_the_exported_program_has_it_so(tmp_path, outputs):
    x = pt.vector("x")
    program = export_onnx([x], outputs((2 * x).copy("y")), tmp_path / "model.onnx", verify=False)
    loaded = load(tmp_path / "model.onnx")
    assert type(loaded([1.0])) is type(program([1.0]))
    program.select("y").save(tmp_path / "selected.onnx")
    assert isinstance(load(tmp_path / "selected.onnx")([1.0]), np.ndarray)


@pytest.mark.slow
def test_a_loaded_program_takes_and_returns_the_values_of_the_exported_one(pair):
    z, m = np.array([1 + 2j, 3]), scipy.sparse.csc_matrix([[0.0, 5.0], [7.0, 0.0]])
    for _ in range(2):
        results = [program(z, m, r=np.random.default_rng(3)) for program in pair]
        for found, expected in zip(*results, strict=True):
            if scipy.sparse.issparse(expected):
                assert found.format == expected.format
                assert (found != expected).nnz == 0
            else:
                np.testing.assert_array_equal(found, expected, strict=True)
    for name, value in pair[0].state.items():
        np.testing.assert_array_equal(pair[1].state[name], value)
    assert repr(pair[1]) == repr(pair[0])
    with pytest.raises(InputError, match="z is missing"):
        pair[1](m=m, r=1)


def test_its_report_is_the_same_but_for_what_only_the_export_knows(pair):
    exported, loaded = pair
    assert sections(loaded) == sections(exported)
    assert str(loaded.verification) == "not verified"
    assert str(loaded.verify().verification).startswith(
        "checked, loaded and run on sampled inputs (z"
    )
    assert "not compared" in loaded.report()
    copied = pickle.loads(pickle.dumps(loaded))
    assert sections(copied) == sections(exported)
    with pytest.raises(PyTensorONNXError, match="no PyTensor graph to profile"):
        loaded.profile()


def test_verification_runs_given_inputs_and_refuses_wrong_ones(tmp_path):
    x = pt.matrix("x", shape=(None, 3))
    export_onnx([x], x.sum(axis=0), tmp_path / "sum.onnx")
    program = load(tmp_path / "sum.onnx")
    assert "given inputs (x [2, 3])" in str(program.verify([np.ones((2, 3))]).verification)
    with pytest.raises(InputError, match="x: float64"):
        program.verify([np.ones((2, 4))])
    np.testing.assert_array_equal(program(np.ones((2, 3))), [2, 2, 2])


@pytest.mark.parametrize("suffix", [".npz", ".onnx"])
def test_a_state_in_a_file_of_its_own_is_given(tmp_path, suffix):
    total, x = pytensor.shared(3.0, name="total"), pt.scalar("x")
    path, state = tmp_path / "model.onnx", tmp_path / f"state{suffix}"
    export_onnx([x], total * x, path, updates={total: total + x}, state_path=state)
    with pytest.raises(PyTensorONNXError, match=r"no values of its state \(total: float64\[\]\)"):
        load(path)
    program = load(path, state=state)
    assert program(2.0) == 6
    assert program(2.0) == 10


def test_weights_of_a_second_file_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(pytensor_onnx.graph.weights, "LARGEST_MESSAGE", 1000)
    w, x = np.random.default_rng(0).normal(size=(40, 40)), pt.vector("x")
    export_onnx([x], x @ pytensor.shared(w), tmp_path / "model.onnx")
    for limit in (1000, 10**6):
        monkeypatch.setattr(pytensor_onnx.graph.weights, "LARGEST_MESSAGE", limit)
        program = load(tmp_path / "model.onnx").verify()
        np.testing.assert_allclose(program(np.arange(40.0)), np.arange(40.0) @ w)
    (tmp_path / "model.onnx.data").unlink()
    with pytest.raises(PyTensorONNXError, match="there is no such file"):
        load(tmp_path / "model.onnx")


def foreign(path, inputs, node, outputs, initializers=()):
    graph = helper.make_graph([node], "foreign", inputs, outputs, initializers)
    opset = [helper.make_opsetid("", 18)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)
    return path


def test_files_of_others_are_programs_of_arrays(tmp_path):
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n"])
    w = helper.make_tensor_value_info("w", onnx.TensorProto.FLOAT, [1])
    weight = helper.make_tensor("w", onnx.TensorProto.FLOAT, [1], [3.0])
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["n"])
    node = helper.make_node("Mul", ["x", "w"], ["y"])
    program = load(foreign(tmp_path / "mul.onnx", [x, w], node, [y], [weight])).verify()
    np.testing.assert_array_equal(program([1.0, 2.0]), np.float32([3, 6]), strict=True)
    with pytest.raises(InputError, match=r"0\.1 is no number of float32"):
        program([0.1])


def test_files_that_are_no_programs_are_refused(tmp_path):
    (tmp_path / "text.onnx").write_text("no model")
    with pytest.raises(PyTensorONNXError, match="cannot be read as an ONNX model"):
        load(tmp_path / "text.onnx")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "missing.onnx")
    x = helper.make_tensor_value_info("x", onnx.TensorProto.STRING, ["n"])
    y = helper.make_tensor_value_info("y", onnx.TensorProto.STRING, ["n"])
    node = helper.make_node("Identity", ["x"], ["y"])
    with pytest.raises(PyTensorONNXError, match="x cannot be given or returned"):
        load(foreign(tmp_path / "text.onnx", [x], node, [y]))
