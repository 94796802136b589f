"""Axes that are open in the file, and sizes that follow from others."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from pytensor_onnx import UnsupportedOpError, export_onnx, from_onnx
from tests.importing.models import by_runtime, evaluated, model_of


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape).astype("float32")


def assert_everywhere_equal(model, *arrays):
    """Compare PyTensor's Python mode and the exported graph with ONNX Runtime."""
    graph = from_onnx(model)
    program = export_onnx(graph.inputs, graph.outputs, dynamic_axes=graph.dynamic_axes)
    expected = by_runtime(model, *arrays)[0]
    for found in (evaluated(graph, *arrays)[0], program(*arrays)[0]):
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_a_negative_size_of_the_file_is_open():
    node = helper.make_node("Conv", ["x", "w"], ["y"])
    model = model_of(
        [node],
        inputs={"x": (-1, 3, "h", "w")},
        outputs={"y": (-1, 2, None, None)},
        constants={"w": np.ones((2, 3, 1, 1), "float32")},
    )
    assert from_onnx(model).inputs[0].type.shape == (None, 3, None, None)
    assert_everywhere_equal(model, normal(2, 3, 4, 5))


@pytest.mark.parametrize("opset", [12, 21])
def test_the_rank_of_the_result_tells_the_axes_of_size_one(opset):
    def model(before, after):
        node = helper.make_node("Squeeze", ["x"], ["y"])
        return model_of([node], inputs={"x": before}, outputs={"y": after}, opset=opset)

    assert_everywhere_equal(model(("n", 1), ("n",)), normal(3, 1))
    assert_everywhere_equal(model(("n", 1, 4, "m"), (4,)), normal(1, 1, 4, 1))
    with pytest.raises(UnsupportedOpError, match="the size of some is not known"):
        from_onnx(model(("n", 1, "m"), ("k",)))


@pytest.mark.parametrize("heads", [1, 6])
def test_an_open_size_is_one_where_equal_sizes_cancel(heads):
    """The mask of a transformer, ``view(batch, heads, -1, seq)``, broadcasts over its rows."""
    nodes = [
        helper.make_node("Shape", ["x"], ["b"], start=0, end=1),
        helper.make_node("Shape", ["mask"], ["s"], start=1, end=2),
        helper.make_node("Concat", ["b", "heads", "one", "s"], ["whole"], axis=0),
        helper.make_node("Unsqueeze", ["mask", "axes"], ["m1"]),
        helper.make_node("Expand", ["m1", "whole"], ["m2"]),
        helper.make_node("Mul", ["b", "heads"], ["bh"]),
        helper.make_node("Concat", ["bh", "one", "s"], ["merged"], axis=0),
        helper.make_node("Reshape", ["m2", "merged"], ["m3"]),
        helper.make_node("Concat", ["b", "heads", "minus", "s"], ["split"], axis=0),
        helper.make_node("Reshape", ["m3", "split"], ["m4"]),
        helper.make_node("Add", ["x", "m4"], ["y"]),
    ]
    model = model_of(
        nodes,
        inputs={"x": ("batch", heads, "rows", "seq"), "mask": ("batch", "seq")},
        outputs={"y": ("batch", heads, "rows", "seq")},
        constants={
            "heads": np.int64([heads]),
            "one": np.int64([1]),
            "minus": np.int64([-1]),
            "axes": np.int64([1, 2]),
        },
    )
    assert_everywhere_equal(model, normal(2, heads, 3, 4), normal(2, 4))


def test_axes_of_one_name_within_an_input_may_differ():
    """Some converters name all open axes alike."""
    nodes = [
        helper.make_node("Shape", ["x"], ["h"], start=1, end=2),
        helper.make_node("Concat", ["minus", "h"], ["t"], axis=0),
        helper.make_node("Reshape", ["x", "t"], ["y"]),
    ]
    model = model_of(
        nodes,
        inputs={"x": (1, "?", "?")},
        outputs={"y": (None, None)},
        constants={"minus": np.int64([-1])},
    )
    x = normal(1, 3, 2)
    np.testing.assert_array_equal(evaluated(from_onnx(model), x)[0], x.reshape(-1, 3))


@pytest.mark.few(6)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(("operator", "gates"), [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
@pytest.mark.parametrize("has_lengths", [False, True])
def test_recurrent_layers_keep_the_number_of_steps(operator, gates, direction, has_lengths):
    directions = 2 if direction == "bidirectional" else 1
    node = helper.make_node(
        operator,
        ["x", "w", "r", *(["", "lengths"] if has_lengths else [])],
        ["y", "h"],
        hidden_size=4,
        direction=direction,
        layout=0,
    )
    model = model_of(
        [node],
        inputs={"x": (7, 2, 3)},
        outputs={"y": (7, directions, 2, 4), "h": (directions, 2, 4)},
        constants={
            "w": normal(directions, gates * 4, 3),
            "r": normal(directions, gates * 4, 4),
            "lengths": np.int32([7, 5]),
        },
    )
    assert from_onnx(model).outputs[0].type.shape == (7, directions, 2, 4)
    model.graph.node[0].attribute[-1].i = 1
    model.graph.output[0].CopyFrom(
        helper.make_tensor_value_info("y", TensorProto.FLOAT, (2, 7, directions, 4))
    )
    model.graph.input[0].CopyFrom(helper.make_tensor_value_info("x", TensorProto.FLOAT, (2, 7, 3)))
    assert from_onnx(model).outputs[0].type.shape == (2, 7, directions, 4)


def test_reversed_axes_keep_their_size():
    """Forward and reversed sequences are joined, and their size is read from both."""
    ends = {"start": np.int64([-1]), "end": np.int64([-(2**62)]), "axis": np.int64([0])}
    nodes = [
        helper.make_node("Slice", ["x", "start", "end", "axis", "start"], ["z"]),
        helper.make_node("Shape", ["z"], ["n"], start=0, end=1),
        helper.make_node("Concat", ["n", "minus"], ["t"], axis=0),
        helper.make_node("Reshape", ["x", "t"], ["u"]),
        helper.make_node("Add", ["u", "bias"], ["y"]),
    ]
    model = model_of(
        nodes,
        inputs={"x": ("n",)},
        outputs={"y": ("n", 2)},
        constants={**ends, "minus": np.int64([-1]), "bias": np.float32([1, 2])},
    )
    assert_everywhere_equal(model, normal(5))


def test_axes_of_different_reshapes_have_different_names_in_an_export():
    """ONNX broadcasts an axis of size one at run time, so that the sizes of results are open."""
    nodes = [
        helper.make_node("Reshape", ["x", "s"], ["a"]),
        helper.make_node("Reshape", ["z", "t"], ["b"]),
        helper.make_node("Sub", ["a", "b"], ["c"]),
        helper.make_node("Tanh", ["c"], ["d"]),
        helper.make_node("Mul", ["d", "b"], ["y"]),
    ]
    model = model_of(
        nodes,
        inputs={"x": ("n",), "z": ("m",), "s": (2,), "t": (2,)},
        outputs={"y": (None, None)},
        dtypes={"s": TensorProto.INT64, "t": TensorProto.INT64},
    )
    graph = from_onnx(model)
    program = export_onnx(graph.inputs, graph.outputs, verify=False)
    values = {v.name: v.shape for node in program.model.graph for v in node.outputs}
    assert len({dim.value for name in "abcy" for dim in values[name]}) == 8


@pytest.mark.parametrize(("batch_axis", "time_axis"), [(1, 0), (0, 1)])
def test_steps_after_the_end_of_a_sequence_keep_their_places(batch_axis, time_axis):
    axes = {"batch_axis": batch_axis, "time_axis": time_axis}
    node = helper.make_node("ReverseSequence", ["x", "lengths"], ["y"], **axes)
    model = model_of(
        [node],
        inputs={"x": ("a", "b", 2)},
        outputs={"y": ("a", "b", 2)},
        constants={"lengths": np.array([0, 1, 2, 4, 5])},
    )
    assert_everywhere_equal(model, normal(5, 5, 2))
