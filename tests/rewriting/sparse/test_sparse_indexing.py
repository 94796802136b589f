"""Rows, slices and elements of sparse matrices."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor import sparse

from tests.rewriting.sparse.matrices import compare_on, matrix, of_shape_4_3

KINDS = pytest.mark.parametrize("kind", ["csr", "csc"])


@pytest.mark.slow
@KINDS
def test_slices(kind):
    x, i, j = sparse.matrix(kind, "x"), pt.lscalar("i"), pt.iscalar("j")
    results = [x[1:3, :], x[:, :2], x[i:, j:], x[i:j, -2:], x[:, ::-1], x[::-2, i:]]
    matrices = [*of_shape_4_3(kind), matrix((0, 2), kind), matrix((2, 0), kind)]
    samples = [(a, np.int64(k), np.int32(n)) for a in matrices for k, n in ((1, 2), (-2, -1))]
    compare_on([x, i, j], results, samples)


@KINDS
@pytest.mark.filterwarnings("ignore:Changing the sparsity")
def test_rows_of_a_list_and_their_gradient(kind):
    x, given, rows = sparse.matrix(kind, "x"), sparse.matrix(kind, "given"), pt.lvector("rows")
    results = [sparse.get_item_list(x, rows), sparse.basic.get_item_list_grad(x, rows, given)]
    lists = [np.array(wanted, "int64") for wanted in ([2, 0, 0], [-1, 3], [])]
    samples = [(a, a[wanted], wanted) for a in of_shape_4_3(kind) for wanted in lists]
    compare_on([x, given, rows], results, samples)


@pytest.mark.slow
@KINDS
def test_elements_at_places(kind):
    x, i, j = sparse.matrix(kind, "x"), pt.lscalar("i"), pt.lscalar("j")
    rows, cols = pt.lvector("rows"), pt.lvector("cols")
    results = [x[2, 1], sparse.get_item_scalar(x, (i, j)), sparse.get_item_2lists(x, rows, cols)]
    places = [([0, 3, 0, 2], [2, 0, 2, 1]), ([-1, -4], [-3, 0]), ([1], [1])]
    samples = [
        (a, k, n, np.array(r, "int64"), np.array(c, "int64"))
        for a in of_shape_4_3(kind)
        for (k, n), (r, c) in zip([(0, 2), (-1, -3), (1, 1)], places, strict=True)
    ]
    compare_on([x, i, j, rows, cols], results, samples)
    # SciPy returns a matrix for empty lists.
    f = pytensor.function([x, rows, cols], results[2], mode="ONNX")
    assert f(matrix((4, 3), kind), [], []).shape == (0,)


@pytest.mark.slow
@KINDS
def test_gradients_of_elements(kind):
    x, rows, cols = sparse.matrix(kind, "x"), pt.lvector("rows"), pt.lvector("cols")
    loss = (sparse.get_item_2lists(x, rows, cols) ** 2).sum()
    samples = [(a, [0, 3, 0], [2, 0, 2]) for a in of_shape_4_3(kind)]
    compare_on([x, rows, cols], [pytensor.grad(loss, x)], samples)


@pytest.mark.slow
@KINDS
def test_indices_out_of_range_are_errors(kind):
    x, i, rows = sparse.matrix(kind, "x"), pt.lscalar("i"), pt.lvector("rows")
    a = matrix((4, 3), kind)
    for given, result, wrong in (
        (i, sparse.get_item_scalar(x, (i, i)), 3),
        (rows, sparse.get_item_list(x, rows), [0, 4]),
        (rows, sparse.get_item_list(x, rows), [-5]),
        (rows, sparse.get_item_2lists(x, rows, rows), [0, 3]),
    ):
        f = pytensor.function([x, given], result, mode="ONNX")
        with pytest.raises(IndexError, match="out of range"):
            f(a, wrong)
