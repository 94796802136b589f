"""Nodes of a builder take the place of one node."""

import numpy as np
import onnx_ir as ir
import pytensor.tensor as pt
import pytest

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.names import Names, name_values
from pytensor_onnx.passes.node_rules import replace_node
from tests.conftest import called, compare_onnx_and_py
from tests.passes.conftest import bare

X = np.array([[1.0, 2.0], [3.0, 4.0]])


@pytest.fixture
def model():
    def emit(build, x):
        y = build.Exp(x)
        return [y, build.Neg(y)]

    return bare(emit, X)


def replaced(model, results_of):
    node = next(node for node in model.model.graph if node.op_type == "Exp")
    builder = Builder(model.scope)
    results = results_of(builder, node.inputs[0])
    new = replace_node(model.model.graph, node, builder, [results], model.scope.names)
    for value in model.scope.initializers.values():
        model.model.graph.register_initializer(value)
    return new


def test_new_nodes_stand_where_the_old_one_stood(model):
    new = replaced(model, lambda build, x: build.Mul(build.Add(x, 1.0), 2.0))
    assert [node.op_type for node in model.model.graph] == ["Add", "Mul", "Neg"]
    assert [node.op_type for node in new] == ["Add", "Mul"]
    np.testing.assert_array_equal(model.run()[0], 2 * (X + 1))
    np.testing.assert_array_equal(model.run()[1], -2 * (X + 1))


def test_nodes_that_the_results_do_not_need_are_left_out(model):
    def results_of(build, x):
        build.Abs(build.Neg(x))
        return build.Mul(x, 2.0)

    assert [node.op_type for node in replaced(model, results_of)] == ["Mul"]
    assert [node.op_type for node in model.model.graph] == ["Mul", "Neg"]


def test_an_output_keeps_its_name_and_the_shape_that_was_known(model):
    old = model.model.graph.outputs[0]
    name, shape = old.name, list(old.shape)
    replaced(model, lambda build, x: build.Mul(x, 2.0))
    assert model.model.graph.outputs[0].name == name
    assert list(model.model.graph.outputs[0].shape) == shape


def test_a_value_from_elsewhere_is_copied(model):
    new = replaced(model, lambda build, x: x)
    assert [node.op_type for node in new] == ["Identity"]
    np.testing.assert_array_equal(model.run()[0], X)


def test_new_names_are_not_those_of_the_model(model):
    new = replaced(model, lambda build, x: build.Mul(build.Neg(x), 2.0))
    names = [v.name for node in model.model.graph for v in node.outputs]
    assert len(set(names)) == len(names)
    assert all(node.name for node in new)


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
