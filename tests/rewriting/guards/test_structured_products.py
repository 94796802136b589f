import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.tensor.basic import Eye
from pytensor.tensor.math import Dot

from pytensor_onnx import export_onnx
from tests.conftest import compare_onnx_and_py

CASES = {
    "diag(v) @ x": lambda v, x: pt.diag(v) @ x,
    "x @ diag(v)": lambda v, x: x @ pt.diag(v),
    "diag(v) @ x @ diag(v)": lambda v, x: pt.diag(v) @ x @ pt.diag(v),
    "diag(v) @ diag(v)": lambda v, x: pt.diag(v) @ pt.diag(v),
    "(2 * diag(v)) @ x": lambda v, x: (2 * pt.diag(v)) @ x,
    "(eye * v) @ x": lambda v, x: (pt.eye(4) * v) @ x,
    "inv(diag(v)) @ x": lambda v, x: pt.linalg.inv(pt.diag(v)) @ x,
    "x @ eye[:, i]": lambda v, x: x @ pt.eye(4)[:, [2, 0, 2]],
    "eye[:, i].T @ x": lambda v, x: pt.eye(4)[:, [2, 0, 2]].T @ x,
}


@pytest.mark.parametrize("name", CASES)
def test_no_matrix_product_is_left(name):
    v, x = pt.vector("v", shape=(4,)), pt.matrix("x", shape=(4, 4))
    y = CASES[name](v, x)
    f = pytensor.function([v, x], y, mode="ONNX", on_unused_input="ignore")
    assert not any(isinstance(node.op, Dot | Eye) for node in f.maker.fgraph.toposort())
    values = np.array([1.5, -2.0, 0.5, 3.0]), np.arange(16.0).reshape(4, 4)
    compare_onnx_and_py([v, x], y, values)


def test_constants_without_elements_select_nothing():
    x = pt.matrix("x")
    y = pt.matrix("y", shape=(0, 5))
    results = [
        pt.constant(np.zeros((0, 0))) @ y,
        y.T @ pt.constant(np.zeros((0, 0))),
        pt.eye(0) @ x,
    ]
    compare_onnx_and_py([x, y], results, [np.zeros((0, 2)), np.zeros((0, 5))])


@pytest.mark.parametrize("number", [0.0, 2.0])
def test_a_matrix_of_one_number_does_not_fit_others(number):
    w, x = pytensor.shared(np.array([[number]]), shape=(None, None)), pt.matrix("x", shape=(3, 2))
    with pytest.raises(ValueError, match="Incompatible"):
        export_onnx([x], w @ x, verify=False)


def test_a_matrix_of_one_number_is_not_broadcast():
    w, x = pytensor.shared(np.array([[2.0]]), shape=(None, None)), pt.matrix("x")
    program = export_onnx([x], w @ x, verify=False)
    np.testing.assert_array_equal(program(np.ones((1, 2))), [[2, 2]])
    with pytest.raises(AssertionError, match="shape"):
        program(np.ones((3, 2)))
