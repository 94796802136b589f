"""The checker refuses wrong models, but for a known defect of its shape inference."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from pytensor_onnx import VerificationError, export_onnx, from_onnx, load
from pytensor_onnx.exporting.files.file_verification import verify_file
from pytensor_onnx.exporting.verification.model_check import check_model
from tests.importing.models import by_runtime, model_of

X = np.random.default_rng(0).normal(size=(1, 1, 4, 4)).astype("float32")


def pool(shape, *, opset=18, more=(), **attributes) -> onnx.ModelProto:
    """Return a model of a MaxPool with positions, whose result has a declared shape."""
    window = {"kernel_shape": [2, 2], "strides": [3, 3], "pads": [1, 1, 1, 1], "ceil_mode": 1}
    node = helper.make_node("MaxPool", ["x"], ["y", "i"], **{**window, **attributes})
    return model_of(
        [node, *more],
        inputs={"x": (1, 1, 4, 4)},
        outputs={"y": shape, "i": shape},
        constants={"w": np.ones((3, 3), "float32")},
        dtypes={"i": TensorProto.INT64},
        opset=opset,
    )


def test_a_file_whose_windows_the_inference_counts_wrongly_is_accepted_with_a_note(tmp_path):
    model, path = pool((1, 1, 2, 2)), tmp_path / "pool.onnx"
    with pytest.raises(onnx.shape_inference.InferenceError):
        onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)
    for note in (str(load(path).verify().verification), next(verify_file(path))):
        assert "starts behind the array" in note
        assert "opset_version=22" in note


@pytest.mark.parametrize("opset", [18, 21, 22])
def test_a_pool_is_exported_with_the_padding_of_its_windows(opset):
    model = pool((1, 1, 2, 2))
    graph = from_onnx(model)
    program = export_onnx(graph.inputs, graph.outputs, opset_version=opset)
    assert not program.verification.note
    for found, expected in zip(program(X), by_runtime(model, X), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "model",
    [
        pool((1, 1, 3, 3)),
        pool((1, 1, 2, 5)),
        pool((1, 1, 2, 2), opset=22, kernel_shape=[3, 3]),
        pool((1, 1, 2, 2), more=[helper.make_node("MatMul", ["x", "w"], ["z"])]),
        pool((1, 1, 2, 2), ceil_mode=0, strides=[1, 1]),
        pool((1, 1, 2, 2), kernel_shape=[2, 2, 2]),
    ],
    ids=["as inferred", "size", "no defect", "another node", "no ceil mode", "rank"],
)
def test_everything_else_stays_an_error(model):
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        with pytest.raises(VerificationError, match="refuses the model"):
            check_model(model)
    else:
        assert check_model(model) == ""
