"""Operations after a convolution are folded into filters and bias; others are left."""

import numpy as np
import onnx_ir as ir
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode

from pytensor_onnx import ONNXLinker, export_onnx, pipeline
from pytensor_onnx.nn import batch_norm, conv1d, conv2d, conv2d_transpose
from pytensor_onnx.passes.fusions.fold_into_conv import fold_into_conv
from pytensor_onnx.passes.node_rules import NodeRules
from pytensor_onnx.pipeline import prepare
from pytensor_onnx.rewriting.query.registration import ONNX_QUERY
from tests.conftest import compare_onnx_and_py, op_types
from tests.passes.conftest import bare

RNG = np.random.default_rng(0)


def values(*shape, dtype="float32"):
    return RNG.normal(size=shape).astype(dtype)


def images(dtype="float32"):
    return pt.tensor("x", dtype=dtype, shape=(None, 4, 6, 5))


def check(x, y, *, dtype="float32", tolerance=1e-5, left=("Conv",)):
    """Compare with PyTensor, which folds nothing, and return the exported model."""
    program = compare_onnx_and_py([x], y, [values(2, 4, 6, 5, dtype=dtype)], rtol=0, atol=tolerance)
    assert op_types(program) == list(left)
    return program


def constants(program):
    return {
        name: value.const_value.numpy() for name, value in program.model.graph.initializers.items()
    }


def test_constant_batch_norm_is_folded_into_filters_and_bias():
    x, w = images(), pytensor.shared(values(3, 4, 3, 3), name="conv.weight")
    parameters = [
        pytensor.shared(values(3), name=f"bn.{name}") for name in ("gamma", "beta", "mean")
    ]
    variance = pytensor.shared(np.abs(values(3)) + 0.5, name="bn.var")
    y = batch_norm(conv2d(x, w, "half", filter_flip=False), *parameters, variance, epsilon=1e-3)
    program = check(x, y)
    scale = parameters[0].get_value() / np.sqrt(variance.get_value().astype("float64") + 1e-3)
    found = constants(program)
    assert {name: v.shape for name, v in found.items()} == {
        "conv.weight": (3, 4, 3, 3),
        "conv.bias": (3,),
    }
    expected = w.get_value() * scale[:, None, None, None]
    np.testing.assert_allclose(found["conv.weight"], expected, rtol=1e-6)


def test_a_chain_of_sums_products_and_batch_norm_leaves_one_node():
    x = images()
    (w, b), (gamma, beta, mean) = (values(6, 2, 3, 3), values(6)), values(3, 6)
    y = conv2d(x, w, num_groups=2, bias=b) - 0.5
    y = y * values(6)[:, None, None] + values(1, 6, 1, 1)
    y = batch_norm(y, gamma, beta, mean, np.ones(6, "float32")) / np.float32(3)
    check(x, y, tolerance=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_bias_that_is_added_is_in_the_node(dtype):
    x, w = images(dtype), pt.tensor("w", dtype=dtype, shape=(3, 4, 2, 2))
    b, c = pt.vector("b", dtype=dtype), pt.vector("c", dtype=dtype)
    outputs = [
        conv2d(x, w, filter_flip=False) + b[None, :, None, None],
        conv2d(x, w, bias=b, filter_flip=False) + pt.shape_padright(c, 2),
        conv2d(x, w, "half", filter_flip=False) + np.arange(3, dtype=dtype)[:, None, None],
    ]
    given = [values(2, 4, 6, 5, dtype=dtype), values(3, 4, 2, 2, dtype=dtype)]
    given += [values(3, dtype=dtype), values(3, dtype=dtype)]
    program = compare_onnx_and_py([x, w, b, c], outputs, given, rtol=0, atol=1e-5)
    if dtype == "float32":
        assert sorted(op_types(program)) == ["Add", "Conv", "Conv", "Conv"]


def test_a_transposed_convolution_is_folded_by_groups():
    x = images()
    y = conv2d_transpose(x, values(4, 3, 2, 2), stride=2, groups=2)
    y = y * values(6)[:, None, None] + values(6)[:, None, None]
    check(x, y, left=["ConvTranspose"])


def test_filters_that_others_use_keep_their_value():
    x, w = images(), values(3, 4, 3, 3)
    plain = conv2d(x, w)
    scaled = conv2d(x, w, "half") * values(3)[:, None, None]
    summed = ["ReduceSum", "Cast", "ReduceSum", "Cast"]
    check(
        x,
        plain.sum() + scaled.sum(),
        tolerance=1e-3,
        left=["Conv", *summed, "Conv", *summed, "Add"],
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda y: y + values(5),
        lambda y: y * values(4, 1),
        lambda y: y + y,
        lambda y: y / values(3)[:, None, None] * np.float32(0) + pt.exp(y),
        lambda y: y + values(2, 3, 1, 1),
    ],
)
def test_operands_not_by_channel_or_with_other_uses_are_not_folded(change):
    x = pt.tensor("x", dtype="float32", shape=(2, 4, 6, 5))
    y = change(conv2d(x, values(3, 4, 3, 1), filter_flip=False))
    program = compare_onnx_and_py([x], y, [values(2, 4, 6, 5)], rtol=1e-5, atol=1e-5)
    assert len(op_types(program)) > 1


def test_products_stay_where_filters_are_not_constant():
    x, w = images(), pt.tensor("w", dtype="float32", shape=(3, 4, 2, 2))
    y = conv2d(x, w, filter_flip=False) * values(3)[:, None, None]
    assert op_types(export_onnx([x, w], y, verify=False)) == ["Conv", "Mul"]


def test_a_scale_that_is_not_finite_stays():
    x = images()
    scale = np.array([1.0, np.inf, 2.0], "float32")[:, None, None]
    y = conv2d(x, values(3, 4, 1, 1)) * scale
    assert op_types(export_onnx([x], y, verify=False)) == ["Conv", "Mul"]


def test_filters_that_would_overflow_stay():
    x = pt.tensor("x", dtype="float16", shape=(1, 1, 2, 2))
    y = conv2d(x, np.full((1, 1, 1, 1), 100, "float16")) * np.float16(1000)
    program = export_onnx([x], y, verify=False)
    small = np.full((1, 1, 2, 2), 1e-4, "float16")
    np.testing.assert_allclose(program(small), 10 * small * 1e4, rtol=1e-2)


def test_sequences_are_folded_too():
    x = pt.tensor("x", dtype="float32", shape=(None, 2, 7))
    y = conv1d(x, values(3, 2, 3)) + values(3)[:, None]
    program = compare_onnx_and_py([x], y, [values(2, 2, 7)], atol=1e-5)
    (node,) = program.model.graph
    assert len(node.inputs) == 3
    assert node.outputs[0].dtype == ir.DataType.FLOAT


def test_sizes_are_read_from_the_folded_convolution():
    filters, bias = values(3, 4, 2, 2), values(3, 1, 1)

    def emit(build, x):
        conv = build.Conv(x, build.constant(filters))
        return [build.Neg(build.Shape(conv)), build.Add(conv, build.constant(bias))]

    model = bare(emit, values(2, 4, 6, 5))
    expected = model.run()
    model.apply(NodeRules(fold_into_conv))
    assert model.operators() == ["Conv", "Shape", "Neg"]
    for found, value in zip(model.run(), expected, strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-5, atol=1e-6)


def test_constants_keep_their_names():
    x, w = images(), pytensor.shared(values(3, 4, 3, 3), name="w")
    b, c = (pytensor.shared(values(3), name=name) for name in "bc")
    plain = conv2d(x, w, filter_flip=False) + c[:, None, None]
    assert sorted(constants(export_onnx([x], plain, verify=False))) == ["c", "w"]
    y = batch_norm(conv2d(x, w, bias=b, filter_flip=False), c, c, c, np.ones(3, "float32"))
    assert sorted(constants(export_onnx([x], y, verify=False))) == ["b", "w"]


def test_frozen_shared_variables_are_folded_in_mode_onnx(monkeypatch):
    x, w = images(), pytensor.shared(values(3, 4, 3, 3))
    c = pytensor.shared(np.abs(values(3)) + 1)
    y = batch_norm(conv2d(x, w), c, 2 * c, c, c)
    prepared = []
    monkeypatch.setattr(
        pipeline, "prepare", lambda c, *a, **k: prepare(c, *a, **k) or prepared.append(c.model)
    )
    given = values(2, 4, 6, 5)
    frozen = pytensor.function([x], y, mode=Mode(ONNXLinker(freeze=True), ONNX_QUERY))(given)
    (model,) = prepared
    assert [node.op_type for node in model.graph] == ["Conv"]
    np.testing.assert_allclose(frozen, pytensor.function([x], y, mode="ONNX")(given), atol=1e-5)
