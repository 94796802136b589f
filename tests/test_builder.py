"""The builder emits typed nodes, shares constants and defines functions once."""

import time

import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytensor_onnx.builder import FUNCTION_DOMAIN, Builder
from pytensor_onnx.dims import dims_of
from pytensor_onnx.scope import ModelScope, Names, name_values

DOUBLE, FLOAT, INT64 = ir.DataType.DOUBLE, ir.DataType.FLOAT, ir.DataType.INT64


@pytest.fixture
def scope():
    return ModelScope(21)


@pytest.fixture
def onnx(scope):
    return Builder(scope)


def value(name="x", dtype=DOUBLE, shape=("n", 3)):
    return ir.val(name, dtype=dtype, shape=shape)


def run(onnx, inputs, outputs, **feeds):
    """Close the builder as a model and run it."""
    outputs = onnx.own_results(outputs)
    nodes = onnx.nodes
    for x in inputs:
        onnx.scope.names.unique(x.name)
    name_values(nodes, onnx.scope.names)
    graph = ir.Graph(
        inputs,
        outputs,
        nodes=nodes,
        initializers=list(onnx.scope.initializers.values()),
        opset_imports={"": onnx.scope.opset_version, FUNCTION_DOMAIN: 1},
        name="g",
    )
    functions = [local.function for local in onnx.scope.functions.values()]
    proto = ir.to_proto(ir.Model(graph, ir_version=10, functions=functions))
    return onnxruntime.InferenceSession(proto.SerializeToString()).run(None, feeds)


# Types and constants


def test_values_know_dtype_and_shape(onnx):
    x = value()
    y = onnx.MatMul(x, np.ones((3, 2)))
    assert (y.dtype, dims_of(y)) == (DOUBLE, ("n", 2))
    best = onnx.ArgMax(y, axis=1, keepdims=0)
    assert (best.dtype, dims_of(best)) == (INT64, ("n",))


def test_several_outputs_are_a_list_of_typed_values(onnx):
    values, positions = onnx.TopK(value(), onnx.ints([2]), outputs=2)
    assert (values.dtype, positions.dtype) == (DOUBLE, INT64)
    parts = onnx.Split(value(), onnx.ints([1, 2]), axis=1, outputs=2)
    assert [part.dtype for part in parts] == [DOUBLE, DOUBLE]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint64"])
def test_python_numbers_take_the_dtype_of_the_operand_they_meet(onnx, dtype):
    x = value(dtype=ir.DataType.from_numpy(np.dtype(dtype)))
    for y in (onnx.Add(x, 1), onnx.Add(1, x)):
        constant = next(v for v in y.producer().inputs if v is not x)
        assert constant.const_value.numpy().dtype == dtype
        assert constant.const_value.numpy().shape == ()


def test_numpy_values_keep_their_dtype(onnx):
    y = onnx.Gather(value(), np.array([0, 2]), axis=1)
    assert y.producer().inputs[1].dtype == INT64
    x = value(dtype=FLOAT)
    mixed = onnx.Add(x, np.float64(1))
    with pytest.raises(Exception, match=r"(?i)type"):
        run(onnx, [x], [mixed], x=np.ones((1, 3), "float32"))


def test_plain_indices_and_axes_become_int64(onnx):
    y = onnx.Slice(value(), [0], [2], [1])
    assert [v.dtype for v in y.producer().inputs[1:]] == [INT64] * 3


@pytest.mark.parametrize(
    ("dtype", "number", "error"),
    [(INT64, 0.5, TypeError), (INT64, 2.0, TypeError), (ir.DataType.INT8, 300, OverflowError)],
)
def test_numbers_that_the_dtype_cannot_hold_are_refused(onnx, dtype, number, error):
    with pytest.raises(error):
        onnx.Mul(value(dtype=dtype), number)


def test_a_number_among_numbers_only_has_no_dtype(onnx):
    with pytest.raises(TypeError, match=r"Add: no operand tells the dtype of the constant 1"):
        onnx.Add(1, 2)


def test_too_many_operands_are_refused(onnx):
    with pytest.raises(TypeError, match="at most 1"):
        onnx.Exp(value(), value())


def test_unknown_operators_are_refused(onnx):
    with pytest.raises(Exception, match="NoSuchOperator"):
        onnx.NoSuchOperator(value())
    with pytest.raises(AttributeError):
        _ = onnx.no_such_method


def test_equal_constants_are_stored_once(onnx):
    first = onnx.constant(np.array([1.0, 2.0]))
    assert onnx.constant(np.array([1.0, 2.0])) is first
    assert onnx.subgraph().constant(np.array([1.0, 2.0])) is first
    others = [[[1.0, 2.0]], [1, 2], [1.0, 3.0], np.array([1.0, 2.0], "float32")]
    assert all(onnx.constant(np.array(other)) is not first for other in others)


def test_constants_are_told_apart_by_their_bits(onnx):
    assert onnx.constant(0.0) is not onnx.constant(-0.0)
    assert onnx.constant(np.nan) is onnx.constant(np.nan)
    large = np.zeros(1000)
    other = large.copy()
    other[999] = -0.0
    assert onnx.constant(large) is not onnx.constant(other)
    assert onnx.constant(large) is onnx.constant(large.copy())


@pytest.mark.parametrize(
    "array", [np.arange(6.0).reshape(2, 3).T, np.arange(6.0)[::2], np.zeros((0, 3)), np.array(3)]
)
def test_constants_of_any_layout_keep_shape_and_values(onnx, array):
    stored = onnx.constant(array).const_value.numpy()
    np.testing.assert_array_equal(stored, array, strict=True)


def test_constants_have_readable_names(onnx):
    names = [onnx.constant(x).name for x in (2.5, -3, np.ones(2), True)]
    assert names == ["c_2.5", "c_minus_3", "c", "c_True"]
    assert onnx.constant(np.array([7.0]), name="weight").name == "weight"


def test_casts_that_change_nothing_leave_no_node(onnx):
    x = value()
    assert onnx.cast(x, "float64") is x
    assert onnx.cast(onnx.constant(1.5), "int64").const_value.numpy() == 1
    assert list(onnx.nodes) == []


def test_static_shapes_are_constants(onnx):
    x = value(shape=(2, 3))
    assert list(onnx.shape(x).const_value.numpy()) == [2, 3]
    assert onnx.size(x, -1).const_value.numpy() == 3
    assert list(onnx.nodes) == []


# Names


def test_names_are_unique_whatever_was_taken():
    names = Names()
    given_names = [names.unique(n) for n in ("a", "a_1", "a", "a", "", "?", "a b", "a.b/c:d-e")]
    assert given_names == ["a", "a_1", "a_2", "a_3", "value", "value_1", "a_b", "a.b/c:d-e"]


@given(st.lists(st.text(max_size=4), max_size=30))
def test_no_name_is_given_twice(wanted):
    names = Names()
    given_names = [names.unique(name) for name in wanted]
    assert len(set(given_names)) == len(given_names)


def test_many_equal_names_take_linear_time():
    names = Names()
    start = time.perf_counter()
    for _ in range(100_000):
        names.unique("x")
    assert time.perf_counter() - start < 5  # 0.2 s; quadratic would be minutes


# Equal dimensions


@given(
    st.lists(st.tuples(st.sampled_from("abcdefg"), st.sampled_from([*"abcdefg", 3]))),
    st.sets(st.sampled_from("abcdefg"), max_size=2),
)
def test_equal_dimensions_are_those_of_the_closure_of_all_equations(equations, named_by_user):
    scope = ModelScope(21)
    for name in named_by_user:
        scope.name_dim(name)
    classes = [{dim} for dim in [*"abcdefg", 3]]
    for first, second in equations:
        scope.equate_dims(first, second)
        joined = [c for c in classes if first in c or second in c]
        classes = [c for c in classes if c not in joined] + [set().union(*joined)]
    for members in classes:
        roots = {scope.canonical_dim(dim) for dim in members}
        assert len(roots) == 1
        (root,) = roots
        assert root in members
        if 3 in members:
            assert root == 3
        elif members & named_by_user:
            assert root in named_by_user


def test_long_chains_of_equal_dimensions_are_followed_in_linear_time():
    scope = ModelScope(21)
    n = 20_000
    start = time.perf_counter()
    for i in reversed(range(n)):
        scope.equate_dims(f"d{i}", f"d{i + 1}")
    assert {scope.canonical_dim(f"d{i}") for i in range(n)} == {"d0"}
    assert time.perf_counter() - start < 5


# Subgraphs


def test_branches_see_outer_values_and_share_constants(onnx):
    x = value()
    doubled = onnx.Mul(x, 2.0)
    yes, no = onnx.subgraph(), onnx.subgraph()
    (y,) = onnx.if_else(
        onnx.Greater(onnx.ReduceSum(x, keepdims=0), 0.0),
        yes.graph([], [yes.Add(doubled, 2.0)]),
        no.graph([], [no.Identity(x)]),
    )
    assert (y.dtype, dims_of(y)) == (DOUBLE, ("n", 3))
    a = np.ones((2, 3))
    np.testing.assert_array_equal(run(onnx, [x], [y], x=a)[0], 2 * a + 2)
    numbers = [v.const_value.numpy() for v in onnx.scope.initializers.values()]
    assert sum(n.shape == () and n == 2 for n in numbers) == 1


def test_branches_of_different_shapes_agree_on_what_they_share(onnx):
    x, condition = value(), value("c", ir.DataType.BOOL, ())
    yes, no = onnx.subgraph(), onnx.subgraph()
    (y,) = onnx.if_else(
        condition,
        yes.graph([], [yes.Identity(x)]),
        no.graph([], [no.Concat(x, x, axis=0)]),
    )
    assert dims_of(y)[1] == 3
    assert dims_of(y)[0] != "n"


def test_a_loop_carries_state_and_stacks_the_rest(onnx):
    x = value(shape=("n",))
    body = onnx.subgraph()
    step = value("step", INT64, ())
    going = value("going", ir.DataType.BOOL, ())
    state = value("state", shape=("n",))
    following = body.Add(state, x)
    graph = body.graph([step, going, state], [going, following, following])
    last, every = onnx.loop(onnx.constant(np.int64(3)), None, [x], graph)
    a = np.array([1.0, 2.0])
    found = run(onnx, [x], [last, every], x=a)
    np.testing.assert_array_equal(found[0], 4 * a)
    np.testing.assert_array_equal(found[1], [2 * a, 3 * a, 4 * a])


def test_results_of_a_graph_are_distinct_values_of_its_own(onnx):
    x = value()
    y = onnx.Exp(x)
    results = onnx.own_results([x, y, y])
    assert results[1] is y
    assert [r.producer().op_type for r in results] == ["Identity", "Exp", "Identity"]
    assert len(set(map(id, results))) == 3


def test_names_in_subgraphs_are_unique_in_the_model(onnx):
    x = value()
    graphs = []
    for _ in range(2):
        inner = onnx.subgraph()
        graphs.append(inner.graph([value("x")], [inner.Exp(inner.Neg(x))]))
    names = [v.name for graph in graphs for v in graph.inputs]
    names += [v.name for graph in graphs for node in graph for v in node.outputs]
    assert len(set(names)) == len(names)


# Functions


def square_plus_half(onnx, x):
    return onnx.Add(onnx.Mul(x, x), 0.5)


def test_a_function_is_defined_once_for_each_dtype(onnx, scope):
    x, y = value("x"), value("y", FLOAT)
    for _ in range(3):
        onnx.call("Square", square_plus_half, x)
    result = onnx.call("Square", square_plus_half, y)
    assert result.dtype == FLOAT
    functions = [local.function for local in scope.functions.values()]
    assert [f.name for f in functions] == ["Square_float64", "Square_float32"]
    assert {f.domain for f in functions} == {"pytensor"}
    assert [node.op_type for node in onnx.nodes] == ["Square_float64"] * 3 + ["Square_float32"]


def test_a_function_serves_every_rank(onnx):
    x, y = value("x", shape=()), value("y", shape=("n", 2, 2))
    results = [onnx.call("Square", square_plus_half, v) for v in (x, y)]
    found = run(onnx, [x, y], results, x=np.array(3.0), y=np.full((1, 2, 2), 2.0))
    assert found[0] == 9.5
    np.testing.assert_array_equal(found[1], np.full((1, 2, 2), 4.5))


def test_a_function_body_carries_its_own_constants(onnx, scope):
    """An ONNX function cannot refer to the initializers of the model."""

    def body(inner, x):
        yes, no = inner.subgraph(), inner.subgraph()
        return inner.if_else(
            inner.Greater(inner.ReduceSum(x, keepdims=0), 0.5),
            yes.graph([], [yes.Mul(x, 0.5)]),
            no.graph([], [no.Mul(x, 0.25)]),
        )[0]

    x = value()
    result = onnx.call("Damp", body, x)
    (local,) = scope.functions.values()
    constants = [node for node in local.function if node.op_type == "Constant"]
    assert [float(n.attributes["value"].as_tensor().numpy()) for n in constants] == [0.5, 0.25]
    assert scope.initializers == {}
    np.testing.assert_array_equal(run(onnx, [x], [result], x=np.ones((1, 3)))[0], [[0.5] * 3])


def test_constants_in_a_function_tell_shapes(onnx):
    ranks = []

    def body(inner, x):
        column = inner.Reshape(x, inner.ints([-1, 1]))
        ranks.append(dims_of(column))
        return column

    onnx.call("Column", body, value(), shapes=[(None, 3)])
    assert ranks == [(None, 1)]


def test_functions_call_functions(onnx):
    def body(inner, x):
        return inner.Neg(inner.call("Square", square_plus_half, x))

    x = value()
    result = onnx.call("Negative", body, x)
    found = run(onnx, [x], [result, onnx.call("Square", square_plus_half, x)], x=np.ones((1, 3)))
    np.testing.assert_array_equal(found[0], -found[1])
    assert found[0][0, 0] == -1.5


def test_a_function_that_returns_a_list_gives_a_list(onnx):
    x = value()
    results = onnx.call("Both", lambda inner, x: [x, inner.Neg(x), x], x)
    found = run(onnx, [x], results, x=np.ones((1, 3)))
    assert [float(f[0, 0]) for f in found] == [1.0, -1.0, 1.0]


def test_different_functions_of_one_name_get_names_of_their_own(onnx, scope):
    x = value()
    results = [
        onnx.call("f", lambda inner, x, c=c: inner.Mul(x, c), x, variant="", key=("f", c))
        for c in (2.0, 3.0)
    ]
    names = [local.function.name for local in scope.functions.values()]
    assert names == ["f", "f_1"]
    found = run(onnx, [x], results, x=np.ones((1, 3)))
    assert [float(f[0, 0]) for f in found] == [2.0, 3.0]


def test_functions_for_other_shapes_have_definitions_of_their_own(onnx):
    def rows(inner: Builder, x: ir.Value) -> ir.Value:
        return inner.ints([inner.dims(x)[0]])

    x, y = ir.val("x", ir.DataType.DOUBLE, (3, 2)), ir.val("y", ir.DataType.DOUBLE, (5, 2))
    results = [onnx.call("Rows", rows, v, shapes=[dims_of(v)]) for v in (x, y, x)]
    found = run(onnx, [x, y], results, x=np.ones((3, 2)), y=np.ones((5, 2)))
    assert [int(v[0]) for v in found] == [3, 5, 3]
    assert len(onnx.scope.functions) == 2


def test_names_in_a_function_are_its_own(onnx, scope):
    x = value()
    for _ in range(3):
        onnx.Mul(x, 1.5)
    onnx.call("Square", square_plus_half, x)
    name_values(onnx.nodes, scope.names)
    (local,) = scope.functions.values()
    assert [v.name for v in local.function.inputs] == ["x"]
    assert [v.name for n in local.function for v in n.outputs] == ["constant", "mul", "result"]


def test_functions_have_the_parameters_and_the_summary_of_their_source(onnx):
    def scaled(onnx: Builder, amount: ir.Value, rate: ir.Value) -> ir.Value:
        """Scale an amount.

        At a rate.
        """
        return onnx.Mul(amount, rate)

    onnx.call("Scaled", scaled, value(), value())
    (local,) = onnx.scope.functions.values()
    assert [v.name for v in local.function.inputs] == ["amount", "rate"]
    assert local.function.doc_string == "Scale an amount."


def test_provenance_is_put_on_every_node(onnx):
    onnx.provenance = {"pytensor.op": "Square"}
    onnx.call("Square", square_plus_half, onnx.Exp(value()))
    assert all(node.metadata_props["pytensor.op"] == "Square" for node in onnx.nodes)


@pytest.mark.slow
def test_emitting_is_linear():
    def seconds(n):
        onnx = Builder(ModelScope(21))
        x = value()
        start = time.perf_counter()
        for _ in range(n):
            x = onnx.Mul(x, 1.5)
        onnx.own_results([x])
        name_values(onnx.nodes, onnx.scope.names)
        return time.perf_counter() - start

    first, second = (min(seconds(n) for _ in range(3)) for n in (1000, 8000))
    assert second < 3 * 8 * first
