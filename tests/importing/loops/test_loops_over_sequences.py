"""Loops over sequences of an open number of elements."""

import numpy as np
import onnx
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.gradient import verify_grad

from pytensor_onnx import UnsupportedOpError, export_onnx, from_onnx
from tests.importing.models import PYTHON, by_runtime, evaluated

ROWS = np.random.default_rng(1).normal(size=(4, 3)).astype("float32")


def parsed(text, opset=17):
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> m {text}')
    onnx.checker.check_model(model)
    return model


def looping(
    step, *, first="s0 = SequenceEmpty()", end="", steps="n", output="float[?, ?] y", inputs=""
):
    """Return a model of a loop with the sequence s, whose value after a step is t."""
    end = end or "y = ConcatFromSequence<axis=0, new_axis=1>(r)"
    body = f"b (int64 i, bool c, seq(float) s) => (bool d, seq(float) t) {{ {step} }}"
    return parsed(
        f"(float[k, 3] x, int64 n{inputs}) => ({output}) {{ {first} "
        f'r = Loop({steps}, "", s0) <body = {body}> {end} }}'
    )


ROW = "v = Gather<axis=0>(x, i) "
ON = "d = Identity(c) "
APPEND = ON + ROW + "w = Mul(v, v) t = SequenceInsert(s, w)"
FIRST_ROW = "z = Constant<value_int=0>() f = Gather<axis=0>(x, z) s0 = SequenceConstruct(f)"
SPLIT = "s0 = SplitToSequence<axis=0, keepdims=0>(x)"
LAST = "m = Constant<value_int=-1>() p = SequenceAt(s, m) "
IS_POSITIVE = "a = ReduceSum<keepdims=0>(v) q = Constant<value_float=0.0>() g = Greater(a, q) "
CHOICE = (
    "t = If(g) <then_branch = a () => (seq(float) t1) { t1 = SequenceInsert(s, v) },"
    " else_branch = b () => (seq(float) t2) { t2 = Identity(s) }>"
)
AT_ZERO = "o = Constant<value_int=0>() "
STEPS = {
    "a step appends an element": looping(APPEND),
    "a step appends two": looping(ON + ROW + "u = SequenceInsert(s, v) t = SequenceInsert(u, v)"),
    "joined along an axis": looping(
        APPEND, end="y = ConcatFromSequence<axis=0>(r)", output="float[?] y"
    ),
    "the last element is read": looping(
        ON + LAST + ROW + "w = Add(p, v) t = SequenceInsert(s, w)", first=FIRST_ROW
    ),
    "each element is read": looping(
        ON + "p = SequenceAt(s, i) " + ROW + "w = Add(p, v) t = SequenceInsert(s, w)",
        first=FIRST_ROW,
    ),
    "an element is replaced": looping(
        ON
        + "p = SequenceAt(s, i) w = Mul(p, p) e = SequenceErase(s, i) t = SequenceInsert(e, w, i)",
        first=SPLIT,
    ),
    "a queue": looping(
        ON + AT_ZERO + "p = SequenceAt(s, o) e = SequenceErase(s, o) t = SequenceInsert(e, p)",
        first=SPLIT,
    ),
    "inserted at the front": looping(ON + AT_ZERO + ROW + "t = SequenceInsert(s, v, o)"),
    "a choice whether to append": looping(ON + ROW + IS_POSITIVE + CHOICE, first=FIRST_ROW),
    "the length is a condition": looping(
        ROW + "l = SequenceLength(s) q = Constant<value_int=2>() d = Less(l, q) "
        "t = SequenceInsert(s, v)"
    ),
    "the last element is removed": looping(ON + "t = SequenceErase(s)", first=SPLIT),
    "a list that begins again when it is full": looping(
        ON + ROW + "two = Constant<value_int=2>() l = SequenceLength(s) g = Equal(l, two) "
        "e = If(g) <then_branch = a () => (seq(float) t1) { t1 = SequenceEmpty() },"
        " else_branch = b () => (seq(float) t2) { t2 = Identity(s) }> t = SequenceInsert(e, v)"
    ),
    "a loop within appends to the same list": looping(
        ON + "t = Loop(n, c, s) <body = e (int64 j, bool c2, seq(float) u) => "
        "(bool d2, seq(float) w) { d2 = Identity(c2) v = Gather<axis=0>(x, j) w2 = Mul(v, v) "
        "w = SequenceInsert(u, w2) }>"
    ),
    "a loop within makes an element": looping(
        ON + "e0 = SequenceEmpty() e = Loop(n, c, e0) <body = e (int64 j, bool c2, seq(float) u) "
        "=> (bool d2, seq(float) w) { d2 = Identity(c2) v = Gather<axis=0>(x, j) "
        "g = Cast<to=1>(i) h = Mul(v, g) w = SequenceInsert(u, h) }> "
        "m = ConcatFromSequence<axis=0, new_axis=1>(e) ax = Constant<value_ints=[0]>() "
        "k = ReduceSum<keepdims=0>(m, ax) t = SequenceInsert(s, k)"
    ),
}


@pytest.mark.parametrize("name", STEPS)
def test_a_loop_over_a_sequence_is_a_scan(name):
    model = STEPS[name]
    graph = from_onnx(model)
    nodes = pytensor.graph.traversal.applys_between(graph.inputs, graph.outputs)
    assert any(type(node.op).__name__ == "Scan" for node in nodes)
    in_python = pytensor.function(graph.inputs, graph.outputs, mode=PYTHON)
    in_onnx = pytensor.function(graph.inputs, graph.outputs, mode="ONNX")
    for count in (1, 3):
        expected = by_runtime(model, ROWS, np.int64(count))
        for found in (in_python(ROWS, count), in_onnx(ROWS, count)):
            np.testing.assert_allclose(found[0], expected[0], rtol=1e-6)


@pytest.mark.parametrize("name", ["a step appends an element", "the last element is read"])
def test_a_loop_over_a_sequence_has_a_gradient(name):
    graph = from_onnx(STEPS[name])
    x, n = graph.inputs

    def total(rows):
        (result,) = pytensor.graph.replace.graph_replace(
            graph.outputs, {x: rows.astype("float32"), n: pt.constant(3, dtype="int64")}
        )
        return (result.astype("float64") ** 2).sum()

    rng = np.random.default_rng(0)
    verify_grad(total, [ROWS.astype("float64")], rng=rng, eps=1e-2, abs_tol=5e-2, rel_tol=5e-2)


@pytest.mark.parametrize("name", ["a step appends an element", "a choice whether to append"])
def test_no_step_gives_no_element(name):
    model = STEPS[name]
    (found,) = evaluated(from_onnx(model), ROWS, 0)
    assert found.shape == (0 if "append" in name and "choice" not in name else 1, 3)


def test_a_loop_over_a_sequence_is_exported_again():
    model = STEPS["a step appends an element"]
    graph = from_onnx(model)
    program = export_onnx(graph.inputs, graph.outputs)
    (found,) = by_runtime(program.proto, ROWS, np.int64(2))
    np.testing.assert_allclose(found, ROWS[:2] ** 2, rtol=1e-6)


def test_a_condition_of_data_ends_a_loop_without_a_trip_count():
    step = ROW + IS_POSITIVE + "d = Identity(g) t = SequenceInsert(s, v)"
    model = looping(step, steps='""')
    rows = abs(ROWS)
    rows[2] *= -1
    graph = from_onnx(model)
    found = pytensor.function(graph.inputs, graph.outputs, mode="ONNX", on_unused_input="ignore")
    np.testing.assert_array_equal(found(rows, 0)[0], rows[:3])
    np.testing.assert_array_equal(by_runtime(model, rows, np.int64(0))[0], rows[:3])


@pytest.mark.parametrize(
    ("compare", "start", "change", "end"),
    [
        ("Less", 0, 1, 3),
        ("LessOrEqual", 0, 2, 5),
        ("Greater", 9, -2, 4),
        ("GreaterOrEqual", 9, -5, 4),
        ("Less", 5, 1, 3),
    ],
)
def test_a_condition_that_compares_a_counter_is_a_number_of_steps(compare, start, change, end):
    model = parsed(
        "(float[3] x, int64 n) => (float[?, 3] y, int64 l) { "
        f"i0 = Constant<value_int={start}>() k = Constant<value_int={change}>() "
        "s0 = SequenceEmpty()"
        ' t = Constant<value = bool {1}>() l, r = Loop("", t, i0, s0) '
        "<body = b (int64 i, bool c, int64 a, seq(float) s) => (bool d, int64 b, seq(float) u) "
        f"{{ b = Add(a, k) d = {compare}(b, n) f = Cast<to=1>(a) v = Mul(x, f) "
        "u = SequenceInsert(s, v) }> y = ConcatFromSequence<axis=0, new_axis=1>(r) }"
    )
    graph = from_onnx(model)
    arguments = np.ones(3, "float32"), np.int64(end)
    for found, expected in zip(
        evaluated(graph, *arguments), by_runtime(model, *arguments), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


def test_a_list_of_as_many_arrays_is_kept_as_arrays():
    model = parsed(
        "(float[k, 3] x, int64 n) => (float[?, ?] a, float b) { "
        "s0 = SequenceConstruct(x, x) o = Constant<value_int=0>() m = Constant<value_int=1>() "
        'r = Loop(n, "", s0) <body = e (int64 i, bool c, seq(float) s) => (bool d, seq(float) t) '
        "{ d = Identity(c) p = SequenceAt(s, o) q = SequenceAt(s, m) v = Add(p, q) "
        "t = SequenceConstruct(v, p) }> a = SequenceAt(r, o) z = SequenceAt(r, m) "
        "b = ReduceSum<keepdims=0>(z) }"
    )
    arguments = ROWS, np.int64(4)
    graph = from_onnx(model)
    for found, expected in zip(
        evaluated(graph, *arguments), by_runtime(model, *arguments), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_elements_whose_sizes_are_those_of_the_step_are_refused():
    step = (
        ON + "e = Add(i, one) l = Reshape(e, ones) z = Constant<value_ints=[0]>() "
        "v = Slice(x, z, l) t = SequenceInsert(s, v)"
    )
    first = "s0 = SequenceEmpty() one = Constant<value_int=1>() ones = Constant<value_ints=[1]>()"
    model = looping(step, first=first, end="y = ConcatFromSequence<axis=0>(r)")
    with pytest.raises(UnsupportedOpError, match=r"(?s)other sizes in each step.*'n': value"):
        from_onnx(model)
    (found,) = evaluated(from_onnx(model, inputs={"n": 3}), ROWS)
    np.testing.assert_array_equal(found, by_runtime(model, ROWS, np.int64(3))[0])


def test_elements_of_other_sizes_are_an_error_of_the_run():
    step = ON + "l = Gather<axis=0>(m, i) z = Constant<value_ints=[0]>() v = Slice(x, z, l) "
    model = looping(step + "t = SequenceInsert(s, v)", inputs=", int64[k, 1] m")
    graph = from_onnx(model)
    found = evaluated(graph, ROWS, 2, [[2], [2]])[0]
    np.testing.assert_array_equal(found, [ROWS[:2]] * 2)
    # An array of one row would be broadcast to two.
    with pytest.raises(ValueError, match="must have one shape"):
        evaluated(graph, ROWS, 2, [[2], [1]])


def test_steps_that_read_a_growing_list_without_a_bound_are_refused():
    step = LAST + "v = Add(p, p) a = ReduceSum<keepdims=0>(v) q = Constant<value_float=9.0>() "
    step += "d = Less(a, q) t = SequenceInsert(s, v)"
    with pytest.raises(UnsupportedOpError, match="give the loop a trip count"):
        from_onnx(looping(step, first=FIRST_ROW, steps='""'))
