"""A walk replaces nodes by the nodes of a builder."""

import numpy as np
import onnx_ir as ir
import pytensor.tensor as pt
import pytest

from pytensor_onnx.graph.names import Names, name_values
from pytensor_onnx.passes.matching import store_constants
from pytensor_onnx.passes.node_walk import NodeWalk
from tests.conftest import called, compare_onnx_and_py
from tests.passes.conftest import bare

X = np.array([[1.0, 2.0], [3.0, 4.0]])


@pytest.fixture
def model():
    def emit(build, x):
        y = build.Exp(x)
        return [y, build.Neg(y)]

    return bare(emit, X)


def replaced(model, results_of, **options):
    """Replace each Exp of a model, and return the operators that are left."""

    def replace(build, node):
        return results_of(build, node.inputs[0])

    NodeWalk(model.model.graph, model.scope, replace, {"Exp"}, **options).run()
    store_constants(model.model.graph, model.scope)
    return model.operators()


def test_new_nodes_stand_where_the_old_one_stood(model):
    operators = replaced(model, lambda build, x: build.Mul(build.Add(x, 1.0), 2.0))
    assert operators == ["Add", "Mul", "Neg"]
    np.testing.assert_array_equal(model.run()[0], 2 * (X + 1))
    np.testing.assert_array_equal(model.run()[1], -2 * (X + 1))


def test_nodes_that_the_results_do_not_need_are_left_out(model):
    def results_of(build, x):
        build.Abs(build.Neg(x))
        return build.Mul(x, 2.0)

    assert replaced(model, results_of) == ["Mul", "Neg"]


def test_an_output_keeps_its_name_and_the_shape_that_was_known(model):
    old = model.model.graph.outputs[0]
    name, shape = old.name, list(old.shape)
    replaced(model, lambda build, x: build.Mul(x, 2.0))
    assert model.model.graph.outputs[0].name == name
    assert list(model.model.graph.outputs[0].shape) == shape


def test_a_value_from_elsewhere_is_copied_for_an_output_only(model):
    assert replaced(model, lambda build, x: x) == ["Identity", "Neg"]
    np.testing.assert_array_equal(model.run()[0], X)
    inner = bare(lambda build, x: build.Neg(build.Exp(x)), X)
    assert replaced(inner, lambda build, x: x) == ["Neg"]
    np.testing.assert_array_equal(inner.run()[0], -X)


def test_a_node_without_a_replacement_stays(model):
    assert replaced(model, lambda build, x: None) == ["Exp", "Neg"]


def test_nodes_that_only_the_replaced_one_used_are_removed():
    def emit(build, x):
        root = build.Sqrt(build.Abs(x))
        return [build.Exp(root), build.Neg(x)]

    model = bare(emit, X)
    (x,) = model.model.graph.inputs
    assert replaced(model, lambda build, _: build.Relu(x)) == ["Relu", "Neg"]


def test_new_nodes_are_visited_on_request():
    def results_of(build, x):
        return build.Exp(build.Abs(x)) if x.producer() is None else build.Relu(x)

    x = bare(lambda build, x: build.Exp(x), X)
    assert replaced(x, results_of) == ["Abs", "Exp"]
    x = bare(lambda build, x: build.Exp(x), X)
    assert replaced(x, results_of, visits_new=True) == ["Abs", "Relu"]


def test_nodes_of_functions_are_replaced():
    model = bare(lambda build, x: build.call("Turned", lambda inner, v: inner.Neg(v), x), X)
    expected = model.run()[0]
    (function,) = model.model.functions.values()

    def thrice(build, node):
        return build.Neg(build.Neg(build.Neg(*node.inputs)))

    assert NodeWalk(function, model.scope, thrice, {"Neg"}).run() == 1
    assert [node.op_type for node in function] == ["Neg"] * 3
    np.testing.assert_array_equal(model.run()[0], expected)


def test_bodies_and_the_nodes_around_them_are_known():
    def emit(build, x):
        condition = build.Greater(build.ReduceSum(x, keepdims=0), 0)
        return build.cond(condition, lambda b: b.Exp(x), lambda b: b.Neg(x))[0]

    found = []

    def replace(build, node):
        found.append([outer.op_type for outer in build.within])
        return build.Abs(node.inputs[0])

    model = bare(emit, X)
    assert NodeWalk(model.model.graph, model.scope, replace, {"Exp", "Neg"}).run() == 2
    assert found == [["If"], ["If"]]
    assert model.operators()[-2:] == ["Abs", "Abs"]


def test_new_names_are_not_those_of_the_model(model):
    replaced(model, lambda build, x: build.Mul(build.Neg(x), 2.0))
    names = [v.name for node in model.model.graph for v in node.outputs]
    assert len(set(names)) == len(names)
    assert all(node.name for node in model.model.graph)


def test_only_values_without_a_name_are_named():
    x = ir.val("x", dtype=ir.DataType.DOUBLE, shape=(2,))
    node = ir.node("Exp", [x])
    other = ir.node("LayerNormalization", [x, x])
    node.outputs[0].name = "mine"
    name_values([node, other], Names())
    assert (node.outputs[0].name, node.name) == ("mine", "mine")
    assert other.outputs[0].name == "layer_normalization"


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64"])
def test_subgraphs_in_functions_have_names_of_their_own(dtype):
    x = pt.tensor("x", dtype=dtype, shape=(None, None))
    product = called(lambda a: pt.prod(a, axis=0), x)
    compare_onnx_and_py(
        [x], [product, product[::-1] + 1], [np.arange(1, 13, dtype=dtype).reshape(4, 3)]
    )
