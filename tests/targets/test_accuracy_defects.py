"""Kernels of the installed runtime, and definitions of the standard, that are inaccurate."""

import mpmath
import numpy as np
import pytest
from onnx import TensorProto, helper
from onnxruntime import InferenceSession

from tests.targets.conftest import operators

REFERENCES = {
    "Sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "Tanh": mpmath.tanh,
    "Sin": mpmath.sin,
    "Cos": mpmath.cos,
}


@pytest.mark.parametrize(
    ("op_type", "dtype"),
    [
        ("Sigmoid", "float32"),
        *((op_type, "float64") for op_type in ("Cos", "Sigmoid", "Sin", "Tanh")),
    ],
)
def test_inaccurate_kernels_are_several_ulp_off(run, op_type, dtype):
    x = np.linspace(-10, 0, 2001).astype(dtype)
    with mpmath.workprec(120):
        expected = [REFERENCES[op_type](mpmath.mpf(float(value))) for value in x]
        exact = np.array([float(value) for value in expected])
        found = run(op_type, x)
        errors = [abs(mpmath.mpf(float(a)) - b) for a, b in zip(found, expected, strict=True)]
    assert np.max(np.array(errors, float) / np.spacing(np.abs(exact.astype(x.dtype)))) > 3


def test_sigmoid_of_minus_thirty_has_three_digits(run):
    assert abs(run("Sigmoid", np.array([-30.0]))[0] / np.exp(-30.0) - 1) > 1e-4


def selu(x):
    return 1.0507009873554805 * (x if x > 0 else 1.6732632423543772 * mpmath.expm1(x))


def softplus(x):
    return mpmath.log1p(mpmath.exp(x))


def gelu(x):
    return x * (1 + mpmath.tanh(mpmath.sqrt(2 / mpmath.pi) * (x + 0.044715 * x**3))) / 2


# Function, opset and lowest argument; from opset 19 on, some have no kernel in float64 at all.
DEFINED = {
    "Elu": (mpmath.expm1, 18, -3),
    "Gelu": (gelu, 20, -3),
    "HardSwish": (lambda x: x * (x / 6 + 0.5), 18, -2.9),
    "Mish": (lambda x: x * mpmath.tanh(softplus(x)), 18, -40),
    "Selu": (selu, 18, -3),
    "Softplus": (softplus, 18, -40),
}


@pytest.mark.parametrize("op_type", operators("coarse definitions"))
def test_definitions_of_the_standard_are_coarse(run, op_type):
    reference, opset, lowest = DEFINED[op_type]
    attributes = {"approximate": "tanh"} if op_type == "Gelu" else {}
    x = np.linspace(lowest, -1e-9, 101)
    with mpmath.workprec(120):
        expected = np.array([float(reference(mpmath.mpf(float(value)))) for value in x])
    found = run(op_type, x, opset=opset, **attributes)
    assert np.max(np.abs(found / expected - 1)) > 1e-10


def test_group_normalization_cancels(run):
    x = 1000 + np.array([[[-1, 1, -1, 1]]], "float32").repeat(64, axis=2)
    one = np.ones(1, "float32")
    found = run("GroupNormalization", x, one, 0 * one, num_groups=1)
    assert np.max(np.abs(found - (x - 1000))) > 1e-3


def test_gates_of_lstm_lose_small_results(run):
    """The memory is the sigmoid of the input gate, as the candidate is nearly one."""
    x = np.full((1, 1, 1), -15, "float32")
    w = np.array([1, 0, 1, -1], "float32").reshape(1, 4, 1)
    *_, memory = run("LSTM", x, w, np.zeros((1, 4, 1), "float32"), hidden_size=1, outputs=3)
    assert abs(memory.item() * (1 + np.exp(15)) - 1) > 0.1


def test_rnn_loses_small_results(run):
    x = np.full((1, 1, 1), 1e-7, "float32")
    y = run("RNN", x, np.ones((1, 1, 1), "float32"), np.zeros((1, 1, 1), "float32"), hidden_size=1)
    assert abs(y.item() / 1e-7 - 1) > 0.1


def test_shrink_rounds_to_float32(run):
    x = np.linspace(1, 3, 101)
    assert np.max(np.abs(run("Shrink", x, bias=0.25) - (x - 0.25))) > 1e-8


def test_a_normalizer_loses_signs_in_the_place_of_its_operand():
    x = np.array([[-3.0, -4.0]], "float32")
    domain = "ai.onnx.ml"
    nodes = [
        helper.make_node("Scaler", ["x"], ["a"], domain=domain, offset=[0.0], scale=[1.0]),
        helper.make_node("Normalizer", ["a"], ["b"], domain=domain, norm="L2"),
        helper.make_node("Neg", ["b"], ["y"]),
    ]
    values = {
        name: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 2]) for name in "xaby"
    }
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(domain, 3)]

    def call(known: str) -> np.ndarray:
        told = [values[name] for name in known]
        graph = helper.make_graph(nodes, "rows", [values["x"]], [values["y"]], value_info=told)
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        return InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]

    np.testing.assert_allclose(call("a"), [[0.6, 0.8]], rtol=1e-6)
    np.testing.assert_allclose(call("ab"), [[-0.6, -0.8]], rtol=1e-6)
