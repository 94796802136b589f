"""Transposes of symmetric matrices are dropped, and networks are not asked for symmetry."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.assumptions import assume
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.basic import Eye
from pytensor.tensor.elemwise import DimShuffle
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


CASES_SYMMETRIC_TRANSPOSES = {
    "gram matrix": lambda x, s: (x @ x.T).T,
    "function of a gram matrix": lambda x, s: pt.exp(2 * (x @ x.T)).T,
    "inverse of a gram matrix": lambda x, s: pt.linalg.inv(x @ x.T).T,
    "congruence": lambda x, s: (x @ assume(s, symmetric=True) @ x.T).T,
    "matrices of a batch": lambda x, s: (x @ x.T)[None].repeat(2, 0)[1:].mT,
    "reshaped": lambda x, s: pt.specify_shape((x @ x.T).reshape((3, 3)), (3, 3)).T,
    "declared": lambda x, s: assume(s, symmetric=True).T,
    "diagonal": lambda x, s: pt.diag(s[0]).T,
    "operand of a symmetric solve": lambda x, s: pt.linalg.solve(s, x, assume_a="sym").sum() * s.T,
}


def transposes(y, inputs):
    graph = FunctionGraph(inputs, [y], clone=False)
    ONNX.optimizer.rewrite(graph)
    return [
        node
        for node in graph.apply_nodes
        if isinstance(node.op, DimShuffle) and node.op.is_matrix_transpose
    ], graph


@pytest.mark.parametrize("name", CASES_SYMMETRIC_TRANSPOSES)
def test_as_many_transposes_are_dropped_as_by_pytensor(name):
    x, s = pt.matrix("x", shape=(3, 3)), pt.matrix("s", shape=(3, 3))
    y = CASES_SYMMETRIC_TRANSPOSES[name](x, s)
    ours, _ = transposes(y, [x, s])
    x, s = pt.matrix("x", shape=(3, 3)), pt.matrix("s", shape=(3, 3))
    f = pytensor.function(
        [x, s], CASES_SYMMETRIC_TRANSPOSES[name](x, s), mode="NUMBA", on_unused_input="ignore"
    )
    theirs = [
        node
        for node in f.maker.fgraph.apply_nodes
        if isinstance(node.op, DimShuffle) and node.op.is_matrix_transpose
    ]
    assert len(ours) <= len(theirs)


def test_gradients_of_networks_are_not_asked_for_symmetry():
    x = pt.matrix("x")
    weights = [pt.matrix(f"w{i}") for i in range(3)]
    h = x
    for w in weights:
        h = pt.tanh(h @ w)
    graph = FunctionGraph([x, *weights], pt.grad(h.sum(), weights), clone=False)
    ONNX.optimizer.rewrite(graph)
    assert not hasattr(graph, "assumption_feature")


@pytest.mark.parametrize(
    "result",
    [
        lambda x: nn.layer_norm(x, pt.ones(4), pt.zeros(4)),
        lambda x: pt.concatenate([x, pt.exp(x)])[1:],
        lambda x: pt.cumsum(x, axis=0).reshape((-1, 4)),
        lambda x: pt.sqr(x[0])[None] * x.sum(axis=1)[:, None],
    ],
)
def test_results_of_operations_without_a_rule_of_symmetry_are_not_asked_for_it(result):
    x = pt.matrix("x")
    graph = FunctionGraph([x], [result(x).T], clone=False)
    ONNX.optimizer.rewrite(graph)
    assert not hasattr(graph, "assumption_feature")


def test_a_matrix_that_is_not_symmetric_is_transposed():
    x = pt.matrix("x")
    f = pytensor.function([x], pt.exp(x @ x).T, mode="ONNX")
    value = np.arange(4.0).reshape(2, 2)
    np.testing.assert_allclose(f(value), np.exp(value @ value).T, rtol=1e-15)


UNIT, ROTATION = np.eye(3), np.eye(3)[[2, 0, 1]]
X = np.random.default_rng(2).normal(size=(3, 3))


def operators(program):
    return {node.op_type for node in program.model.graph}


@pytest.mark.parametrize("x", [pt.matrix("x", shape=(3, None)), pt.matrix("x")], ids=["3", "n"])
@pytest.mark.parametrize(
    "matrix",
    [UNIT, ROTATION, pt.constant(ROTATION).T, pt.eye(3)],
    ids=["unit", "rotation", "transposed rotation", "eye"],
)
def test_a_product_with_a_permutation_is_the_matrix_in_another_order(matrix, x):
    program = compare_onnx_and_py([x], [matrix @ x, x.T @ matrix], [X])
    assert not operators(program) & {"MatMul", "Gemm", "ScatterND", "ArgMax"}


def test_products_of_a_batch_and_of_a_vector():
    x, v, n = pt.tensor3("x", shape=(None, 3, 3)), pt.vector("v", shape=(3,)), pt.lscalar("n")
    y = pt.matrix("y", dtype="float32")
    program = compare_onnx_and_py(
        [x, v, y, n],
        [ROTATION @ x, x @ ROTATION, ROTATION @ v, v @ ROTATION, pt.eye(n) @ y, y @ pt.eye(n)],
        [np.stack([X, 2 * X]), X[0], X.astype("float32"), 3],
    )
    assert not operators(program) & {"MatMul", "ScatterND", "ScatterElements"}


def test_products_with_other_selections():
    x, selection = pt.matrix("x"), np.eye(5)[:, [0, 3, 1]]
    compare_onnx_and_py([x], [selection @ x, x @ selection.T], [X])
    compare_onnx_and_py([x], [selection.T @ x, x.T @ selection], [np.vstack([X, X[:2]])])


@pytest.mark.parametrize("matrix", [UNIT, ROTATION, ROTATION[:, :2]])
def test_sizes_that_differ_are_errors(matrix):
    x = pt.matrix("x")
    f = pytensor.function([x], x @ matrix, mode="ONNX")
    for n in (1, 2, 4):
        with pytest.raises((ValueError, AssertionError)):
            f(np.ones((n, n)))
