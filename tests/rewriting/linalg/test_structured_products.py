import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.assumptions import assume
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.basic import Eye
from pytensor.tensor.math import Dot

from pytensor_onnx import export_onnx, nn
from pytensor_onnx.errors import InputError
from pytensor_onnx.running.linker import ONNX
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
    "x @ constant": lambda v, x: x @ np.diag([2.0, 0.5, 0.0, 3.0]),
    "x @ permutation.T": lambda v, x: x @ np.eye(4)[[1, 0, 3, 2]].T,
    "zeros.set(v) @ x": lambda v, x: pt.zeros((4, 4))[np.arange(4), np.arange(4)].set(v) @ x,
}


@pytest.mark.parametrize("name", CASES)
def test_no_matrix_product_is_left(name):
    v, x = pt.vector("v", shape=(4,)), pt.matrix("x", shape=(4, 4))
    y = CASES[name](v, x)
    f = pytensor.function([v, x], y, mode="ONNX", on_unused_input="ignore")
    assert not any(isinstance(node.op, Dot | Eye) for node in f.maker.fgraph.toposort())
    values = np.array([1.5, -2.0, 0.5, 3.0]), np.arange(16.0).reshape(4, 4)
    compare_onnx_and_py([v, x], y, values)


def rewritten(inputs, y):
    graph = FunctionGraph(inputs, [y], clone=False)
    ONNX.optimizer.rewrite(graph)
    return graph


def test_declared_structure_is_used():
    d, x = pt.matrices("d", "x")
    graph = rewritten([d, x], assume(d, diagonal=True) @ x)
    assert not any(isinstance(node.op, Dot) for node in graph.apply_nodes)


def test_networks_without_structured_matrices_are_not_asked_for_structure():
    x, w = pt.matrices("x", "w")
    y = pt.maximum(x @ w + 1.5, 0) @ np.array([[1.0, 2.0], [3.0, 4.0]]) + pt.zeros((x.shape[0], 2))
    y = (y / 2) ** 2
    assert not hasattr(rewritten([x, w], y), "assumption_feature")
    assert hasattr(rewritten([x, w], pt.diag(x[0]) @ y), "assumption_feature")


def test_filters_of_convolutions_are_not_searched_for_structure():
    images = pt.tensor("images", shape=(None, 3, 8, 8))
    filters = pt.constant(np.ones((4, 3, 1, 1)), name="filters")
    features = nn.conv2d(images, filters).mean(axis=(2, 3))
    graph = rewritten([images], features @ np.arange(8.0).reshape(4, 2))
    assert not hasattr(graph, "assumption_feature")
    assert not hasattr(filters.tag, "is_selection")


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
    with pytest.raises(InputError, match=r"was given float64\[3, 2\]"):
        program(np.ones((3, 2)))
