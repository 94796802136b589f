import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx import export_onnx
from tests.conftest import compare_onnx_and_py, op_types

layers = pytest.importorskip("pytensor_ml.layers")
norm = pytest.importorskip("pytensor_ml.layers.norm")

RNG = np.random.default_rng(0)
RMS = ["Pow", "ReduceMean", "Add", "Sqrt", "Div", "Mul"]
GROUP = ["Reshape", "InstanceNormalization", "Reshape", "Mul", "Add"]
CASES = {
    "layer": (norm.LayerNormLayer, {"affine": True}, 2, ["LayerNormalization"]),
    "layer, plain": (norm.LayerNormLayer, {"affine": False}, 0, ["LayerNormalization"]),
    "rms": (norm.RMSNormLayer, {"affine": True}, 1, RMS),
    "rms, plain": (norm.RMSNormLayer, {"affine": False}, 0, RMS),
    "group": (norm.GroupNormLayer, {"affine": True, "n_groups": 2}, 2, GROUP),
    "group, plain": (norm.GroupNormLayer, {"affine": False, "n_groups": 2}, 0, GROUP[:3]),
    "batch": (norm.PredictionBatchNormLayer, {"affine": True}, 4, ["BatchNormalization"]),
    "batch, plain": (norm.PredictionBatchNormLayer, {"affine": False}, 2, ["BatchNormalization"]),
}


def applied(case, x):
    """Return a layer of pytensor-ml on an array (N, *S, 6), its parameters and their values."""
    kind, options, count, _ = CASES[case]
    parameters = [pt.vector(f"p{i}", shape=(6,), dtype=x.dtype) for i in range(count)]
    with pytensor.config.change_flags(floatX=x.dtype):
        # pytensor-ml adds epsilon as a Python float.
        y = kind(n_in=6, epsilon=1e-3, **options)(x, *parameters)
    return y, parameters, [RNG.uniform(0.5, 1.5, 6).astype(x.dtype) for _ in parameters]


@pytest.mark.parametrize("case", CASES)
def test_a_layer_is_one_operator_on_rows(case):
    x = pt.matrix("x", shape=(None, 6), dtype="float32")
    y, parameters, _ = applied(case, x)
    program = export_onnx([x, *parameters], y, verify=False)
    assert [name for name in op_types(program) if name != "Unsqueeze"] == CASES[case][-1]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.few(1)
def test_layers_and_their_gradients_compute_the_same(dtype):
    x = pt.tensor("x", shape=(None, 3, None, 6), dtype=dtype)
    value = RNG.standard_normal((2, 3, 4, 6)).astype(dtype)
    weight = RNG.standard_normal((2, 3, 4, 6)).astype(dtype)
    inputs, values, results = [x], [value], []
    for case in CASES:
        y, parameters, given = applied(case, x)
        inputs += parameters
        values += given
        results += [y, *pytensor.grad((y * weight).sum(), [x, *parameters])]
    rtol, atol = (1e-4, 1e-4) if dtype == "float32" else (1e-10, 1e-11)
    compare_onnx_and_py(inputs, results, values, rtol=rtol, atol=atol)


def test_the_gradient_of_a_layer_is_that_of_the_operation():
    x = pt.matrix("x", shape=(None, 6), dtype="float32")
    y, parameters, _ = applied("layer", x)
    program = export_onnx([x, *parameters], pytensor.grad((y**2).sum(), x), verify=False)
    assert "OpFromGraph" not in op_types(program)
    assert len(op_types(program)) < 30


def test_images_are_normalised_channels_first():
    x = pt.tensor("x", shape=(None, 4, 4, 6), dtype="float32")
    y, parameters, _ = applied("batch", x)
    names = op_types(export_onnx([x, *parameters], y, verify=False))
    assert names == ["Transpose", "BatchNormalization", "Transpose"]


def test_a_layer_of_mixed_dtypes_is_left_as_it_is():
    x = pt.matrix("x", shape=(None, 6), dtype="float32")
    parameters = [pt.vector(name, shape=(6,), dtype="float64") for name in "ab"]
    y = norm.LayerNormLayer(n_in=6, epsilon=1e-3, affine=True)(x, *parameters)
    values = [RNG.standard_normal((2, 6)).astype("float32"), np.ones(6), np.ones(6)]
    program = compare_onnx_and_py([x, *parameters], y, values, rtol=1e-5, atol=1e-6)
    assert "LayerNormalization" not in op_types(program)


def test_results_keep_their_names():
    x = pt.tensor("x", shape=(None, 4, 4, 6))
    y = layers.GroupNorm("g", n_in=6, n_groups=2)(x)
    assert export_onnx([x], y, verify=False).model.graph.outputs[0].name == "g_output"
