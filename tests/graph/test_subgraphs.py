"""Bodies of branches and loops are Python functions."""

import numpy as np
import onnx_ir as ir
import pytest

from pytensor_onnx.graph.builder import Builder, Described
from pytensor_onnx.graph.dims import dims_of
from pytensor_onnx.graph.names import name_values
from tests.graph.conftest import run, value

DOUBLE, FLOAT, INT64 = ir.DataType.DOUBLE, ir.DataType.FLOAT, ir.DataType.INT64


def test_branches_see_outer_values_and_share_constants(build):
    x = value()
    doubled = build.Mul(x, 2.0)
    is_positive = build.Greater(build.ReduceSum(x, keepdims=0), 0.0)
    (y,) = build.cond(is_positive, lambda then: then.Add(doubled, 2.0), lambda otherwise: x)
    assert (y.dtype, dims_of(y)) == (DOUBLE, ("n", 3))
    a = np.ones((2, 3))
    np.testing.assert_array_equal(run(build, [x], [y], x=a)[0], 2 * a + 2)
    numbers = [v.const_value.numpy() for v in build.scope.initializers.values()]
    assert sum(n.shape == () and n == 2 for n in numbers) == 1


def test_branches_of_different_shapes_share_known_dimensions(build):
    x, condition = value(), value("c", ir.DataType.BOOL, ())
    (y,) = build.cond(condition, lambda then: x, lambda otherwise: otherwise.Concat(x, x, axis=0))
    assert dims_of(y)[1] == 3
    assert dims_of(y)[0] != "n"


def test_a_loop_carries_state_and_stacks_the_rest(build):
    x = value(shape=("n",))

    def step(body, i, total):
        following = body.Add(total, x)
        return [following, following, i]

    last, every, steps = build.loop(build.constant(np.int64(3)), None, [x], step)
    a = np.array([1.0, 2.0])
    found = run(build, [x], [last, every, steps], x=a)
    np.testing.assert_array_equal(found[0], 4 * a)
    np.testing.assert_array_equal(found[1], [2 * a, 3 * a, 4 * a])
    np.testing.assert_array_equal(found[2], [0, 1, 2])


@pytest.mark.parametrize(("start", "limit", "expected"), [(1, None, 128), (1, 3, 8), (200, 9, 200)])
def test_a_condition_ends_a_loop(build, start, limit, expected):
    x = value(dtype=INT64, shape=())

    def step(body, i, number):
        twice = body.Add(number, number)
        return [body.Less(twice, 100), twice]

    count = None if limit is None else build.constant(np.int64(limit))
    last = build.loop(count, build.Less(x, 100), [x], step)
    assert run(build, [x], last, x=np.array(start))[0] == expected


def test_a_scan_carries_state_along_sequences(build):
    x, y = value("x"), value("y", shape=("n",))
    start = build.constant(np.zeros(3))

    def step(body, total, row, factor):
        following = body.Add(total, body.Mul(row, factor))
        return [following, body.ReduceSum(following, keepdims=0)]

    last, sums = build.scan([start], [x, y], step)
    a, b = np.arange(6.0).reshape(2, 3), np.array([2.0, -1.0])
    found = run(build, [x, y], [last, sums], x=a, y=b)
    np.testing.assert_array_equal(found[0], a[0] * 2 - a[1])
    np.testing.assert_array_equal(found[1], [6, -6])


def test_arguments_of_bodies_are_declared_and_named_after_parameters(build):
    seen = []

    def step(body, i, total, *, note=seen.append):
        note((i, total))
        return total

    def row(body, total, element):
        seen.append((total, element))
        return total

    x = value(shape=("n", 3))
    build.loop(build.constant(np.int64(1)), None, [x], step)
    build.scan([build.constant(np.zeros(2, "float32"))], [x], row)
    (i, total), (state, element) = seen
    assert (i.dtype, dims_of(i)) == (INT64, ())
    assert (total.name, total.dtype, dims_of(total)) == ("total", DOUBLE, (None, 3))
    assert (state.name, state.dtype, dims_of(state)) == ("total_1", FLOAT, (2,))
    assert (element.name, element.dtype, dims_of(element)) == ("element", DOUBLE, (3,))


def test_bodies_nest_and_see_the_values_around_them(build):
    x = value(shape=("n",))

    def step(body, i, total):
        is_first = body.Equal(i, 0)
        return body.cond(
            is_first,
            lambda then: then.loop(build.constant(np.int64(2)), None, [total], inner_step),
            lambda otherwise: otherwise.Neg(total),
        )

    def inner_step(body, i, total):
        return body.Add(total, x)

    last = build.loop(build.constant(np.int64(2)), None, [x], step)
    np.testing.assert_array_equal(run(build, [x], last, x=np.ones(2))[0], [-3, -3])


def test_results_of_a_graph_are_distinct_values_of_its_own(build):
    x = value()
    y = build.Exp(x)
    results = build.own_results([x, y, y])
    assert results[1] is y
    assert [r.producer().op_type for r in results] == ["Identity", "Exp", "Identity"]
    assert len(set(map(id, results))) == 3


def test_names_in_subgraphs_are_unique_in_the_model(build):
    x = value()
    three = build.constant(np.int64(3))
    for _ in range(2):
        build.loop(three, None, [x], lambda body, i, x: body.Exp(body.Neg(x)))
    graphs = [node.attributes["body"].as_graph() for node in build.nodes]
    names = [v.name for graph in graphs for v in graph.inputs]
    names += [v.name for graph in graphs for node in graph for v in node.outputs]
    assert len(set(names)) == len(names)


def square_plus_half(build, x):
    return build.Add(build.Mul(x, x), 0.5)


def test_a_function_is_defined_once_for_each_dtype(build, scope):
    x, y = value("x"), value("y", FLOAT)
    for _ in range(3):
        build.call("Square", square_plus_half, x)
    result = build.call("Square", square_plus_half, y)
    assert result.dtype == FLOAT
    functions = [local.function for local in scope.functions.values()]
    assert [f.name for f in functions] == ["Square_float64", "Square_float32"]
    assert {f.domain for f in functions} == {"pytensor"}
    assert [node.op_type for node in build.nodes] == ["Square_float64"] * 3 + ["Square_float32"]


def test_a_standard_function_has_the_wanted_name(build, scope):
    def minus_half(build, x):
        return build.Sub(x, 0.5)

    build.call("Other", square_plus_half, value(), key="first")
    build.call("Other", minus_half, value(), key="second", described=Described(is_standard=True))
    build.call("Square", square_plus_half, value(), described=Described(is_standard=True))
    assert [(f.domain, f.name) for f, *_ in scope.functions.values()] == [
        ("pytensor", "Other_float64"),
        ("pytensor", "Other_float64_1"),
        ("pytensor.standard", "Square_float64"),
    ]


def test_a_function_serves_every_rank(build):
    x, y = value("x", shape=()), value("y", shape=("n", 2, 2))
    results = [build.call("Square", square_plus_half, v) for v in (x, y)]
    found = run(build, [x, y], results, x=np.array(3.0), y=np.full((1, 2, 2), 2.0))
    assert found[0] == 9.5
    np.testing.assert_array_equal(found[1], np.full((1, 2, 2), 4.5))


def test_a_function_body_carries_its_own_constants(build, scope):
    """An ONNX function cannot refer to the initializers of the model."""

    def body(inner, x):
        return inner.cond(
            inner.Greater(inner.ReduceSum(x, keepdims=0), 0.5),
            lambda then: then.Mul(x, 0.5),
            lambda otherwise: otherwise.Mul(x, 0.25),
        )[0]

    x = value()
    result = build.call("Damp", body, x)
    (local,) = scope.functions.values()
    constants = [node for node in local.function if node.op_type == "Constant"]
    assert [float(n.attributes["value"].as_tensor().numpy()) for n in constants] == [0.5, 0.25]
    assert scope.initializers == {}
    np.testing.assert_array_equal(run(build, [x], [result], x=np.ones((1, 3)))[0], [[0.5] * 3])


def test_constants_in_a_function_tell_shapes(build):
    ranks = []

    def body(inner, x):
        column = inner.Reshape(x, inner.ints([-1, 1]))
        ranks.append(dims_of(column))
        return column

    build.call("Column", body, value(), shapes=[(None, 3)])
    assert ranks == [(None, 1)]


def test_functions_call_functions(build):
    def body(inner, x):
        return inner.Neg(inner.call("Square", square_plus_half, x))

    x = value()
    result = build.call("Negative", body, x)
    found = run(build, [x], [result, build.call("Square", square_plus_half, x)], x=np.ones((1, 3)))
    np.testing.assert_array_equal(found[0], -found[1])
    assert found[0][0, 0] == -1.5


def test_a_function_that_returns_a_list_gives_a_list(build):
    x = value()
    results = build.call("Both", lambda inner, x: [x, inner.Neg(x), x], x)
    found = run(build, [x], results, x=np.ones((1, 3)))
    assert [float(f[0, 0]) for f in found] == [1.0, -1.0, 1.0]


def test_different_functions_of_one_name_get_names_of_their_own(build, scope):
    x = value()
    results = [
        build.call("f", lambda inner, x, c=c: inner.Mul(x, c), x, variant="", key=("f", c))
        for c in (2.0, 3.0)
    ]
    names = [local.function.name for local in scope.functions.values()]
    assert names == ["f", "f_1"]
    found = run(build, [x], results, x=np.ones((1, 3)))
    assert [float(f[0, 0]) for f in found] == [2.0, 3.0]


def test_functions_for_other_shapes_have_definitions_of_their_own(build):
    def rows(inner: Builder, x: ir.Value) -> ir.Value:
        return inner.ints([inner.dims(x)[0]])

    x, y = ir.val("x", ir.DataType.DOUBLE, (3, 2)), ir.val("y", ir.DataType.DOUBLE, (5, 2))
    results = [build.call("Rows", rows, v, shapes=[dims_of(v)]) for v in (x, y, x)]
    found = run(build, [x, y], results, x=np.ones((3, 2)), y=np.ones((5, 2)))
    assert [int(v[0]) for v in found] == [3, 5, 3]
    assert len(build.scope.functions) == 2


def test_names_in_a_function_are_its_own(build, scope):
    x = value()
    for _ in range(3):
        build.Mul(x, 1.5)
    build.call("Square", square_plus_half, x)
    name_values(build.nodes, scope.names)
    (local,) = scope.functions.values()
    assert [v.name for v in local.function.inputs] == ["x"]
    assert [v.name for n in local.function for v in n.outputs] == ["constant", "mul", "result"]


def test_functions_have_the_parameters_and_the_summary_of_their_source(build):
    def scaled(build: Builder, amount: ir.Value, rate: ir.Value) -> ir.Value:
        """Scale an amount.

        At a rate.
        """
        return build.Mul(amount, rate)

    build.call("Scaled", scaled, value(), value())
    (local,) = build.scope.functions.values()
    assert [v.name for v in local.function.inputs] == ["amount", "rate"]
    assert local.function.doc_string == "Scale an amount."
