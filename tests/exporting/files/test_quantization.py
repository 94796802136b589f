"""Models with 8-bit weights, made by ONNX Runtime's tools."""

import numpy as np
import onnx
import onnxruntime
import pytensor.tensor as pt
import pytest

from pytensor_onnx import ArgumentError, InputError, export_onnx, nn, quantize_onnx

RNG = np.random.default_rng(0)
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
