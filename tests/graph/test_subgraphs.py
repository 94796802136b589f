"""Bodies of branches and loops are Python functions."""

import numpy as np
import onnx_ir as ir
import pytest

from pytensor_onnx.operators.dims import dims_of
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
