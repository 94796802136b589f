"""Operators of opsets 26 to 28: values of the standard, and files with kernels."""

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytensor.tensor as pt
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from packaging.version import Version

from pytensor_onnx import UnsupportedOpError, export_onnx, from_onnx
from tests.importing.models import PYTHON, evaluated

RNG = np.random.default_rng(5)
FLOATS = RNG.normal(size=(3, 4)).astype("float32")
NEWEST = Version(onnxruntime.__version__) >= Version("1.32")
BLOCKS = np.arange(64, dtype="int32").reshape(1, 4, 4, 4)
SHIFTS = [np.array([-5, 7, 1, -1], "int8"), np.array([1, 2, 40, -1], "int8")]
REMAINDERS = [np.float32([5.5, -5.5, 1, 3, -3]), np.float32([2, 2, np.inf, np.inf, -2])]
HEADS = {"q_num_heads": 2, "kv_num_heads": 1}
STATES = [RNG.normal(size=s).astype("float32") for s in [(2, 3, 8), (2, 3, 4), (2, 3, 4)]]
QUANTISED = [np.float32(0.1), np.uint8(3)]


def of_one_node(
    operator: str, operands: list[Any], opset: int, results: int = 1, **attributes: Any
) -> onnx.ModelProto:
    """Return a model of one node, whose operands are inputs; None is left out."""
    names = ["" if v is None else f"x{i}" for i, v in enumerate(operands)]
    outputs = [f"y{i}" for i in range(results)]
    inputs = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
        for n, v in zip(names, operands, strict=True)
        if v is not None
    ]
    node = helper.make_node(operator, names, outputs, **attributes)
    infos = [onnx.ValueInfoProto(name=name) for name in outputs]
    graph = helper.make_graph([node], "graph", inputs, infos)
    imports = [helper.make_opsetid("", opset)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=14)
    return onnx.shape_inference.infer_shapes(model)


CASES = {
    # name: (operator, operands, opset, results, attributes, opset of the export, nodes of it)
    "signed shift": ("BitShift", SHIFTS, 28, 1, {"direction": "RIGHT"}, 28, 1),
    "unsigned shift": (
        "BitShift",
        [np.abs(v).astype("uint8") for v in SHIFTS],
        28,
        1,
        {"direction": "LEFT"},
        21,
        1,
    ),
    "celu": ("Celu", [FLOATS.astype("float64")], 28, 1, {"alpha": 0.7}, 21, None),
    "floored remainder": ("Mod", REMAINDERS, 28, 1, {}, 21, None),
    "truncated remainder": ("Mod", REMAINDERS, 28, 1, {"fmod": 1}, 21, 1),
    "range of halves": ("Range", [np.float16(v) for v in (1, 3000, 2)], 27, 1, {}, 27, 1),
    "blocks": ("SpaceToDepth", [BLOCKS], 28, 1, {"blocksize": 2, "mode": "CRD"}, 21, None),
    "swiglu": ("SwiGLU", [FLOATS, FLOATS[::-1].copy()], 28, 1, {"alpha": 1.5}, 21, None),
    "bits": ("BitCast", [FLOATS], 26, 1, {"to": TensorProto.INT32}, 26, 1),
    "bits of integers": ("BitCast", [SHIFTS[0]], 26, 1, {"to": TensorProto.UINT8}, 21, 1),
    "one hot": ("OneHot", [np.int64([0, -1]), np.int64(3), FLOATS[0, :2]], 28, 1, {}, 21, 1),
    "one hot without a kernel": (
        "OneHot",
        [np.int32([0, -1]), np.int64(3), FLOATS[0, :2]],
        28,
        1,
        {},
        21,
        None,
    ),
    "quantised": ("QuantizeLinear", [FLOATS, *QUANTISED], 28, 1, {}, 21, 1),
    "dequantised": ("DequantizeLinear", [np.uint8([1, 9]), *QUANTISED], 28, 1, {}, 21, 1),
    "log of a sum": ("ReduceLogSum", [np.abs(FLOATS)], 28, 1, {"keepdims": 0}, 21, 1),
    "linear attention": (
        "LinearAttention",
        STATES,
        27,
        2,
        {**HEADS, "update_rule": "linear"},
        27,
        1,
    ),
    "delta rule": (
        "LinearAttention",
        [*STATES, None, None, 1 / (1 + np.exp(-STATES[2][..., :1]))],
        28,
        2,
        {**HEADS, "update_rule": "delta"},
        27,
        1,
    ),
    "causal convolution": (
        "CausalConvWithState",
        [STATES[0], FLOATS[:, None], None, STATES[1][..., :3]],
        27,
        2,
        {"activation": "silu"},
        27,
        1,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_operators_of_new_opsets_have_the_values_of_the_standard(name):
    operator, operands, opset, results, attributes, exported, nodes = CASES[name]
    model = of_one_node(operator, operands, opset, results, **attributes)
    given = [np.asarray(v) for v in operands if v is not None]
    graph = from_onnx(model)
    feeds = dict(zip([str(v.name) for v in graph.inputs], given, strict=True))
    expected = ReferenceEvaluator(model).run(None, feeds)
    for value, wanted in zip(evaluated(graph, *given), expected, strict=True):
        assert value.dtype == wanted.dtype
        np.testing.assert_allclose(value, wanted, rtol=2e-6, atol=2e-6)
    program = export_onnx(graph.inputs, graph.outputs, verify=False)
    assert program.proto.opset_import[0].version == exported
    assert nodes is None or len(program.proto.graph.node) == nodes
    if NEWEST or exported < 27:
        session = onnxruntime.InferenceSession(program.proto.SerializeToString())
        for value, wanted in zip(session.run(None, feeds), expected, strict=True):
            assert value.dtype == wanted.dtype
            np.testing.assert_allclose(value, wanted, rtol=2e-6, atol=2e-6)


def test_a_file_of_opset_28_without_a_kernel_gets_the_expression():
    model = of_one_node("QuantizeLinear", [FLOATS, *QUANTISED], 28)
    graph = from_onnx(model)
    program = export_onnx(graph.inputs, graph.outputs, opset_version=28, verify=NEWEST)
    assert "QuantizeLinear" not in [node.op_type for node in program.proto.graph.node]
    assert program.proto.ir_version == 14


def test_bits_go_through_other_modes_and_have_no_gradient():
    graph = from_onnx(of_one_node("BitCast", [FLOATS], 28, to=TensorProto.INT32))
    (x,), (bits,) = graph.inputs, graph.outputs
    assert bits.eval({x: FLOATS}, mode="ONNX").tolist() == FLOATS.view("int32").tolist()
    loss = (bits % 7).astype("float32").sum() + x.sum()
    found = pt.grad(loss, x, disconnected_inputs="raise").eval({x: FLOATS}, mode=PYTHON)
    assert found.tolist() == np.ones((3, 4)).tolist()
    with pytest.raises(UnsupportedOpError, match="choose opset_version=26"):
        export_onnx([x], bits, opset_version=21)
