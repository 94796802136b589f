import subprocess
import sys
import zlib
from collections import Counter
from math import prod, sqrt
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx import VerificationError
from tests.conftest import PY, op_types

CASE = Path(__file__).parents[1] / "data" / "yolo11n_case.npz"
ROOT = Path(__file__).parents[2]


def recorded_value(name, shape):
    """The formula that the recorded case was computed with."""
    r = np.random.RandomState(zlib.crc32(name.encode()))
    if name.endswith("dfl.conv.weight"):
        return np.arange(16).reshape(shape)
    if len(shape) == 4:
        return r.standard_normal(shape) * 1.4 / sqrt(prod(shape[1:]))
    if name.endswith("bn.weight"):
        return 0.8 + 0.4 * r.random_sample(shape)
    if name.endswith("running_mean"):
        return 0.1 * r.standard_normal(shape)
    if name.endswith("running_var"):
        return 0.6 + 0.4 * r.random_sample(shape)
    return 0.2 * r.standard_normal(shape)


@pytest.fixture(scope="module")
def shapes(yolo11n):
    return yolo11n.model.Yolo11n().state.shapes


@pytest.fixture(scope="module")
def weights(shapes):
    return {
        name: np.zeros(shape, "int64")
        if name.endswith("num_batches_tracked")
        else recorded_value(name, shape).astype("float32")
        for name, shape in shapes.items()
    }


@pytest.fixture(scope="module")
def weights_file(weights, tmp_path_factory):
    path = tmp_path_factory.mktemp("yolo11n") / "weights.npz"
    np.savez(path, **weights)
    return path


@pytest.fixture(scope="module")
def case():
    with np.load(CASE) as file:
        return dict(file)


@pytest.fixture(scope="module")
def graph(yolo11n, weights):
    """The network for the recorded case: images, raw boxes, raw scores, decoded."""
    model = yolo11n.model.Yolo11n()
    model.state.set_values(weights)
    images = pt.tensor("images", shape=(1, 3, 64, 96), dtype="float32")
    heads = model(images)
    return images, [heads.box_logits, heads.class_logits, model.detect.decode(heads, 64, 96)]


def assert_recorded(case, boxes, scores, decoded):
    for found in (boxes, scores, decoded):
        assert found.dtype == "float32"
    np.testing.assert_allclose(boxes, case["boxes"], rtol=0, atol=2e-4)
    np.testing.assert_allclose(scores, case["scores"], rtol=0, atol=2e-4)
    np.testing.assert_allclose(decoded[:, :4], case["decoded"][:, :4], rtol=0, atol=1e-2)
    np.testing.assert_allclose(decoded[:, 4:], case["decoded"][:, 4:], rtol=0, atol=5e-5)


def test_parameters_are_those_of_the_public_files(shapes):
    statistics = ("running_mean", "running_var", "num_batches_tracked")
    parameters = {n: s for n, s in shapes.items() if not n.endswith(statistics)}
    assert len(shapes) == 499
    assert len(parameters) == 256
    assert sum(map(prod, parameters.values())) == 2_624_080
    assert shapes["model.10.m.0.attn.pe.conv.weight"] == (128, 1, 3, 3)
    assert shapes["model.22.m.0.m.1.cv2.bn.running_var"] == (64,)
    assert shapes["model.23.cv3.1.0.1.conv.weight"] == (80, 128, 1, 1)
    assert shapes["model.23.cv2.2.2.bias"] == (64,)


def test_all_but_statistics_and_bins_are_trainable(yolo11n):
    trainable = yolo11n.model.Yolo11n().state.trainable
    assert sum(prod(v.type.shape) for v in trainable) == 2_624_064


@pytest.mark.slow
def test_recorded_case_agrees_in_mode_onnx(graph, case):
    images, outputs = graph
    run = pytensor.function([images], outputs, mode="ONNX")
    assert_recorded(case, *run(case["images"]))


@pytest.mark.slow
def test_recorded_case_agrees_in_pytensor_itself(graph, case):
    images, outputs = graph
    with pytensor.config.change_flags(cxx=""):
        run = pytensor.function([images], outputs, mode=PY)
    assert_recorded(case, *run(case["images"]))


@pytest.fixture(scope="module")
def dynamic(yolo11n, weights_file):
    """A file for batches of any size, with all outputs."""
    return yolo11n.export.export(
        None,
        weights=weights_file,
        size=(64, 96),
        batch=None,
        raw_heads=True,
        nms={"max_per_class": 2, "iou_threshold": 0.45, "score_threshold": 0.97},
        verify=False,
    )


@pytest.fixture(scope="module")
def session(dynamic):
    return onnxruntime.InferenceSession(dynamic.proto.SerializeToString())


@pytest.mark.slow
def test_batches_of_any_size_need_no_shape_arithmetic(dynamic):
    operators = Counter(op_types(dynamic))
    assert not {"Shape", "Where", "Expand", "If", "Squeeze"} & set(operators)
    # The latter two of what non-maximum suppression finds: image and class.
    assert operators["Cast"] == 2
    assert operators["Conv"] == 87
    assert operators["Reshape"] == 10


@pytest.mark.slow
def test_file_has_the_inputs_and_outputs_described(session):
    shapes = {value.name: value.shape for value in [*session.get_inputs(), *session.get_outputs()]}
    assert shapes.pop("detections")[1] == 7
    assert shapes == {
        "images": ["batch", 3, 64, 96],
        "output0": ["batch", 84, 126],
        "p3": ["batch", 144, 8, 12],
        "p4": ["batch", 144, 4, 6],
        "p5": ["batch", 144, 2, 3],
    }


def test_recorded_case_agrees_in_the_file(session, case):
    decoded, *maps, _ = session.run(None, {"images": case["images"]})
    flat = np.concatenate([m.reshape(1, 144, -1) for m in maps], axis=2)
    assert_recorded(case, flat[:, :64], flat[:, 64:], decoded)


def test_batches_of_any_size_agree_with_single_images(session):
    images = np.random.default_rng(0).random((3, 3, 64, 96), dtype="float32")
    (together,) = session.run(["output0"], {"images": images})
    assert together.shape == (3, 84, 126)
    for i in range(3):
        (alone,) = session.run(["output0"], {"images": images[i : i + 1]})
        np.testing.assert_allclose(alone[0], together[i], rtol=1e-4, atol=1e-3)


def test_detections_are_the_boxes_after_suppression(session):
    images = np.random.default_rng(0).random((2, 3, 64, 96), dtype="float32")
    decoded, detections = session.run(["output0", "detections"], {"images": images})
    assert detections.dtype == "float32"
    assert len(detections) > 20
    for image, *box, score, label in detections:
        candidates = decoded[int(image), :, decoded[int(image), 4 + int(label)] == score]
        assert any((candidate[:4] == box).all() for candidate in candidates)
        assert score > 0.97
    kept = Counter(map(tuple, detections[:, [0, 6]].astype(int)))
    assert max(kept.values()) == 2
    assert set(kept) == set(zip(*np.nonzero(decoded[:, 4:].max(axis=2) > 0.97), strict=True))


@pytest.fixture(scope="module")
def static(yolo11n, weights_file):
    return yolo11n.export.export(None, weights=weights_file, size=(320, 320), verify=False)


@pytest.mark.slow
def test_static_file_has_the_nodes_that_an_expert_would_write(static):
    counts = Counter(op_types(static))
    assert counts == {
        "Conv": 87,
        "Sigmoid": 78,
        "Mul": 77 + 2,
        "Add": 14 + 1,
        "Concat": 17 + 3,
        "Split": 10,
        "Reshape": 3 + 6 + 1,
        "MaxPool": 3,
        "Resize": 2,
        "MatMul": 2 + 2,
        "Softmax": 2,
        "Transpose": 2,
    }
    assert counts.total() <= 319


def test_static_file_has_the_public_names_and_sizes(static, shapes):
    graph = static.model.graph
    assert {str(value) for value in graph.initializers} >= {
        name for name in shapes if name.endswith("conv.weight")
    }
    assert static.proto.graph.output[0].name == "output0"
    for value in onnx.shape_inference.infer_shapes(static.proto).graph.value_info:
        assert all(dim.dim_value for dim in value.type.tensor_type.shape.dim), value.name


def test_sizes_that_do_not_fit_are_refused(yolo11n, tmp_path):
    for size in [(320, 300), (16, 32), (0, 32)]:
        with pytest.raises(ValueError, match="multiples of 32"):
            yolo11n.export.export(tmp_path / "yolo11n.onnx", size=size)
    assert not list(tmp_path.iterdir())


def test_weights_that_do_not_fit_are_named_at_once(yolo11n, weights, tmp_path):
    bad = dict(weights)
    del bad["model.0.conv.weight"], bad["model.23.cv2.2.2.bias"]
    del bad["model.0.bn.num_batches_tracked"]
    bad["model.1.conv.weight"] = bad["model.1.conv.weight"].transpose(1, 0, 2, 3)
    bad["model.24.conv.weight"] = np.zeros((3, 3), "float32")
    bad["model.2.cv1.bn.bias"] = np.zeros(32, "int64")
    np.savez(tmp_path / "bad.npz", **bad)
    with pytest.raises(ValueError, match="5 of the weights do not fit") as error:
        yolo11n.export.export(tmp_path / "a.onnx", weights=tmp_path / "bad.npz", size=(64, 64))
    assert sorted(str(error.value).splitlines()[1:]) == [
        "- misshapen: model.1.conv.weight is (16, 32, 3, 3), expected (32, 16, 3, 3)",
        "- missing: model.0.conv.weight (16, 3, 3, 3)",
        "- missing: model.23.cv2.2.2.bias (64,)",
        "- not of floats: model.2.cv1.bn.bias is of int64",
        "- unexpected: model.24.conv.weight (3, 3)",
    ]
    assert not (tmp_path / "a.onnx").exists()


def test_files_that_hold_no_weights_are_refused(yolo11n, tmp_path):
    text, single = tmp_path / "text.npz", tmp_path / "single.npy"
    text.write_text("not an npz file")
    np.save(single, np.zeros(3))
    for path in (text, single, tmp_path / "absent.npz"):
        with pytest.raises(ValueError, match=f"{path.name} cannot be read as an npz file"):
            yolo11n.export.export(None, weights=path, size=(64, 64))


def test_initial_weights_are_repeatable(yolo11n, shapes):
    first, again = (yolo11n.weights.initial_weights(shapes, seed=1) for _ in range(2))
    other = yolo11n.weights.initial_weights(shapes, seed=2)
    yolo11n.model.Yolo11n().state.set_values(first)
    for name, value in first.items():
        np.testing.assert_array_equal(value, again[name])
    assert (first["model.3.conv.weight"] != other["model.3.conv.weight"]).all()
    np.testing.assert_array_equal(first["model.23.dfl.conv.weight"].ravel(), np.arange(16))


def test_images_are_resized_and_scaled(yolo11n, tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (48, 80, 3)).astype("uint8")
    np.save(tmp_path / "image.npy", pixels)
    image = yolo11n.export.read_image(tmp_path / "image.npy", (96, 160))
    assert (image.shape, image.dtype) == ((1, 3, 96, 160), "float32")
    np.testing.assert_array_equal(
        image[0, :, ::2, 1::2], np.float32(pixels / 255).transpose(2, 0, 1)
    )
    np.save(tmp_path / "grey.npy", pixels[:, :, 0])
    (tmp_path / "text.npy").write_text("no image")
    for name, message in [
        ("grey.npy", r"has the shape \(48, 80\) instead of \(height, width, 3\)"),
        ("text.npy", "cannot be read as an image"),
        ("absent.npy", "cannot be read as an image"),
    ]:
        with pytest.raises(ValueError, match=message):
            yolo11n.export.export(None, size=(64, 64), image=tmp_path / name)


def ill_conditioned_weights(yolo11n, seed=3):
    """Weights whose activations have unit variance and whose norms and heads have large gains."""
    model = yolo11n.model.Yolo11n(training=True)
    rng = np.random.default_rng(seed)
    values = yolo11n.weights.initial_weights(model.state.shapes)
    for name, value in values.items():
        if name.endswith("bn.weight"):
            values[name] = np.float32(8 * rng.uniform(0.8, 1.2, value.shape))
        elif name.endswith("bn.bias"):
            values[name] = np.float32(0.3 * rng.normal(size=value.shape))
        elif "running" in name or name.endswith(".2.bias"):
            values[name] = np.zeros_like(value)
    model.state.set_values(values)
    images = pt.tensor("images", shape=(None, 3, 64, 64), dtype="float32")
    heads = model(images)
    spread = [heads.box_logits.std(), heads.class_logits.std()]
    statistics = model.state.updates
    run = pytensor.function([images], [*spread, *statistics.values()], mode="ONNX")
    boxes, classes, *found = run(np.float32(rng.normal(size=(4, 3, 64, 64))))
    values.update(
        {v.name: np.float32(new / 0.03) for v, new in zip(statistics, found, strict=True)}
    )
    for name in values:
        if name.startswith("model.23.cv") and name.endswith(".2.weight"):
            values[name] = np.float32(values[name] * (50 / (boxes if "cv2" in name else classes)))
    return values


# `tests/exporting/verification` refuses wrong weights of ill-conditioned networks in every run.
@pytest.mark.sweep
def test_ill_conditioned_weights_are_accepted_and_wrong_files_refused(yolo11n, tmp_path):
    values = ill_conditioned_weights(yolo11n)
    np.savez(tmp_path / "weights.npz", **values)
    program = yolo11n.export.export(None, weights=tmp_path / "weights.npz", size=(64, 64))
    assert "as near to float64 as rounding in PyTensor" in str(program.verification)
    image = tmp_path / "image.npy"
    np.save(image, np.random.default_rng(0).random((64, 64, 3)))
    unverified = yolo11n.export.export(
        None, weights=tmp_path / "weights.npz", size=(64, 64), image=image, verify=False
    )
    assert str(unverified.verification) == "not verified"
    weight = program.model.graph.initializers["model.4.cv1.conv.weight"]
    weight.const_value = ir.tensor(weight.const_value.numpy() * np.float32(1.001), name=weight.name)
    del program.session
    with pytest.raises(VerificationError, match="Compared with float64, ONNX Runtime is"):
        program.verify()


@pytest.mark.slow
def test_command_line_writes_the_file(weights_file, tmp_path):
    script = ROOT / "examples" / "yolo11n" / "export.py"
    options = ["--weights", weights_file, "--size", "64", "96", "--dynamic-batch", "--raw-heads"]
    np.save(tmp_path / "image.npy", np.random.default_rng(0).random((64, 96, 3)))
    output = ["--nms", "--image", tmp_path / "image.npy", "--output", tmp_path / "yolo11n.onnx"]
    command = [sys.executable, script, *options, *output]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "wrote" in result.stdout
    assert "equal to PyTensor on given inputs (images [1, 3, 64, 96])" in result.stdout
    session = onnxruntime.InferenceSession(tmp_path / "yolo11n.onnx")
    assert len(session.get_outputs()) == 5
    command[command.index("96")] = "95"
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert result.returncode == 1
    assert result.stderr.strip().splitlines()[-1] == (
        "images of 64x95: both sides must be multiples of 32"
    )
