"""Operators of ONNX Runtime that its own tools and those for PyTorch write equal its results."""

from collections import Counter
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytensor
import pytensor.tensor as pt
import pytest
from onnx import TensorProto, helper

from pytensor_onnx import export_onnx, from_onnx
from tests.importing.models import evaluated, model_of

RNG = np.random.default_rng(0)
MICROSOFT = "com.microsoft"


def floats(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype("float32")


def levels(*shape: int, dtype: str = "uint8") -> np.ndarray:
    return RNG.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape).astype(dtype)


S, T, U = np.float32(0.02), np.float32(0.03), np.float32(0.05)
ZERO, POINT = np.uint8(128), np.uint8(100)
X, Y, V = floats(2, 3, 4), floats(2, 3, 4), floats(4)
Q, R = levels(2, 3, 4), levels(2, 3, 4)
IMAGES = levels(2, 3, 6, 6)
LSTM = {
    "w": levels(2, 4, 20, dtype="int8") // 2,  # sums of pairs in 16 bits do not saturate
    "r": levels(2, 5, 20, dtype="int8") // 2,
    "b": floats(2, 40),
    "s": np.full(2, 0.004, "float32"),
    "z": np.zeros(2, "int8"),
}
WORDS = np.array([[1, 2, 0], [4, 3, 3]], "int32")
COSINES, SINES = floats(8, 2), floats(8, 2)
PADDING = np.array([[1, 1, 0], [1, 1, 1]], "int32")

# Attributes, operands, and which of the operands are inputs of the model.
CASES: dict[str, tuple[dict[str, Any], list[Any], int]] = {
    "FusedMatMul": ({"alpha": 0.5, "transB": 1}, [X, Y], 2),
    "Gelu": ({}, [X], 1),
    "FastGelu": ({}, [X, V], 2),
    "BiasGelu": ({}, [X, V], 2),
    "QuickGelu": ({"alpha": 1.5}, [X], 1),
    "SkipLayerNormalization": ({"epsilon": 1e-3}, [X, Y, V, 2 * V, V - 1], 5),
    "SkipSimplifiedLayerNormalization": ({"epsilon": 1e-3}, [X, Y, V], 3),
    "QLinearAdd": ({}, [Q, S, ZERO, R, T, POINT, U, ZERO], 4),
    "QLinearMul": ({}, [Q, S, ZERO, R, T, POINT, U, ZERO], 4),
    "QLinearSigmoid": ({}, [Q, S, ZERO, np.float32(1 / 256), np.uint8(0)], 1),
    "QLinearLeakyRelu": ({"alpha": 0.3}, [Q, S, ZERO, U, POINT], 1),
    "QLinearSoftmax": (
        {"axis": -1, "opset": 13},
        [Q, S, ZERO, np.float32(1 / 256), np.uint8(0)],
        1,
    ),
    "QLinearGlobalAveragePool": ({}, [IMAGES, S, ZERO, S, POINT], 1),
    "QLinearAveragePool": (
        {"kernel_shape": [2, 2], "strides": [2, 2]},
        [IMAGES, S, ZERO, S, POINT],
        1,
    ),
    "QLinearConcat": ({"axis": 1}, [U, ZERO, Q, S, ZERO, R, T, POINT], 8),
    "QLinearWhere": ({}, [Q > 99, Q, S, ZERO, R, T, POINT, U, ZERO], 9),
    "QGemm": (
        {"transB": 1},
        [levels(3, 4), S, ZERO, levels(5, 4), T, POINT, np.arange(5, dtype="int32")],
        1,
    ),
    "MatMulIntegerToFloat": ({}, [Q, levels(4, 5), S, T, ZERO, POINT, floats(5)], 1),
    "DynamicQuantizeMatMul": (
        {},
        [X, levels(4, 5), np.full(5, 0.02, "float32"), np.full(5, 128, "uint8"), floats(5)],
        1,
    ),
    "DynamicQuantizeLSTM": (
        {"hidden_size": 5, "direction": "bidirectional"},
        [
            floats(3, 1, 4),
            LSTM["w"],
            LSTM["r"],
            LSTM["b"],
            None,
            None,
            None,
            None,
            LSTM["s"],
            LSTM["z"],
            LSTM["s"],
            LSTM["z"],
        ],
        1,
    ),
    "MatMulNBits": (
        {"K": 20, "N": 3, "bits": 4, "block_size": 16},
        [floats(2, 20), levels(3, 2, 8), np.abs(floats(6)), levels(3)],
        1,
    ),
    "FusedConv": (
        {"activation": "LeakyRelu", "activation_params": [0.2], "pads": [1, 1, 1, 1]},
        [floats(1, 2, 5, 5), floats(3, 2, 3, 3), floats(3), floats(1, 3, 5, 5)],
        1,
    ),
    "FusedGemm": ({"activation": "Relu", "transB": 1}, [X[0], floats(5, 4), floats(5)], 1),
    "EmbedLayerNormalization": (
        {"epsilon": 1e-5},
        [WORDS, WORDS % 2, floats(5, 4), floats(6, 4), floats(2, 4), V, V, PADDING],
        1,
    ),
    "Attention": (
        {"num_heads": 2, "unidirectional": 1},
        [X, floats(4, 12), floats(12), PADDING],
        1,
    ),
    "MultiHeadAttention": (
        {"num_heads": 2},
        [X, floats(2, 5, 4), floats(2, 5, 4), floats(12), None, floats(1, 2, 3, 5)],
        3,
    ),
    "RotaryEmbedding": ({}, [X, np.array([[0, 2, 1], [5, 4, 3]]), COSINES, SINES], 1),
}
LEVELS = {"QLinearAdd", "QLinearAveragePool", "QLinearLeakyRelu", "QLinearMul"} | {
    "QLinearSigmoid",
    "QLinearSoftmax",
}


def model(operator: str) -> tuple[onnx.ModelProto, list[np.ndarray]]:
    """Return a model of one node, and its inputs."""
    attributes, given, count = CASES[operator]
    names = ["" if v is None else f"x{i}" for i, v in enumerate(given)]
    results = ["y", "lengths"] if operator == "EmbedLayerNormalization" else ["y"]
    node = helper.make_node(operator, names, results, domain=MICROSOFT, **attributes)
    present = {n: np.asarray(v) for n, v in zip(names, given, strict=True) if n}
    inputs = dict(list(present.items())[:count])
    dtypes = {n: helper.np_dtype_to_tensor_dtype(a.dtype) for n, a in inputs.items()}
    first = next(iter(inputs.values()))
    is_quantised = operator.startswith("QLinear")
    result = helper.np_dtype_to_tensor_dtype(first.dtype) if is_quantised else TensorProto.FLOAT
    if is_quantised:
        result = TensorProto.UINT8
    made = model_of(
        [node],
        inputs={name: array.shape for name, array in inputs.items()},
        outputs={"y": None},
        constants={n: a for n, a in present.items() if n not in inputs},
        dtypes={**dtypes, "y": result},
    )
    return made, list(inputs.values())


def by_exact_runtime(proto: onnx.ModelProto, arrays: list[np.ndarray]) -> np.ndarray:
    """Return the result of an operator as it is, without fusions."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options)
    names = [value.name for value in session.get_inputs()]
    return session.run(None, dict(zip(names, arrays, strict=True)))[0]


@pytest.mark.parametrize("operator", CASES)
def test_an_operator_of_the_runtime(operator):
    proto, arrays = model(operator)
    graph = from_onnx(proto)
    expected = by_exact_runtime(proto, arrays)
    (found,) = evaluated(graph, *arrays)
    assert found.dtype == expected.dtype
    # The runtime multiplies quotients of scales, which may move a result to the next level.
    allowed = 1 if operator in LEVELS else 2e-6
    np.testing.assert_allclose(
        found.astype("float64"), expected.astype("float64"), rtol=2e-5, atol=allowed
    )
    program = export_onnx(graph.inputs, graph.outputs[0], verify=False)
    assert Counter(n.op_type for n in program.model.graph) == {operator: 1}
    np.testing.assert_array_equal(by_exact_runtime(program.proto, arrays), expected)
    (again,) = pytensor.function(graph.inputs, graph.outputs, mode="ONNX")(*arrays)
    np.testing.assert_allclose(again, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("operator", ["Attention", "DynamicQuantizeLSTM", "FusedConv"])
def test_files_for_other_runtimes_have_the_expression(operator):
    proto, arrays = model(operator)
    graph = from_onnx(proto)
    program = export_onnx(graph.inputs, graph.outputs[0], target="portable", verify=False)
    assert MICROSOFT not in program.model.graph.opset_imports
    found = program(*arrays)
    np.testing.assert_allclose(found, by_exact_runtime(proto, arrays), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("operator", ["Attention", "FusedGemm", "EmbedLayerNormalization"])
def test_gradients_are_those_of_the_formula(operator):
    proto, arrays = model(operator)
    trained = "x2" if operator == "EmbedLayerNormalization" else "x1"
    graph = from_onnx(proto, trainable=lambda name, array: name == trained)
    weight = graph.weights[trained]
    loss = pt.sqr(graph.outputs[0]).sum()
    run = pytensor.function(graph.inputs, [loss, pt.grad(loss, weight)], mode="FAST_COMPILE")
    _, gradient = run(*arrays)
    start = weight.get_value()
    direction = floats(*start.shape)
    values = []
    for step in (1e-2, -1e-2):
        weight.set_value(start + np.float32(step) * direction)
        values.append(float(run(*arrays)[0]))
    slope = (values[0] - values[1]) / 2e-2
    np.testing.assert_allclose((gradient * direction).sum(), slope, rtol=2e-2)
