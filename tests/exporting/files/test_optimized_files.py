"""Models with 8-bit weights, made by ONNX Runtime's tools."""

import json

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytensor
import pytensor.tensor as pt
import pytest
from click.testing import CliRunner
from onnx import helper

from pytensor_onnx import (
    ArgumentError,
    InputError,
    MissingFolderError,
    UnsupportedOpError,
    VerificationError,
    diff_onnx,
    export_onnx,
    nn,
    optimize_onnx,
    quantize_onnx,
)
from pytensor_onnx.cli.app import app
from pytensor_onnx.exporting.files import optimized_files

RNG = np.random.default_rng(0)


def write(path, *nodes, **metadata):
    """Write a model of another exporter: x of [batch, 4] to y of [batch, 3]."""
    arrays = {"w": RNG.normal(size=(4, 3)), "b": RNG.normal(size=3)}
    stored = [onnx.numpy_helper.from_array(v.astype("float32"), k) for k, v in arrays.items()]
    x, y = (
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["batch", size])
        for name, size in (("x", 4), ("y", 3))
    )
    graph = helper.make_graph([helper.make_node(*n) for n in nodes], "g", [x], [y], stored)
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="other"
    )
    helper.set_model_props(model, metadata)
    onnx.save(model, path)
    return path


@pytest.fixture
def dense(tmp_path):
    """A dense layer behind two negations."""
    return write(
        tmp_path / "dense.onnx",
        ("Neg", ["x"], ["n"]),
        ("Neg", ["n"], ["p"]),
        ("MatMul", ["p", "w"], ["m"]),
        ("Add", ["m", "b"], ["y"]),
        license="CC0",
    )


def test_operators_are_fused_and_results_stay(dense, tmp_path):
    program = optimize_onnx(dense, tmp_path / "small.onnx")
    assert [node.op_type for node in program.model.graph] == ["Gemm"]
    assert program.model.metadata_props["license"] == "CC0"
    found = diff_onnx(dense, tmp_path / "small.onnx")
    assert found.interface == found.results == ()


def test_options_are_those_of_exports(dense):
    program = optimize_onnx(dense, target="web", precision="float16")
    assert program.target == "web"
    assert str(program) == "ONNXProgram(x: float16[batch, 4] -> y: float16[batch, 3])"
    with pytest.raises(ArgumentError, match="did you mean target"):
        optimize_onnx(dense, taget="web")


def test_test_vectors_stay_where_the_precision_does(tmp_path):
    x = pt.fvector("x")
    file = export_onnx([x], (2 * x).copy("y")).save(tmp_path / "a.onnx", vectors=True)
    assert "test_vectors" in optimize_onnx(file).model.metadata_props
    assert "test_vectors" not in optimize_onnx(file, precision="float16").model.metadata_props


def test_a_state_stays(tmp_path):
    x, n = pt.dvector("x"), pytensor.shared(np.zeros(2), name="n")
    export_onnx([x], x + n, tmp_path / "state.onnx", updates={n: n + 1})
    program = optimize_onnx(tmp_path / "state.onnx")
    program([0.0, 0.0])
    np.testing.assert_array_equal(program.state["n"], [1.0, 1.0])


def test_nothing_is_written_where_results_differ(dense, tmp_path, monkeypatch):
    def other(file):
        graph = original(file)
        graph.outputs[0] = (graph.outputs[0] + 1).copy("y")
        return graph

    original = optimized_files.from_onnx
    monkeypatch.setattr(optimized_files, "from_onnx", other)
    with pytest.raises(VerificationError, match="output 'y' differs from that of"):
        optimize_onnx(dense, tmp_path / "small.onnx")
    assert not (tmp_path / "small.onnx").exists()


def test_errors_come_before_the_work(dense, tmp_path):
    with pytest.raises(MissingFolderError):
        optimize_onnx(dense, tmp_path / "missing" / "a.onnx")
    unknown = write(tmp_path / "unknown.onnx", ("Nothing", ["x"], ["y"]))
    with pytest.raises(UnsupportedOpError, match="Nothing"):
        optimize_onnx(unknown)


def test_the_command_names_file_and_counts(dense):
    def run(*options):
        return CliRunner().invoke(app, ["optimize", str(dense), *options])

    result = run("--target", "web")
    assert result.exit_code == 0, result.output
    assert "nodes: 4 -> 1\n" in result.output
    assert "dense.web.onnx: checked, loaded and equal to PyTensor" in result.output
    assert ir.load(dense.with_name("dense.web.onnx")).producer_name == "pytensor-onnx"
    found = json.loads(run("--json").output)
    assert (found["before"]["nodes"], found["after"]["nodes"]) == (4, 1)


IMAGES = RNG.random((8, 1, 12, 12)).astype("float32")


def weights(*shape):
    return (RNG.normal(size=shape) / np.sqrt(np.prod(shape[1:]))).astype("float32")


@pytest.fixture(scope="module")
def program():
    """Return a small convolutional network."""
    images = pt.tensor("images", shape=(None, 1, 12, 12), dtype="float32")
    hidden = nn.relu(nn.conv2d(images, weights(16, 1, 3, 3), padding=1))
    hidden = nn.relu(nn.conv2d(hidden, weights(32, 16, 3, 3), stride=2))
    logits = hidden.mean(axis=(2, 3)) @ weights(10, 32).T
    return export_onnx([images], {"logits": logits, "label": pt.argmax(logits, axis=-1)})


def run(path, images):
    return onnxruntime.InferenceSession(path).run(None, {"images": images})


def test_weights_are_stored_in_8_bits_and_errors_measured(program, tmp_path):
    result = quantize_onnx(program, tmp_path / "small.onnx")
    assert result.size < 0.5 * result.original_size
    logits, labels = run(result.path, IMAGES)
    exact, exact_labels = program(IMAGES)
    error = np.abs(logits - exact).max() / np.abs(exact).max()
    assert 0 < error < 3 * result.errors["logits"] < 0.15
    assert np.mean(labels == exact_labels) >= 0.75
    assert "errors: logits" in str(result)


def test_calibrated_activations_are_quantized_too(program, tmp_path):
    calls = [[images] for images in np.array_split(IMAGES, 4)]
    result = quantize_onnx(program, tmp_path / "static.onnx", calibration=calls)
    operators = {node.op_type for node in onnx.load(result.path).graph.node}
    assert "QuantizeLinear" in operators
    assert "DynamicQuantizeLinear" not in operators
    logits, _ = run(result.path, IMAGES)
    exact, _ = program(IMAGES)
    pairs = zip(np.split(logits, 4), np.split(exact, 4), strict=True)
    error = max(np.abs(a - b).max() / np.abs(b).max() for a, b in pairs)
    assert result.errors["logits"] == pytest.approx(error, rel=1e-4)
    assert 0 < error < 0.1


def test_weights_share_one_scale_where_channels_have_none(program, tmp_path):
    path = quantize_onnx(program, tmp_path / "small.onnx", per_channel=False).path
    scales = [x for x in onnx.load(path).graph.initializer if x.name.endswith("_scale")]
    assert scales
    assert all(np.prod(x.dims) == 1 for x in scales)


@pytest.mark.parametrize("calibrated", [False, True])
def test_products_do_not_saturate(calibrated, tmp_path):
    x = pt.matrix("x", shape=(None, 64), dtype="float32")
    # Pairs of products of int8 weights exceed 16 bits, which saturate without VNNI.
    program = export_onnx([x], (x @ (1 + weights(64, 32))).copy("y"))
    calls = [[RNG.uniform(0.9, 1, size=(8, 64)).astype("float32")] for _ in range(3)]
    result = quantize_onnx(program, tmp_path / "y.onnx", calibration=calls if calibrated else None)
    exact = program(*calls[0])
    [found] = onnxruntime.InferenceSession(result.path).run(None, {"x": calls[0][0]})
    np.testing.assert_allclose(found, exact, rtol=0.02)
    stored = {weight.data_type for weight in onnx.load(result.path).graph.initializer}
    assert onnx.TensorProto.INT8 not in stored


def test_models_without_float32_weights_are_refused_and_leave_no_file(tmp_path):
    x = pt.matrix("x", shape=(None, 3))
    wide = export_onnx([x], x @ np.eye(3))
    with pytest.raises(ArgumentError, match='precision="float32"'):
        quantize_onnx(wide, tmp_path / "wide.onnx")
    assert not list(tmp_path.iterdir())


def test_calibration_data_is_checked(program, tmp_path):
    with pytest.raises(ArgumentError, match="calibration data is empty"):
        quantize_onnx(program, tmp_path / "a.onnx", calibration=[])
    with pytest.raises(InputError, match="images"):
        quantize_onnx(program, tmp_path / "a.onnx", calibration=[[IMAGES[0]]])
    assert not list(tmp_path.iterdir())


def test_narrowed_graphs_are_quantized(tmp_path):
    x = pt.matrix("x", shape=(None, 64))
    program = export_onnx([x], pt.tanh(x @ weights(64, 64).astype("float64")), precision="float32")
    result = quantize_onnx(program, tmp_path / "small.onnx")
    assert max(result.errors.values()) < 0.05
    assert result.size < 0.5 * result.original_size
