"""Operators of ONNX Runtime that its own tools and those for PyTorch write equal its results."""

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytensor
import pytensor.tensor as pt
import pytest
from onnx import TensorProto, helper
from scipy import special

from pytensor_onnx import export_onnx, from_onnx
from tests.importing.models import PYTHON, evaluated, model_of

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
POSITIONS = np.array([[0, 2, 1], [5, 4, 3]])
REGIONS = np.array([[0, 0, 1, 1], [0.2, 0.1, 0.7, 1.2], [0.9, 0.3, 0.1, 0.6]], "float32")
EXPERTS = floats(5, 32), floats(5, 4), levels(4, 16, 16), np.abs(floats(4, 16)) / 99
PADDING = np.array([[1, 1, 0], [1, 1, 1]], "int32")

# Attributes, operands, and how many of the operands are inputs of the model.
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
    "QAttention": (
        {"num_heads": 2},
        [
            levels(2, 3, 4),
            levels(4, 12, dtype="int8") // 2,
            floats(12),
            S,
            np.full(12, 0.01, "float32"),
            PADDING.sum(axis=1).astype("int32"),
            ZERO,
            np.zeros(12, "int8"),
        ],
        1,
    ),
    "RotaryEmbedding": ({}, [X, POSITIONS, COSINES, SINES], 1),
    "RotaryEmbedding of a part": (
        {"num_heads": 2, "rotary_embedding_dim": 4},
        [floats(2, 3, 16), POSITIONS, COSINES, SINES],
        1,
    ),
    "MRotaryEmbedding": (
        {"mrope_section": [2, 1, 1], "num_heads": 2, "rotary_embedding_dim": 8},
        [floats(2, 3, 24), RNG.integers(0, 8, (3, 2, 3)), floats(8, 4), floats(8, 4)],
        1,
    ),
    "MRotaryEmbedding of alternate angles": (
        {"mrope_section": [4, 2, 2], "mrope_layout": 1, "interleaved": 1},
        [floats(2, 2, 3, 16), RNG.integers(0, 8, (3, 2, 3)), floats(8, 8), floats(8, 8)],
        1,
    ),
    "ExpandDims": ({}, [X, np.array([-1], "int32")], 1),
    "GatherND": ({}, [X, np.array([[0, 1], [1, 2]])], 2),
    "GridSample": (
        {"mode": "bicubic", "align_corners": 1},
        [floats(2, 3, 4, 5), floats(2, 6, 7, 2).clip(-1.3, 1.3)],
        2,
    ),
    "Inverse": ({}, [floats(2, 3, 3)], 1),
    "Pad": ({}, [X[0], np.array([[0, 1, 2, 0]]), np.float32(3)], 1),
    "Range": ({}, [np.float32(1), np.float32(5)], 2),
    "Trilu": ({"upper": 0}, [X, np.array(1)], 1),
    "Unique": ({}, [np.array([2, 1, 1, 3, 4, 3], "float32")], 1),
    "TransposeMatMul": ({"transA": 1, "alpha": 2.0}, [X, Y], 2),
    "FusedMatMul of moved batches": (
        {"transBatchA": 1, "transBatchB": 1, "transA": 1},
        [floats(4, 2, 3), floats(4, 2, 5)],
        2,
    ),
    "MatMulInteger16": ({}, [levels(3, 4, dtype="int16"), levels(4, 2, dtype="int16") // 99], 2),
    "CDist": ({"metric": "euclidean"}, [X[0], Y[1]], 2),
    "QLinearConv": (
        {"channels_last": 1},
        [
            levels(1, 5, 6, 3),
            S,
            ZERO,
            levels(4, 3, 2, 2),
            S,
            POINT,
            np.float32(0.5),
            ZERO,
            np.arange(4, dtype="int32"),
        ],
        1,
    ),
    "QLinearAveragePool of channels last": (
        {"kernel_shape": [2, 2], "channels_last": 1},
        [levels(1, 6, 6, 3), S, ZERO, S, POINT],
        1,
    ),
    "QLinearGlobalAveragePool of channels last": (
        {"channels_last": 1},
        [levels(1, 6, 6, 3), S, ZERO, S, POINT],
        1,
    ),
    "NhwcMaxPool": ({"kernel_shape": [2, 2], "strides": [2, 2]}, [levels(1, 6, 6, 3)], 1),
    "ConvTransposeWithDynamicPads": (
        {"strides": [2, 2]},
        [floats(1, 2, 4, 4), floats(2, 3, 3, 3), np.array([1, 0, 0, 1]), floats(3)],
        1,
    ),
    "CropAndResize": (
        {"extrapolation_value": 9.0},
        [floats(2, 3, 6, 7), REGIONS, np.array([0, 1, 1], "int32"), np.array([3, 4], "int32")],
        3,
    ),
    "CropAndResize of the nearest": (
        {"mode": "nearest"},
        [floats(2, 3, 6, 7), REGIONS, np.array([0, 1, 1], "int32"), np.array([1, 5], "int32")],
        3,
    ),
    "MatMulNBits of two bits": (
        {"K": 32, "N": 3, "bits": 2, "block_size": 16},
        [floats(2, 32), levels(3, 2, 4), np.abs(floats(6))],
        1,
    ),
    "MatMulBnb4": (
        {"K": 32, "N": 3, "block_size": 16, "quant_type": 1},
        [floats(2, 32), levels(48), np.abs(floats(6))],
        1,
    ),
    "MatMulBnb4 of floats": (
        {"K": 32, "N": 3, "block_size": 16, "quant_type": 0},
        [floats(2, 32), levels(48), np.abs(floats(6))],
        1,
    ),
    "MoE": (
        {"k": 2, "normalize_routing_weights": 1, "activation_type": "gelu"},
        [*EXPERTS[:2], floats(4, 6, 32), floats(4, 6), floats(4, 32, 6), floats(4, 32)],
        2,
    ),
    "MoE of gated experts": (
        {"k": 2, "activation_type": "swiglu", "swiglu_fusion": 1, "swiglu_limit": 0.8},
        [*EXPERTS[:2], floats(4, 12, 32), None, floats(4, 32, 6)],
        2,
    ),
    "QMoE": (
        {"k": 2, "normalize_routing_weights": 1, "activation_type": "silu"},
        [*EXPERTS, None, levels(4, 32, 8), np.abs(floats(4, 32)) / 99],
        2,
    ),
    "QMoE of blocks": (
        {"block_size": 16, "activation_type": "swiglu", "swiglu_fusion": 1},
        [
            *EXPERTS[:2],
            levels(4, 32, 16),
            np.abs(floats(4, 32, 2)) / 99,
            floats(4, 32),
            levels(4, 32, 8),
            np.abs(floats(4, 32, 1)) / 99,
            None,
            None,
            None,
            None,
            levels(4, 32, 1),
            None,
            None,
            np.abs(floats(5, 4)),
        ],
        2,
    ),
    "GatedRMSNorm": ({"activation": "sigmoid"}, [X, floats(2), Y], 3),
    "ScaledSiLU": ({"alpha": 1.7}, [X], 1),
    "GatedAdd": ({}, [X, Y, floats(2, 3, 1)], 3),
}
LEVELS = {"QLinearAdd", "QLinearAveragePool", "QLinearLeakyRelu", "QLinearMul"} | {
    "QLinearConv",
    "QLinearSigmoid",
    "QLinearSoftmax",
}
MORE = {"EmbedLayerNormalization": ["lengths"], "Unique": ["inverse", "counts"]}
RESULTS = {"NhwcMaxPool": TensorProto.UINT8, "MatMulInteger16": TensorProto.INT32}


def model(name: str) -> tuple[onnx.ModelProto, list[np.ndarray]]:
    """Return a model of one node, and its inputs."""
    attributes, given, count = CASES[name]
    operator = name.split(maxsplit=1)[0]
    names = ["" if v is None else f"x{i}" for i, v in enumerate(given)]
    results = ["y", *MORE.get(operator, ())]
    node = helper.make_node(operator, names, results, domain=MICROSOFT, **attributes)
    present = {n: np.asarray(v) for n, v in zip(names, given, strict=True) if n}
    inputs = dict(list(present.items())[:count])
    dtypes = {n: helper.np_dtype_to_tensor_dtype(a.dtype) for n, a in inputs.items()}
    is_quantised = operator.startswith("QLinear")
    result = RESULTS.get(operator, TensorProto.UINT8 if is_quantised else TensorProto.FLOAT)
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


@pytest.mark.parametrize("name", CASES)
def test_an_operator_of_the_runtime(name):
    operator = name.split(maxsplit=1)[0]
    proto, arrays = model(name)
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
    if operator != "MatMulInteger16":  # products of int32 are as good
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


def test_operators_of_graphics_processors_follow_their_documentation():
    """ONNX Runtime has no kernels of them on other processors."""
    x, skip, gamma, beta = floats(2, 4, 5, 6), floats(2, 6), floats(6), floats(6)
    nodes = [
        helper.make_node(
            "SkipGroupNorm",
            ["x", "gamma", "beta", "skip", "beta"],
            ["y", "s"],
            domain=MICROSOFT,
            groups=2,
            activation=1,
            epsilon=1e-3,
        ),
        helper.make_node(
            "GroupNorm", ["s", "gamma", "beta"], ["z"], domain=MICROSOFT, groups=3, activation=0
        ),
        helper.make_node("BiasAdd", ["z", "beta", "y"], ["a"], domain=MICROSOFT),
        helper.make_node("BiasSplitGelu", ["a", "gamma"], ["b"], domain=MICROSOFT),
    ]
    arrays = {"x": x, "gamma": gamma, "beta": beta, "skip": skip}
    proto = model_of(
        nodes, inputs={n: v.shape for n, v in arrays.items()}, outputs=dict.fromkeys("yzb")
    )
    graph = from_onnx(proto)
    y, z, b = evaluated(graph, *arrays.values())

    def normalised(s: np.ndarray, groups: int, epsilon: float) -> np.ndarray:
        parts = s.reshape(2, 20, groups, -1)
        centred = parts - parts.mean(axis=(1, 3), keepdims=True)
        scale = np.sqrt(np.square(centred).mean(axis=(1, 3), keepdims=True) + epsilon)
        return (centred / scale).reshape(s.shape) * gamma + beta

    s = x + skip[:, None, None] + beta
    expected = normalised(s, 2, 1e-3)
    expected = expected * special.expit(expected)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(z, normalised(s, 3, 1e-5), rtol=1e-5, atol=1e-6)
    left, right = np.split(z + beta + y + gamma, 2, axis=-1)
    np.testing.assert_allclose(b, left * right * special.ndtr(right), rtol=1e-5, atol=1e-6)
    program = export_onnx(graph.inputs, graph.outputs, verify=False)
    assert MICROSOFT not in {node.domain for node in program.model.graph}


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("has_zeros", [False, True])
def test_embeddings_of_few_bits(bits, has_zeros):
    indices = np.array([[0, 4], [-1, 2]])
    tables = {"d": levels(5, 4 * bits), "s": np.abs(floats(5, 2))}
    if has_zeros:
        tables["z"] = levels(5, max(1, bits // 4))
    node = helper.make_node(
        "GatherBlockQuantized",
        ["d", "i", *list(tables)[1:]],
        ["y"],
        domain=MICROSOFT,
        bits=bits,
        block_size=16,
    )
    proto = model_of(
        [node],
        inputs={"i": (2, 2)},
        outputs={"y": None},
        constants=tables,
        dtypes={"i": TensorProto.INT64},
    )
    graph = from_onnx(proto)
    expected = by_exact_runtime(proto, [indices])
    np.testing.assert_array_equal(evaluated(graph, indices)[0], expected)
    program = export_onnx(graph.inputs, graph.outputs[0], verify=False)
    assert [n.op_type for n in program.model.graph] == ["GatherBlockQuantized"]


@pytest.mark.parametrize("operator", ["Attention", "FusedGemm", "EmbedLayerNormalization", "MoE"])
def test_gradients_are_those_of_the_formula(operator):
    proto, arrays = model(operator)
    trained = "x2" if operator in ("EmbedLayerNormalization", "MoE") else "x1"
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


ANGLES = floats(16, 8), floats(16, 8)


class Step(NamedTuple):
    """A call of GroupQueryAttention: lengths of the query and the past, and all that it takes."""

    steps: int
    past: int | None
    last: list[int]
    total: int
    attributes: Mapping[str, Any] = MappingProxyType({})
    operands: Mapping[int, np.ndarray] = MappingProxyType({})
    positions: np.ndarray | None = None


# Of heads of 16 numbers, 4 of queries and 2 of keys; positions of operands by number.
STEPS = {
    "prompt": Step(5, None, [4, 4], 5),
    "prompt with an empty past": Step(5, 0, [4, 4], 5),
    "padded prompt": Step(5, 0, [4, 2], 5),
    "both directions": Step(5, 0, [4, 2], 5, {"causal": 0}),
    "next word": Step(1, 5, [5, 5], 6),
    "rows of two lengths": Step(1, 5, [5, 3], 6),
    "buffer": Step(1, 10, [5, 3], 6),
    "second part of a prompt": Step(3, 4, [6], 7, {"do_rotary": 1, "scale": 0.3}),
    "rotated prompt": Step(5, 0, [4, 4], 5, {"do_rotary": 1}),
    "rotated word": Step(1, 5, [5, 3], 6, {"do_rotary": 1}),
    "rotated in pairs": Step(5, 0, [4, 4], 5, {"do_rotary": 1, "rotary_interleaved": 1}),
    "first position": Step(5, 0, [4, 4], 5, {"do_rotary": 1}, positions=np.full((2, 5), 3)),
    "position of a word": Step(1, 5, [5, 3], 6, {"do_rotary": 1}, positions=np.array([[7], [2]])),
    "window of a prompt": Step(6, 0, [5, 5], 6, {"local_window_size": 2}),
    "window of a word": Step(1, 5, [5, 3], 6, {"local_window_size": 3}),
    "soft cap": Step(5, 0, [4, 4], 5, {"softcap": 1.5}, {10: floats(1, 4, 5, 5)}),
    "summand beside a buffer": Step(1, 10, [5, 3], 6, {}, {10: floats(2, 1, 1, 6)}),
    "smooth": Step(5, 0, [4, 4], 5, {"smooth_softmax": 1}),
    "sinks": Step(5, 0, [4, 4], 5, {}, {11: floats(4)}),
    "packed": Step(1, 5, [5, 3], 6, {"do_rotary": 1, "packed": 1}),
}


def grouped(step: Step) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Return a model of one GroupQueryAttention, and its inputs."""
    batch, attributes = len(step.last), dict(step.attributes)
    query, key, value = (floats(batch, step.steps, 16 * n) for n in (4, 2, 2))
    past = [None, None] if step.past is None else [floats(batch, 2, step.past, 16) for _ in "kv"]
    given: list[Any] = [query, key, value, *past, np.int32(step.last), np.int32([step.total])]
    if attributes.pop("packed", False):
        given[:3] = [np.concatenate([query, key, value], axis=2), None, None]
    given += list(ANGLES) if attributes.get("do_rotary") else [None, None]
    given += [step.positions, *(step.operands.get(i) for i in (10, 11))]
    names = ["" if v is None else f"x{i}" for i, v in enumerate(given)]
    while not names[-1]:
        names.pop()
    results = ["y", "keys", "values"]
    node = helper.make_node(
        "GroupQueryAttention",
        names,
        results,
        domain=MICROSOFT,
        num_heads=4,
        kv_num_heads=2,
        **attributes,
    )
    inputs = {n: v for n, v in zip(names, given, strict=False) if n}
    model = model_of(
        [node],
        inputs={n: [f"{n}_{i}" for i in range(v.ndim)] for n, v in inputs.items()},
        outputs={"y": ("a", "b", 64), "keys": None, "values": None},
        dtypes={n: helper.np_dtype_to_tensor_dtype(v.dtype) for n, v in inputs.items()},
    )
    return model, inputs


@pytest.mark.parametrize("name", STEPS)
def test_attention_of_groups_of_queries(name):
    step = STEPS[name]
    proto, arrays = grouped(step)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    expected = session.run(None, arrays)
    widths = {n: (None, None, v.shape[2]) for n, v in arrays.items() if n in ("x0", "x1", "x2")}
    widths |= {n: v.shape for n, v in arrays.items() if n in ("x10", "x11")}
    graph = from_onnx(proto, shapes=widths)
    # Rows behind the end of a padded prompt have no results.
    rows = [
        min(step.steps, last + 1) if step.total == step.steps else step.steps for last in step.last
    ]
    for mode in (PYTHON, "ONNX") if name == "rotated word" else (PYTHON,):
        found = pytensor.function(graph.inputs, graph.outputs, mode=mode)(*arrays.values())
        for row, count in enumerate(rows):
            np.testing.assert_allclose(
                found[0][row, :count], expected[0][row, :count], rtol=1e-5, atol=1e-6
            )
        for one, other in zip(found[1:], expected[1:], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    program = export_onnx(graph.inputs, graph.outputs, verify=False)
    assert [node.op_type for node in program.model.graph] == ["GroupQueryAttention"]


@pytest.mark.parametrize("results", [[0], [0, 1]])
def test_the_gradient_of_attention_of_groups_equals_differences(results):
    """Keys are results, too, from which the first result is computed."""
    proto, arrays = grouped(STEPS["rotated word"])
    graph = from_onnx(proto, shapes={n: arrays[n].shape for n in ("x0", "x1", "x2")})
    loss = sum(pt.sqr(graph.outputs[i]).sum() for i in results)
    by_name = dict(zip(arrays, graph.inputs, strict=True))
    trained = ("x0", "x1", "x3")
    gradient = pt.grad(loss, [by_name[name] for name in trained])
    run = pytensor.function(graph.inputs, [loss, *gradient], mode=PYTHON)
    _, *gradients = run(*arrays.values())
    for name, gradient in zip(trained, gradients, strict=True):
        direction = floats(*arrays[name].shape)
        moved = [
            float(run(*{**arrays, name: arrays[name] + np.float32(step) * direction}.values())[0])
            for step in (1e-2, -1e-2)
        ]
        slope = (moved[0] - moved[1]) / 2e-2
        np.testing.assert_allclose((gradient * direction).sum(), slope, rtol=2e-2)


def test_packed_queries_keys_and_values_are_those_of_three_arrays():
    queries, keys, values, bias = floats(2, 5, 8), floats(2, 5, 8), floats(2, 5, 8), floats(24)
    arrays = {"q": queries, "k": keys, "v": values, "b": bias}

    def outputs(names: str, inputs: dict[str, np.ndarray]) -> tuple[Any, Any]:
        node = helper.make_node(
            "MultiHeadAttention", names.split(","), ["y"], domain=MICROSOFT, num_heads=2
        )
        made = model_of([node], inputs={n: v.shape for n, v in inputs.items()}, outputs={"y": None})
        graph = from_onnx(made)
        program = export_onnx(graph.inputs, graph.outputs[0], verify=False)
        return made, program(*inputs.values())

    made, expected = outputs("q,k,v,b", arrays)
    np.testing.assert_allclose(
        expected, by_exact_runtime(made, list(arrays.values())), rtol=1e-5, atol=1e-6
    )
    heads = [array.reshape(2, 5, 2, 4) for array in (queries, keys, values)]
    packed = {"q": np.stack(heads, axis=3), "b": bias}
    np.testing.assert_allclose(outputs("q,,,b", packed)[1], expected, rtol=1e-5, atol=1e-6)
    pairs = {"q": queries, "k": np.stack(heads[1:], axis=3), "b": bias}
    np.testing.assert_allclose(outputs("q,k,,b", pairs)[1], expected, rtol=1e-5, atol=1e-6)
    _, without = outputs("q,k,v", {n: arrays[n] for n in "qkv"})
    of_heads = {
        "q": queries,
        **{n: h.transpose(0, 2, 1, 3) for n, h in zip("kv", heads[1:], strict=True)},
    }
    made, found = outputs("q,k,v", of_heads)
    np.testing.assert_allclose(found, without, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found, by_exact_runtime(made, [*of_heads.values()]), rtol=1e-5)


@pytest.mark.parametrize("gather_axis", [0, 1])
@pytest.mark.parametrize("dtype", [ml_dtypes.int4, ml_dtypes.uint4])
def test_embeddings_of_four_bits(dtype, gather_axis):
    table, zeros = RNG.integers(0, 8, (5, 32)).astype(dtype), RNG.integers(0, 8, (5, 2))
    node = helper.make_node(
        "GatherBlockQuantized",
        ["d", "i", "s", "z"],
        ["y"],
        domain=MICROSOFT,
        block_size=16,
        gather_axis=gather_axis,
    )
    indices = np.array([[0, 4], [-1, 2]])
    proto = model_of(
        [node],
        inputs={"i": (2, 2)},
        outputs={"y": None},
        constants={"d": table, "s": np.abs(floats(5, 2)), "z": zeros.astype(dtype)},
        dtypes={"i": TensorProto.INT64},
    )
    graph = from_onnx(proto)
    expected = by_exact_runtime(proto, [indices])
    np.testing.assert_array_equal(evaluated(graph, indices)[0], expected)
    program = export_onnx(graph.inputs, graph.outputs[0], verify=False)
    assert [n.op_type for n in program.model.graph] == ["GatherBlockQuantized"]
    stored = {t.name: t.data_type for t in program.proto.graph.initializer}
    assert stored["d"] == stored["z"] == helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    np.testing.assert_array_equal(by_exact_runtime(program.proto, [indices]), expected)
