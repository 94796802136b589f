"""Upsampling layers of pytensor-ml become one Resize each."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from tests.conftest import compare_onnx_and_py, op_types

layers = pytest.importorskip("pytensor_ml.layers")

X = np.random.default_rng(0).normal(size=(2, 4, 5, 3)).astype("float32")


@pytest.fixture(autouse=True)
def float32():
    with pytensor.config.change_flags(floatX="float32"):
        yield


@pytest.mark.each_value
@pytest.mark.parametrize("shape", [(None, None, 3), (4, 5, 3)])
@pytest.mark.parametrize(
    "options",
    [
        {"scale_factor": 2},
        {"scale_factor": (1, 3)},
        {"scale_factor": 2, "mode": "bilinear"},
        {"scale_factor": (2, 3), "mode": "bilinear", "align_corners": True},
    ],
    ids=str,
)
def test_factors_are_scales(shape, options):
    x = layers.Input("x", shape=(None, *shape))
    y = layers.Upsample2D(**options)(x)
    program = compare_onnx_and_py([x], y, [X], atol=1e-6)
    assert op_types(program) == ["Transpose", "Resize", "Transpose"]


@pytest.mark.parametrize("shape", [(None, None, 3), (4, 5, 3)])
@pytest.mark.parametrize("aligned", [False, True])
def test_sizes_of_interpolation_are_sizes(shape, aligned):
    x = layers.Input("x", shape=(None, *shape))
    layer = layers.Upsample2D(size=(3, 11), mode="bilinear", align_corners=aligned)
    program = compare_onnx_and_py([x], layer(x), [X], atol=1e-6)
    assert "Resize" in op_types(program)
    assert "Gather" not in op_types(program)


@pytest.mark.parametrize("size", [(8, 10), (6, 5), (7, 3), (3, 11)])
def test_known_sizes_of_repetition_are_one_operator(size):
    x = layers.Input("x", shape=(None, 4, 5, 3))
    program = compare_onnx_and_py([x], layers.Upsample2D(size=size)(x), [X])
    assert op_types(program) == ["Transpose", "Resize", "Transpose"]


@pytest.mark.parametrize("shape", [(None, None, 3), (6, 5, 3)])
def test_repetition_that_float32_may_not_tell_is_a_gather(shape):
    x = layers.Input("x", shape=(None, *shape))
    value = np.tile(X, (1, 2, 1, 1))[:, :6]
    program = compare_onnx_and_py([x], layers.Upsample2D(size=(10, 5))(x), [value])
    assert "Resize" not in op_types(program)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_sequences(mode):
    x = layers.Input("x", shape=(None, None, 3))
    y = layers.Upsample1D(scale_factor=2, mode=mode)(x)
    program = compare_onnx_and_py([x], y, [X[0]], atol=1e-6, assume_finite=True)
    assert op_types(program) == ["Transpose", "Resize", "Transpose"]


def test_gathers_of_another_kind_are_left_alone():
    x = layers.Input("x", shape=(None, 4, 5, 3))
    shifted = pt.take(x, (pt.arange(8) * x.shape[1] + 1) // 8, axis=1)
    program = compare_onnx_and_py([x], shifted, [X])
    assert "Resize" not in op_types(program)


def test_intermediate_result_that_is_used_twice_stays():
    x = layers.Input("x", shape=(None, 4, 5, 3))
    y = layers.Upsample2D(scale_factor=2)(x)
    rows = y.owner.inputs[0]
    compare_onnx_and_py([x], [y, rows.sum(axis=1)], [X], atol=1e-5)
