"""Types of few bits in imported models have the numbers of ml_dtypes."""

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import pytensor
import pytensor.tensor as pt
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.ops.op_cast import cast_to

from pytensor_onnx import UnsupportedTypeError, export_onnx, from_onnx, optimize_onnx
from pytensor_onnx.importing.registry.narrow_types import NARROW, rounded, wide_dtype
from tests.importing.models import PYTHON, by_runtime, evaluated, model_of

RNG = np.random.default_rng(0)
NAMES = 50
"""Bytes of the name and version of the producer."""
HALVES = np.arange(2**16, dtype="uint16").view("float16").astype("float32")
BITS = RNG.integers(0, 2**32, 50_000, dtype="uint64").astype("uint32").view("float32")
EDGES = np.float32([0, -0.0, np.inf, -np.inf, np.nan, 464, -464, 465, 6, 7, 1e-45, 3.4e38])
NUMBERS = np.concatenate([HALVES, BITS, EDGES])
FLOATS = [dtype for dtype in NARROW if wide_dtype(dtype) == "float32"]


def same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return ((a == b) & (np.signbit(a) == np.signbit(b))) | (np.isnan(a) & np.isnan(b))


@pytest.mark.parametrize("mode", [PYTHON, "ONNX"], ids=["python", "onnx"])
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: dtype.name.lower())
def test_floats_are_rounded_as_the_standard_does(dtype, mode):
    x = pt.fvector("x")
    modes = ("up", "down", "nearest") if dtype == ir.DataType.FLOAT8E8M0 else ("up",)
    is_finite = dtype.name.startswith(("FLOAT4", "FLOAT6"))
    numbers = NUMBERS[~np.isnan(NUMBERS)] if is_finite else NUMBERS
    for saturates in (True, False):
        for direction in modes:
            result = rounded(x, dtype, saturates=saturates, mode=direction)
            with np.errstate(all="ignore"):
                found = pytensor.function([x], result, mode=mode)(numbers)
                expected = cast_to(numbers, dtype.value, saturates, direction).astype("float32")
            assert same(found, expected).all()


def test_integers_keep_their_last_bits():
    x = np.arange(-128, 128).astype("int8")
    node = helper.make_node("Cast", ["x"], ["y"], to=TensorProto.INT4)
    again = helper.make_node("Cast", ["y"], ["z"], to=TensorProto.INT8)
    model = model_of(
        [node, again],
        inputs={"x": ("n",)},
        outputs={"z": ("n",)},
        dtypes=dict.fromkeys("xz", TensorProto.INT8),
    )
    expected = x.astype(ml_dtypes.int4).astype("int8")
    np.testing.assert_array_equal(evaluated(from_onnx(model), x)[0], expected)


def network() -> onnx.ModelProto:
    weights = RNG.normal(size=(4, 3)).astype(ml_dtypes.bfloat16)
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["a"]),
            helper.make_node("Tanh", ["a"], ["b"]),
            helper.make_node("Cast", ["b"], ["y"], to=TensorProto.FLOAT),
        ],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.BFLOAT16, ("n", 4))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ("n", 3))],
        [numpy_helper.from_array(weights, "w")],
    )
    opsets = [helper.make_opsetid("", 21)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


@pytest.mark.parametrize("way", ["python", "export"])
def test_a_network_of_bfloat16_has_the_results_of_onnx(way):
    model = network()
    graph = from_onnx(model)
    x = RNG.normal(size=(50, 4)).astype(ml_dtypes.bfloat16)
    (expected,) = ReferenceEvaluator(model).run(None, {"x": x})
    wide = x.astype("float32")
    if way == "export":
        found = export_onnx(graph.inputs, graph.outputs[0], verify=False)(wide)
    else:
        (found,) = evaluated(graph, wide)
    assert (found == found.astype(ml_dtypes.bfloat16).astype("float32")).all()
    # Products that are rounded the other way differ by one unit of bfloat16.
    np.testing.assert_allclose(found, expected, rtol=2**-7)
    assert (found == expected).mean() > 0.95


def test_gradients_pass_through_rounding():
    graph = from_onnx(network())
    (x,), (y,) = graph.inputs, graph.outputs
    slopes = pytensor.function([x], pytensor.grad(y.sum(), x), mode=PYTHON)
    values = RNG.normal(size=(5, 4)).astype(ml_dtypes.bfloat16).astype("float32")
    weights = graph.weights["w"].data
    expected = (1 - np.tanh(values @ weights) ** 2) @ weights.T
    np.testing.assert_allclose(slopes(values), expected, atol=0.03)


def test_states_of_loops_and_branches_are_rounded():
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["c"], ["d"]),
            helper.make_node("Add", ["s", "small"], ["t"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, ()),
            helper.make_tensor_value_info("c", TensorProto.BOOL, ()),
            helper.make_tensor_value_info("s", TensorProto.BFLOAT16, ()),
        ],
        [
            helper.make_tensor_value_info("d", TensorProto.BOOL, ()),
            helper.make_tensor_value_info("t", TensorProto.BFLOAT16, ()),
        ],
    )
    model = model_of(
        [
            helper.make_node("Cast", ["x"], ["s0"], to=TensorProto.BFLOAT16),
            helper.make_node("Cast", ["e"], ["small"], to=TensorProto.BFLOAT16),
            helper.make_node("Loop", ["n", "", "s0"], ["last"], body=body),
            helper.make_node("Cast", ["last"], ["y"], to=TensorProto.FLOAT),
        ],
        inputs={"x": (), "n": (), "e": ()},
        outputs={"y": ()},
        dtypes={"n": TensorProto.INT64},
    )
    # In bfloat16, 1 + 2**-9 is 1: a sum in float32 would be 1.04.
    arguments = (np.float32(1), np.int64(20), np.float32(2.0**-9))
    assert evaluated(from_onnx(model), *arguments)[0] == 1


def test_weights_of_four_bits_are_dequantized():
    levels = RNG.integers(-8, 8, (6, 3)).astype(ml_dtypes.int4)
    scale = np.float32([0.5, 0.25, 2.0])
    graph = helper.make_graph(
        [
            helper.make_node("DequantizeLinear", ["q", "s"], ["w"], axis=1),
            helper.make_node("MatMul", ["x", "w"], ["y"]),
        ],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ("n", 6))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ("n", 3))],
        [numpy_helper.from_array(levels, "q"), numpy_helper.from_array(scale, "s")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    x = RNG.normal(size=(2, 6)).astype("float32")
    expected = x @ (levels.astype("float32") * scale)
    imported = from_onnx(model)
    np.testing.assert_allclose(evaluated(imported, x)[0], expected, rtol=1e-5)
    again = export_onnx(imported.inputs, imported.outputs, verify=False).proto
    assert [node.op_type for node in again.graph.node] == ["DequantizeLinear", "MatMul"]
    stored = {t.name: t.data_type for t in again.graph.initializer}
    assert stored == {"q": TensorProto.INT4, "s": TensorProto.FLOAT}
    # ONNX Runtime rounds the rows of x to 8 bits, in both files.
    np.testing.assert_array_equal(by_runtime(again, x)[0], by_runtime(model, x)[0])
    portable = export_onnx(imported.inputs, imported.outputs, target="portable", verify=False)
    assert [node.op_type for node in portable.model.graph] == ["MatMul"]


@pytest.mark.parametrize(
    "dtype", [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.int4]
)
def test_weights_that_a_file_casts_stay_as_short(dtype):
    weights = RNG.integers(-8, 8, (64, 80)).astype("float32").astype(dtype)
    graph = helper.make_graph(
        [
            helper.make_node("Cast", ["short"], ["w"], to=TensorProto.FLOAT),
            helper.make_node("MatMul", ["x", "w"], ["y"]),
        ],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ("n", 64))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ("n", 80))],
        [numpy_helper.from_array(weights, "short")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    imported = from_onnx(model)
    again = export_onnx(imported.inputs, imported.outputs, verify=False).proto
    assert [t.name for t in again.graph.initializer] == ["short"]
    assert again.ByteSize() <= model.ByteSize() + NAMES
    x = RNG.normal(size=(2, 64)).astype("float32")
    np.testing.assert_array_equal(by_runtime(again, x)[0], by_runtime(model, x)[0])
    mode_onnx = pytensor.function(imported.inputs, imported.outputs, mode="ONNX")
    np.testing.assert_allclose(mode_onnx(x)[0], x @ weights.astype("float32"), rtol=1e-5)


def test_a_file_with_such_inputs_is_not_optimized(tmp_path):
    onnx.save(network(), tmp_path / "net.onnx")
    with pytest.raises(UnsupportedTypeError, match="x is of bfloat16"):
        optimize_onnx(tmp_path / "net.onnx")
