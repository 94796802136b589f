"""Every layer of the installed pytensor-ml exports to its operators, and gives the same numbers."""

import inspect

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.traversal import graph_inputs

from pytensor_onnx import nn
from tests.conftest import compare_onnx_and_py, op_types

layers = pytest.importorskip("pytensor_ml.layers")
activations = pytest.importorskip("pytensor_ml.activations")
pytensorf = pytest.importorskip("pytensor_ml.pytensorf")

RNG = np.random.default_rng(0)
ROW, SEQUENCE, IMAGE = (4,), (6, 4), (6, 5, 4)

DENSE = ["MatMul", "Add"]
HEADS = ["Reshape", "Transpose"]
ATTENTION = [*3 * DENSE, *3 * HEADS, "MatMul", "Mul", "Softmax", "MatMul", *HEADS, *DENSE, "Add"]
FEED_FORWARD = [*DENSE, "Gelu", *DENSE, "Add"]
NORMS = 2 * ["LayerNormalization"]
RMS = ["Pow", "ReduceMean", "Add", "Sqrt", "Div", "Mul"]
GROUPS = ["Transpose", "Reshape", "InstanceNormalization", "Reshape", "Transpose"]
GATED = ["Gemm", "Split", "Mul", "Sigmoid_float32", "Mul", "Mul", "Gemm"]

CASES = {
    "LayerNorm": (lambda: layers.LayerNorm("n", n_in=4), ROW, NORMS[:1]),
    "LayerNorm, plain": (lambda: layers.LayerNorm("n", n_in=4, affine=False), ROW, NORMS[:1]),
    "RMSNorm": (lambda: layers.RMSNorm("n", n_in=4), ROW, RMS),
    "GroupNorm": (
        lambda: layers.GroupNorm("n", n_in=4, n_groups=2),
        IMAGE,
        [*GROUPS, "Mul", "Add"],
    ),
    "GroupNorm, plain": (
        lambda: layers.GroupNorm("n", n_in=4, n_groups=2, affine=False),
        IMAGE,
        GROUPS,
    ),
    "BatchNorm": (lambda: layers.BatchNorm("n", n_in=4), ROW, ["BatchNormalization"]),
    "BatchNorm, plain": (
        lambda: layers.BatchNorm("n", n_in=4, affine=False),
        ROW,
        ["BatchNormalization"],
    ),
    "FeedForward": (lambda: layers.FeedForward("f", d_model=4), ROW, ["Gemm", "Gelu", "Gemm"]),
    "FeedForward, gated": (
        lambda: layers.FeedForward("f", d_model=4, gated=True, activation=activations.QuickGELU()),
        ROW,
        GATED,
    ),
    "TransformerBlock": (
        lambda: layers.TransformerBlock("t", d_model=4, n_head=2),
        SEQUENCE,
        [*ATTENTION, *FEED_FORWARD, *NORMS],
    ),
    "TransformerBlock, causal, norms last": (
        lambda: layers.TransformerBlock(
            "t", d_model=4, n_head=2, norm_first=False, is_causal=True, dropout=0.1
        ),
        SEQUENCE,
        [*ATTENTION, "Add", *FEED_FORWARD, *NORMS],
    ),
    "ZeroPad1D": (lambda: layers.ZeroPad1D(padding=1), SEQUENCE, ["Pad"]),
    "ConstantPad1D": (lambda: layers.ConstantPad1D(padding=(1, 2), value=3.0), SEQUENCE, ["Pad"]),
    "ReflectionPad1D": (lambda: layers.ReflectionPad1D(padding=2), SEQUENCE, ["Pad"]),
    "ReplicationPad1D": (lambda: layers.ReplicationPad1D(padding=2), SEQUENCE, ["Pad"]),
    "ReLU": (activations.ReLU, ROW, ["Relu"]),
    "LeakyReLU": (activations.LeakyReLU, ROW, ["LeakyRelu"]),
    "Tanh": (activations.Tanh, ROW, ["Tanh"]),
    "Sigmoid": (activations.Sigmoid, ROW, ["Sigmoid_float32"]),
    "SoftPlus": (activations.SoftPlus, ROW, ["Softplus"]),
    "GELU": (activations.GELU, ROW, ["Gelu"]),
    "GELU, exact": (lambda: activations.GELU(approximate=False), ROW, ["Gelu"]),
    "Swish": (activations.Swish, ROW, ["Sigmoid_float32", "Mul"]),
    "QuickGELU": (activations.QuickGELU, ROW, ["Mul", "Sigmoid_float32", "Mul"]),
    "Softmax": (activations.Softmax, ROW, ["Softmax"]),
    "nn.silu as an activation": (
        lambda: layers.Sequential(layers.Linear("l", n_in=4, n_out=4), nn.silu),
        ROW,
        ["Gemm", "Sigmoid", "Mul"],
    ),
}
ELSEWHERE = {
    "test_layers": {
        *("CausalSelfAttention", "Concatenate", "Dropout", "Embedding", "Flatten", "Linear"),
        *("MultiheadAttention", "Squeeze"),
    },
    "test_spatial_layers": {
        *("AvgPool1D", "AvgPool2D", "ConstantPad2D", "Conv1D", "Conv2D", "ConvTranspose1D"),
        *("ConvTranspose2D", "MaxPool1D", "MaxPool2D", "ReflectionPad2D", "ReplicationPad2D"),
        "ZeroPad2D",
    },
    "test_upsampling": {"Upsample1D", "Upsample2D"},
    "test_recurrent": {"Bidirectional", "GRU", "LSTM", "RNN"},
}


@pytest.mark.few(7)
@pytest.mark.parametrize("name", CASES)
def test_layer_is_its_operators(name):
    make, sizes, operators = CASES[name]
    with pytensor.config.change_flags(floatX="float32"):
        x = layers.Input("x", shape=(None, *sizes))
        (y,) = pytensorf.rewrite_for_prediction([make()(x)])
    for v in graph_inputs([y]):
        if isinstance(v, pt.sharedvar.TensorSharedVariable) and v.type.dtype == "float32":
            v.set_value(RNG.uniform(0.5, 1.5, v.get_value().shape).astype("float32"))
    value = RNG.standard_normal((3, *sizes)).astype("float32")
    program = compare_onnx_and_py([x], y, [value], rtol=1e-4, atol=1e-5)
    assert sorted(op_types(program)) == sorted(operators)


@pytest.mark.parametrize("affine", [True, False])
def test_batch_norm_without_running_statistics_takes_those_of_the_batch(affine):
    with pytensor.config.change_flags(floatX="float32"):
        layer = layers.BatchNorm("n", n_in=4, affine=affine, track_running_stats=False)
        x = layers.Input("x", shape=(None, *IMAGE))
        (y,) = pytensorf.rewrite_for_prediction([layer(x)])
    value = RNG.standard_normal((3, *IMAGE)).astype("float32")
    program = compare_onnx_and_py([x], y, [value], rtol=1e-4, atol=1e-5)
    expected = (value - value.mean((0, 1, 2))) / np.sqrt(value.var((0, 1, 2)) + 1e-5)
    (found,) = program(value)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_no_layer_is_left_out():
    installed = {
        name
        for module in (layers, activations)
        for name, kind in vars(module).items()
        if inspect.isclass(kind)
        and issubclass(kind, layers.Layer)
        and not inspect.isabstract(kind)
        and kind.__module__.startswith("pytensor_ml.")
    } - {"Activation", "Layer", "Recurrent"}
    tested = {name.partition(",")[0] for name in CASES}
    assert installed <= tested.union(*ELSEWHERE.values())
