"""Loops of models as scans."""

import numpy as np
import pytensor
import pytest
from onnx import TensorProto, helper

from pytensor_onnx import UnsupportedOpError, from_onnx
from tests.importing.models import PYTHON, by_runtime, evaluated, model_of


def info(name: str, dtype: int = TensorProto.FLOAT) -> object:
    return helper.make_tensor_value_info(name, dtype, [])


def doubling():
    """Return a loop that doubles a number while it is less than a limit, and collects it."""
    body = helper.make_graph(
        [
            helper.make_node("Add", ["v", "v"], ["v2"]),
            helper.make_node("Less", ["v2", "limit"], ["goes_on"]),
            helper.make_node("Identity", ["v2"], ["seen"]),
        ],
        "body",
        [info("i", TensorProto.INT64), info("on", TensorProto.BOOL), info("v")],
        [info("goes_on", TensorProto.BOOL), info("v2"), info("seen")],
    )
    return model_of(
        [helper.make_node("Loop", ["count", "", "x"], ["last", "trace"], body=body)],
        inputs={"count": (), "x": (), "limit": ()},
        outputs={"last": (), "trace": (None,)},
        dtypes={"count": TensorProto.INT64},
    )


def test_a_loop_ends_by_its_condition_or_its_count():
    graph = from_onnx(doubling())
    for count, limit in ((10, 20.0), (2, 100.0), (0, 5.0)):
        arguments = np.int64(count), np.float32(3), np.float32(limit)
        for found, expected in zip(
            evaluated(graph, *arguments), by_runtime(doubling(), *arguments), strict=True
        ):
            np.testing.assert_array_equal(found, expected)


def doubling_below():
    """Return a loop without a count that doubles a number below a limit."""
    body = helper.make_graph(
        [
            helper.make_node("Add", ["v", "v"], ["v2"]),
            helper.make_node("Less", ["v2", "limit"], ["goes_on"]),
        ],
        "body",
        [info("i", TensorProto.INT64), info("on", TensorProto.BOOL), info("v")],
        [info("goes_on", TensorProto.BOOL), info("v2")],
    )
    nodes = [
        helper.make_node("Less", ["x", "limit"], ["starts"]),
        helper.make_node("Loop", ["", "starts", "x"], ["last"], body=body),
    ]
    return model_of(nodes, inputs={"x": (), "limit": ()}, outputs={"last": ()})


@pytest.mark.parametrize("mode", ["ONNX", "NUMBA"])
def test_a_loop_without_a_count_stores_the_last_state_alone(mode):
    model = doubling_below()
    graph = from_onnx(model)
    function = pytensor.function(graph.inputs, graph.outputs, mode=mode)
    for x, limit in ((1.0, 100.0), (3.0, 3.0)):
        given = np.float32(x), np.float32(limit)
        np.testing.assert_array_equal(function(*given), by_runtime(model, *given))


def test_a_scan_has_a_gradient():
    body = helper.make_graph(
        [
            helper.make_node("Mul", ["s", "x_t"], ["product"]),
            helper.make_node("Add", ["product", "w"], ["s2"]),
            helper.make_node("Identity", ["s2"], ["y_t"]),
        ],
        "body",
        [info("s"), info("x_t")],
        [info("s2"), info("y_t")],
    )
    model = model_of(
        [helper.make_node("Scan", ["start", "x"], ["end", "y"], body=body, num_scan_inputs=1)],
        inputs={"x": ("time",), "start": ()},
        outputs={"end": (), "y": ("time",)},
        constants={"w": np.float32(0.5)},
    )
    x, start = np.float32([1, 2, 3]), np.float32(2)
    graph = from_onnx(model)
    for found, expected in zip(
        evaluated(graph, x, start), by_runtime(model, x, start), strict=True
    ):
        np.testing.assert_allclose(found, expected)
    gradient = pytensor.grad(graph.outputs[0], graph.inputs[1])
    assert gradient.eval(dict(zip(graph.inputs, (x, start), strict=True)), mode=PYTHON) == 6


def growing(sizes, *nodes, count=3):
    """Return a loop with a state whose size along the first axis changes, and its square."""
    state = helper.make_tensor_value_info("v", TensorProto.FLOAT, sizes)
    longer = helper.make_tensor_value_info("v2", TensorProto.FLOAT, [None, 2])
    body = helper.make_graph(
        [
            helper.make_node("Mul", ["s", "s"], ["s2"]),
            *nodes,
            helper.make_node("Identity", ["on"], ["goes_on"]),
        ],
        "body",
        [info("i", TensorProto.INT64), info("on", TensorProto.BOOL), state, info("s")],
        [info("goes_on", TensorProto.BOOL), longer, info("s2")],
    )
    return model_of(
        [helper.make_node("Loop", ["count", "", "x", "y"], ["last", "square"], body=body)],
        inputs={"x": sizes, "y": ()},
        outputs={"last": (None, 2), "square": ()},
        constants={"shape": np.int64([1, 2]), "count": np.int64(count)},
    )


@pytest.mark.parametrize("count", [0, 3])
@pytest.mark.parametrize("sizes", [(0, 2), (2, 2), ("n", 2)])
def test_values_that_steps_append_to_a_state_are_collected(sizes, count):
    row = helper.make_node("Expand", ["s2", "shape"], ["row"])
    append = helper.make_node("Concat", ["v", "row"], ["v2"], axis=0)
    model = growing(sizes, row, append, count=count)
    x = np.ones((0 if sizes[0] == 0 else 2, 2), "float32")
    graph, y = from_onnx(model), np.float32(0.5)
    for found, expected in zip(evaluated(graph, x, y), by_runtime(model, x, y), strict=True):
        np.testing.assert_array_equal(found, expected)
    slope = pytensor.grad(graph.outputs[0].sum(), graph.inputs[1])
    found = slope.eval(dict(zip(graph.inputs, (x, y), strict=True)), mode=PYTHON)
    np.testing.assert_allclose(found, 2 * sum(n * y ** (n - 1) for n in (2, 4, 8)[:count]))


@pytest.mark.parametrize("sizes", [(2, 2), ("n", 2)])
def test_states_that_grow_and_are_read_are_refused(sizes):
    double = helper.make_node("Concat", ["v", "v"], ["v2"], axis=0)
    with pytest.raises(UnsupportedOpError, match="the shape of its state v changes"):
        from_onnx(growing(sizes, double))


def test_a_state_grows_until_a_condition_ends_the_loop():
    body = helper.make_graph(
        [
            helper.make_node("Concat", ["v", "row"], ["v2"], axis=0),
            helper.make_node("Less", ["i", "limit"], ["goes_on"]),
        ],
        "body",
        [
            info("i", TensorProto.INT64),
            info("on", TensorProto.BOOL),
            helper.make_tensor_value_info("v", TensorProto.FLOAT, ["n"]),
        ],
        [
            info("goes_on", TensorProto.BOOL),
            helper.make_tensor_value_info("v2", TensorProto.FLOAT, [None]),
        ],
    )
    model = model_of(
        [helper.make_node("Loop", ["", "", "x"], ["last"], body=body)],
        inputs={"x": ("n",), "limit": ()},
        outputs={"last": (None,)},
        constants={"row": np.float32([1])},
        dtypes={"limit": TensorProto.INT64},
    )
    graph = from_onnx(model)
    for limit in (0, 3):
        arguments = np.float32([5, 6]), np.int64(limit)
        np.testing.assert_array_equal(
            evaluated(graph, *arguments)[0], by_runtime(model, *arguments)[0]
        )
