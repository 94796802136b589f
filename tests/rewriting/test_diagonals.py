"""Diagonals of allocated and of computed arrays are those of NumPy."""

import numpy as np
import pytensor.tensor as pt
import pytest

from tests.conftest import compare_onnx_and_py, op_types


@pytest.mark.parametrize("offset", [0, 1, -1, 4])
def test_the_new_axis_of_a_diagonal_is_the_last(offset):
    x = pt.tensor3("x")
    filled = pt.alloc(2.0, *x.shape)
    diagonals = [
        pt.diagonal(a, offset, *axes)
        for a in (filled, pt.exp(x))
        for axes in ((0, 1), (0, 2), (1, 2))
    ]
    compare_onnx_and_py([x], diagonals, [np.arange(15.0).reshape(5, 3, 1)])


@pytest.mark.parametrize("offset", [0, 1, -1, 5, -5])
def test_a_diagonal_beyond_the_corner_is_empty(offset):
    n, v = pt.lscalar("n"), pt.vector("v")
    matrices = [pt.alloc(2.0, n, n), pt.eye(n), pt.eye(n, n, 1), pt.diag(v, 1), pt.outer(v, v)]
    compare_onnx_and_py([n, v], [pt.diagonal(m, offset) for m in matrices], [2, np.arange(2.0)])


def test_of_a_product_only_the_diagonal_is_computed():
    x, y = pt.matrix("x", shape=(3, 4)), pt.matrix("y", shape=(4, 3))
    program = compare_onnx_and_py(
        [x, y], pt.diagonal(x @ y), [np.arange(12.0).reshape(3, 4), np.ones((4, 3))]
    )
    assert "MatMul" not in op_types(program)
