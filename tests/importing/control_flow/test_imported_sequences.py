"""Sequences and their operators."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from onnx import TensorProto, helper

from pytensor_onnx import UnsupportedOpError, UnsupportedTypeError, export_onnx, from_onnx
from tests.importing.loops.test_loops_over_sequences import ROWS, parsed
from tests.importing.models import by_runtime, evaluated, model_of


def splitting(split: str = "") -> object:
    return model_of(
        [
            helper.make_node("SplitToSequence", ["x", *([split] * bool(split))], ["s"], axis=0),
            helper.make_node("SequenceAt", ["s", "last"], ["a"]),
            helper.make_node("SequenceErase", ["s", "first"], ["t"]),
            helper.make_node("SequenceInsert", ["t", "a", "first"], ["u"]),
            helper.make_node("ConcatFromSequence", ["u"], ["y"], axis=0),
        ],
        inputs={"x": ("n", 2), **({split: (2,)} if split else {})},
        outputs={"y": (None, 2)},
        constants={"first": np.int64(0), "last": np.int64(-1)},
        dtypes={split: TensorProto.INT64},
    )


def test_sequences_are_taken_apart_and_joined():
    x = np.arange(6, dtype="float32").reshape(3, 2)
    graph = from_onnx(splitting(), shapes={"n": 3})
    assert evaluated(graph, x)[0].tolist() == [[4, 5], [2, 3], [4, 5]]
    graph = from_onnx(splitting("k"))
    assert evaluated(graph, x, [1, 2])[0].tolist() == [[2, 3], [4, 5], [2, 3], [4, 5]]


def test_a_sequence_as_input_is_asked_for():
    element = helper.make_tensor_type_proto(TensorProto.FLOAT, ("n",))
    model = model_of(
        [helper.make_node("ConcatFromSequence", ["s"], ["y"], axis=0)],
        inputs={"s": ("n",)},
        outputs={"y": (None,)},
    )
    model.graph.input[0].type.CopyFrom(helper.make_sequence_type_proto(element))
    with pytest.raises(UnsupportedTypeError, match=r"inputs=\{'s': \[variable, ...\]\}"):
        from_onnx(model)
    a, b = pt.fvectors("a", "b")
    graph = from_onnx(model, inputs={"s": [a, b]})
    assert graph.outputs[0].eval({a: np.float32([1]), b: np.float32([2, 3])}).tolist() == [1, 2, 3]


def test_a_loop_over_sequences_is_unrolled():
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["c"], ["d"]),
            helper.make_node("Cast", ["i"], ["f"], to=TensorProto.FLOAT),
            helper.make_node("Mul", ["x", "f"], ["v"]),
            helper.make_node("SequenceInsert", ["s", "v"], ["t"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, ()),
            helper.make_tensor_value_info("c", TensorProto.BOOL, ()),
            helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None),
        ],
        [
            helper.make_tensor_value_info("d", TensorProto.BOOL, ()),
            helper.make_tensor_sequence_value_info("t", TensorProto.FLOAT, None),
        ],
    )
    model = model_of(
        [
            helper.make_node("SequenceEmpty", [], ["s"]),
            helper.make_node("Loop", ["n", "", "s"], ["t"], body=body),
            helper.make_node("ConcatFromSequence", ["t"], ["y"], axis=0, new_axis=1),
        ],
        inputs={"x": ("k",), "n": ()},
        outputs={"y": (None, "k")},
        dtypes={"n": TensorProto.INT64},
    )
    graph = from_onnx(model, inputs={"n": 3})
    assert evaluated(graph, np.float32([1, 2]))[0].tolist() == [[0, 0], [1, 2], [2, 4]]
    nodes = pytensor.graph.traversal.applys_between(graph.inputs, graph.outputs)
    assert all(type(node.op).__name__ != "Scan" for node in nodes)


SPLITS = {
    "rows": ("axis=0, keepdims=0", "", "float[?]"),
    "rows of one": ("axis=0", "", "float[?, ?]"),
    "columns": ("axis=1, keepdims=0", "", "float[?]"),
    "parts of two": ("axis=0", ", two", "float[?, ?]"),
    "parts of open lengths": ("axis=0", ", n", "float[?, ?]"),
}


@pytest.mark.parametrize("name", SPLITS)
def test_parts_of_an_open_number_are_read_and_counted(name):
    attributes, operand, type_ = SPLITS[name]
    model = parsed(
        f"(float[k, m] x, int64[j] n, int64 i) => ({type_} y, int64 l) {{ "
        f"two = Constant<value_int=2>() s = SplitToSequence<{attributes}>(x{operand}) "
        "y = SequenceAt(s, i) l = SequenceLength(s) }"
    )
    graph = from_onnx(model)
    run = pytensor.function(graph.inputs, graph.outputs, on_unused_input="ignore", mode="CVM")
    for i in (0, 1, -1):
        arguments = ROWS, np.int64([1, 3]), np.int64(i)
        named = dict(zip(["x", "n", "i"], arguments, strict=True))
        found = run(*(named[str(v.name)] for v in graph.inputs))
        for a, b in zip(found, by_runtime(model, *arguments), strict=True):
            np.testing.assert_array_equal(a, b)
    named["i"] = np.int64(4)
    with pytest.raises(IndexError):
        run(*(named[str(v.name)] for v in graph.inputs))


def test_lengths_of_parts_must_be_those_of_the_array():
    model = parsed(
        "(float[k, m] x, int64[j] n) => (float[?, ?] y) { i = Constant<value_int=0>() "
        "s = SplitToSequence<axis=0>(x, n) y = SequenceAt(s, i) }"
    )
    with pytest.raises(ValueError, match="must sum up"):
        evaluated(from_onnx(model), ROWS, [1, 1])


@pytest.mark.parametrize(("axis", "new_axis"), [(0, 0), (1, 0), (0, 1), (2, 1), (-1, 0), (-1, 1)])
def test_parts_of_an_open_number_are_joined(axis, new_axis):
    rank = 2 + new_axis
    model = parsed(
        f"(float[k, m] x) => (float[{', '.join('?' * rank)}] y) {{ two = Constant<value_int=2>() "
        f"s = SplitToSequence<axis=0>(x, two) "
        f"y = ConcatFromSequence<axis={axis}, new_axis={new_axis}>(s) }}"
    )
    graph = from_onnx(model)
    np.testing.assert_array_equal(evaluated(graph, ROWS)[0], by_runtime(model, ROWS)[0])
    if axis != 0 or new_axis:
        with pytest.raises(ValueError, match="must have one size"):
            evaluated(graph, ROWS[:3])


def test_a_choice_of_sequences_of_other_lengths():
    model = parsed(
        "(float[k, 3] x, bool b) => (float[?, 3] y, int64 l) { "
        "s = SplitToSequence<axis=0, keepdims=0>(x) t = If(b) "
        "<then_branch = t () => (seq(float) t1) { t1 = SequenceErase(s) }, "
        "else_branch = e () => (seq(float) t2) { t2 = Identity(s) }> "
        "y = ConcatFromSequence<axis=0, new_axis=1>(t) l = SequenceLength(t) }"
    )
    graph = from_onnx(model)
    for b in (True, False):
        for a, c in zip(evaluated(graph, ROWS, b), by_runtime(model, ROWS, b), strict=True):
            np.testing.assert_array_equal(a, c)
    x, b = graph.inputs
    slope = pytensor.grad((graph.outputs[0] ** 2).sum(), x)
    found = pytensor.function([x, b], slope)(ROWS, True)
    np.testing.assert_allclose(found, 2 * ROWS * (np.arange(4) < 3)[:, None], rtol=1e-6)


def test_a_map_over_a_sequence_of_an_open_number_of_elements():
    model = parsed(
        "(float[k, m] x, float[m] w) => (float[?, ?] y) { "
        "s = SplitToSequence<axis=0, keepdims=0>(x) "
        "t = SequenceMap(s, w) <body = b (float[m] a, float[m] c) => (float[m] o) "
        "{ p = Mul(a, c) o = Add(p, w) }> y = ConcatFromSequence<axis=0, new_axis=1>(t) }"
    )
    weights = np.float32([1, 2, 3])
    expected = ROWS * weights + weights
    np.testing.assert_allclose(evaluated(from_onnx(model), ROWS, weights)[0], expected)


@pytest.mark.parametrize(
    ("made", "count"), [("SequenceConstruct(x, z)", 2), ("SplitToSequence<axis=0>(x)", None)]
)
def test_an_output_that_is_a_sequence_is_one_again(made, count):
    model = parsed(
        "(float[k, m] x) => (float[k, m] a, seq(float) y) { z = Mul(x, x) a = Neg(x) "
        f"y = {made} }}"
    )
    graph = from_onnx(model)
    assert (len(graph.outputs[1]) if count else graph.outputs[1].type.ndim) == (count or 3)
    program = export_onnx(graph.inputs, graph.outputs)
    assert [v.name for v in program.proto.graph.output] == ["a", "y"]
    for found, expected in zip(
        by_runtime(program.proto, ROWS), by_runtime(model, ROWS), strict=True
    ):
        assert type(found) is type(expected)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)


def test_parts_of_unknown_sizes_are_no_output():
    model = parsed(
        "(float[k, m] x) => (seq(float) y) { two = Constant<value_int=2>() "
        "y = SplitToSequence<axis=0>(x, two) }"
    )
    with pytest.raises(UnsupportedOpError, match=r"shapes=\{'x': "):
        from_onnx(model)
    graph = from_onnx(model, shapes={"k": 3})
    expected = by_runtime(model, ROWS[:3])[0]
    for a, b in zip(graph.outputs[0], expected, strict=True):
        np.testing.assert_array_equal(a.eval({graph.inputs[0]: ROWS[:3]}), b)


def test_a_sequence_as_input_may_be_one_array():
    element = helper.make_tensor_type_proto(TensorProto.FLOAT, ("n",))
    model = model_of(
        [helper.make_node("ConcatFromSequence", ["s"], ["y"], axis=0)],
        inputs={"s": ("n",)},
        outputs={"y": (None,)},
    )
    model.graph.input[0].type.CopyFrom(helper.make_sequence_type_proto(element))
    rows = pt.fmatrix("rows")
    graph = from_onnx(model, inputs={"s": rows})
    np.testing.assert_array_equal(graph.outputs[0].eval({rows: ROWS}), ROWS.ravel())
