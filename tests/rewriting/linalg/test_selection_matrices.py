"""Products with selection matrices are indexing, and raise where their sizes differ."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from tests.conftest import compare_onnx_and_py

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
