import numpy as np
import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph

from pytensor_onnx import export_onnx, nn
from tests.conftest import compare_onnx_and_py


def structure(program):
    graph = program.model.graph
    return (
        [node.op_type for node in graph],
        {name: list(value.shape) for name, value in graph.initializers.items()},
    )


@pytest.mark.parametrize("ndim", [2, 3])
def test_constant_vector_stays_a_vector(ndim):
    x = pt.tensor("x", shape=(None,) * ndim)
    shift = pt.constant(np.arange(3.0), name="shift")
    assert structure(export_onnx([x], x * shift)) == (["Mul"], {"shift": [3]})


def test_number_stays_a_number():
    x = pt.matrix("x")
    assert structure(export_onnx([x], x * 2.5)) == (["Mul"], {"c_2.5": []})


def test_bias_given_as_input_needs_no_node():
    x, bias = pt.matrix("x"), pt.vector("bias", shape=(3,))
    assert structure(export_onnx([x, bias], pt.exp(x) + bias)) == (["Exp", "Add"], {})


def test_bias_within_a_function_needs_no_node():
    x, bias = pt.matrix("x"), pt.vector("bias")
    add = OpFromGraph([x, bias], [pt.exp(x) + bias], name="add")
    (function,) = export_onnx([x, bias], add(x, bias)).model.functions.values()
    assert [node.op_type for node in function] == ["Exp", "Add"]


def test_axes_that_shape_the_result_are_kept():
    x, y = pt.vector("x"), pt.vector("y")
    operators, _ = structure(export_onnx([x, y], x[None, :] * y[:, None]))
    assert sorted(operators) == ["Mul", "Unsqueeze"]


def test_expanded_value_that_is_an_output_is_kept():
    x, bias = pt.matrix("x"), pt.vector("bias", shape=(3,))
    program = export_onnx([x, bias], [x + bias, bias[None, :]])
    total, row = program(np.ones((2, 3)), np.arange(3.0))
    np.testing.assert_array_equal(total, np.ones((2, 3)) + np.arange(3.0))
    np.testing.assert_array_equal(row, np.arange(3.0)[None, :])


def test_constant_is_kept_for_another_use_that_needs_its_rank():
    x = pt.matrix("x")
    row = pt.constant(np.arange(3.0)[None, :], name="row")
    program = export_onnx([x], [x * row, pt.concatenate([x, row], axis=0)])
    assert structure(program)[1]["row"] == [1, 3]
    value = np.full((2, 3), 2.0)
    scaled, joined = program(value)
    np.testing.assert_array_equal(scaled, value * np.arange(3.0))
    np.testing.assert_array_equal(joined, np.vstack([value, np.arange(3.0)]))


@pytest.mark.parametrize(
    "expression",
    [
        lambda x: nn.swish(x, 1.7),
        nn.gelu,
        lambda x: nn.gelu(x, approximate="tanh"),
        lambda x: np.float32([1.0]) / x * x,
    ],
)
def test_constants_of_one_element_give_no_axis(expression):
    x = pt.vector("x", dtype="float32")
    value = np.array([0.1, 0.6], "float32")
    compare_onnx_and_py([x], expression(pt.sum(x).flatten()), [value])
