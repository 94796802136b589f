"""Convolutions and pools of ONNX in tapes, compared with ONNX Runtime's."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

from pytensor_onnx import native
from pytensor_onnx.kernels import written_layers
from pytensor_onnx.kernels.regions import fuse, whole_region

RNG = np.random.default_rng(0)


def model_of(operator, shapes, attributes, dtype="float32"):
    """Return the model of an operator for batches of any size, and its feeds."""
    kind, names = helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), ["x", "w", "b"][: len(shapes)]
    node = helper.make_node(operator, names, ["y"], **attributes)
    known = [["n", *shapes[0][1:]], *shapes[1:]]
    pairs = zip(names, known, strict=True)
    inputs = [helper.make_tensor_value_info(name, kind, shape) for name, shape in pairs]
    outputs = [helper.make_tensor_value_info("y", kind, None)]
    graph = helper.make_graph([node], "windows", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    drawn = [RNG.normal(scale=3, size=shape).astype(dtype) for shape in shapes]
    return model, dict(zip(names, drawn, strict=True))


def run_tape(model, feed):
    written = fuse(model.SerializeToString(), every_size=True).model
    assert written is not None
    assert whole_region(onnx.load_model_from_string(written).graph) is not None
    options = onnxruntime.SessionOptions()
    native.register_with_regions(options)
    return onnxruntime.InferenceSession(written, options).run(None, feed)[0]


def assert_as_runtime(model, feed, rtol):
    [expected] = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feed)
    np.testing.assert_allclose(run_tape(model, feed), expected, rtol=rtol, atol=rtol)


@pytest.mark.parametrize(
    ("x", "w", "attributes"),
    [
        ((2, 3, 8, 9), (4, 3, 3, 3), {}),
        ((1, 3, 8, 9), (4, 3, 3, 2), {"pads": [1, 0, 2, 1], "strides": [2, 3]}),
        ((3, 4, 7, 7), (6, 2, 3, 3), {"group": 2, "dilations": [2, 1]}),
        ((2, 3, 5, 5), (3, 1, 5, 5), {"group": 3, "pads": [2, 2, 2, 2]}),
        ((2, 3, 11), (5, 3, 4), {"strides": [3], "pads": [2, 1]}),
        ((1, 2, 4, 5, 6), (2, 2, 2, 2, 2), {}),
        ((0, 3, 8, 9), (4, 3, 3, 3), {}),
        ((2, 3, 4, 4), (7, 3, 1, 1), {}),
        ((2, 3, 7, 6), (4, 3, 2, 3), {"auto_pad": "SAME_UPPER", "strides": [2, 1]}),
        ((2, 3, 7, 6), (4, 3, 4, 2), {"auto_pad": "SAME_LOWER", "strides": [1, 2]}),
        ((2, 3, 7, 6), (4, 3, 2, 3), {"auto_pad": "VALID"}),
    ],
)
def test_a_convolution_is_a_product(x, w, attributes):
    for shapes in ((x, w), (x, w, (w[0],))):
        assert_as_runtime(*model_of("Conv", shapes, attributes), 2e-5)


def test_a_large_convolution_stays(monkeypatch):
    monkeypatch.setattr(written_layers, "MOST_PRODUCTS", 1000)
    model, _ = model_of("Conv", ((1, 3, 8, 8), (4, 3, 3, 3)), {})
    assert any("Conv" in line for line in fuse(model.SerializeToString(), every_size=True).lines())


def test_a_larger_convolution_is_written_where_nothing_else_runs_it(monkeypatch):
    monkeypatch.setattr(written_layers, "MOST_PRODUCTS", 1000)
    model, _ = model_of("Conv", ((1, 3, 8, 8), (4, 3, 3, 3)), {})
    with written_layers.of_any_size():
        assert fuse(model.SerializeToString(), every_size=True).is_whole
    monkeypatch.setattr(written_layers, "MOST_OF_ANY", 900)
    with written_layers.of_any_size():
        assert not fuse(model.SerializeToString(), every_size=True).is_whole


def without_sizes(model, is_ranked):
    """Return a model whose first input has unknown sizes, and an unknown rank unless it has one."""
    shape = model.graph.input[0].type.tensor_type.shape
    for i, size in enumerate(shape.dim):
        size.dim_param = f"n{i}"
    if not is_ranked:
        model.graph.input[0].type.tensor_type.ClearField("shape")
    return model


@pytest.mark.parametrize(
    ("operator", "shapes", "attributes"),
    [
        ("Conv", ((2, 3, 8, 9), (4, 3, 3, 3), (4,)), {}),
        (
            "Conv",
            ((1, 4, 8, 9), (6, 2, 3, 2)),
            {"pads": [1, 0, 2, 1], "strides": [2, 3], "group": 2},
        ),
        ("Conv", ((2, 3, 11), (5, 3, 4)), {"strides": [3], "dilations": [2]}),
        ("Conv", ((1, 2, 4, 5, 6), (2, 2, 2, 2, 2)), {"strides": [1, 2, 3]}),
        ("MaxPool", ((2, 3, 9, 7),), {"kernel_shape": [3, 2], "strides": [2, 1]}),
        ("AveragePool", ((2, 3, 10),), {"kernel_shape": [3], "strides": [2]}),
    ],
)
@pytest.mark.parametrize("is_ranked", [True, False])
def test_windows_of_sizes_that_a_call_gives(operator, shapes, attributes, is_ranked):
    model, feed = model_of(operator, shapes, attributes)
    [expected] = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feed)
    with written_layers.of_any_size():
        found = run_tape(without_sizes(model, is_ranked), feed)
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)


def test_windows_that_may_be_large_stay_with_the_runtime():
    model, _ = model_of("MaxPool", ((1, 3, 8, 8),), {"kernel_shape": [2, 2]})
    assert not fuse(without_sizes(model, True).SerializeToString(), every_size=True).is_whole


@pytest.mark.parametrize("slope", [(1,), (3, 1, 1), (1, 3, 4, 5)])
def test_a_slope_of_negative_numbers_is_an_operand(slope):
    assert_as_runtime(*model_of("PRelu", ((1, 3, 4, 5), slope), {}), 0)


def test_sessions_leave_convolutions_to_the_runtime():
    model, _ = model_of("Conv", ((1, 3, 8, 8), (4, 3, 3, 3)), {})
    assert fuse(model.SerializeToString()).model is None


@pytest.mark.parametrize(
    ("shape", "attributes"),
    [
        ((2, 3, 8, 8), {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ((1, 3, 9, 7), {"kernel_shape": [3, 2], "pads": [1, 1, 2, 0], "strides": [2, 1]}),
        ((3, 2, 10), {"kernel_shape": [3], "strides": [2]}),
        ((0, 3, 8, 8), {"kernel_shape": [2, 2]}),
        ((1, 2, 5, 5), {"kernel_shape": [2, 2], "strides": [2, 2], "auto_pad": "SAME_UPPER"}),
    ],
)
def test_a_pool_is_a_reduction(shape, attributes):
    assert_as_runtime(*model_of("MaxPool", [shape], attributes), 0)
    assert_as_runtime(*model_of("AveragePool", [shape], attributes), 1e-6)
    included = attributes | {"count_include_pad": 1}
    assert_as_runtime(*model_of("AveragePool", [shape], included), 1e-6)


@pytest.mark.parametrize("shape", [(2, 3, 5, 4), (1, 2, 7), (0, 3, 4, 4)])
def test_a_global_pool_is_a_reduction(shape):
    assert_as_runtime(*model_of("GlobalMaxPool", [shape], {}), 0)
    assert_as_runtime(*model_of("GlobalAveragePool", [shape], {}), 1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_batch_normalization_is_a_line(dtype):
    model, feed = model_of("BatchNormalization", [(2, 3, 4, 5)], {"epsilon": 0.01}, dtype)
    kind = model.graph.input[0].type.tensor_type.elem_type
    for name in ("scale", "shift", "mean", "variance"):
        model.graph.node[0].input.append(name)
        model.graph.input.append(helper.make_tensor_value_info(name, kind, [3]))
        feed[name] = RNG.uniform(0.5, 2, 3).astype(dtype)
    assert_as_runtime(model, feed, 2e-6)


def test_a_hard_sigmoid_is_clipped():
    model, feed = model_of("HardSigmoid", [(2, 30)], {"alpha": 0.3, "beta": 0.4})
    feed["x"][0, :3] = [np.inf, -np.inf, 0]
    assert_as_runtime(model, feed, 1e-6)
    assert_as_runtime(*model_of("HardSwish", [(2, 30)], {}), 1e-6)


def test_maxima_of_infinities_and_bytes():
    attributes = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    model, feed = model_of("MaxPool", [(2, 2, 4, 4)], attributes, "uint8")
    assert_as_runtime(model, feed, 0)
    # The runtime's least maximum is a finite number.
    model, feed = model_of("MaxPool", [(1, 1, 4, 4)], attributes)
    feed["x"][0, 0] = -np.inf
    feed["x"][0, 0, 3, 3] = np.inf
    expected = np.full((4, 4), -np.inf)
    expected[2:, 2:] = np.inf
    np.testing.assert_array_equal(run_tape(model, feed)[0, 0], expected)


def test_pools_of_sizes_that_are_rounded_up_stay():
    given = {"ceil_mode": 1, "kernel_shape": [2, 2], "strides": [2, 2]}
    model, _ = model_of("MaxPool", [(1, 2, 5, 5)], given)
    fusion = fuse(model.SerializeToString(), every_size=True)
    assert any("MaxPool" in line for line in fusion.lines())
