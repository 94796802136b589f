"""Sums and diagonals of sparse matrices."""

import numpy as np
import pytensor
import pytest
from pytensor import sparse

from tests.rewriting.sparse_matrices.matrices import compare_on, matrix, of_shape_4_3

SHAPES = [(0, 0), (0, 3), (3, 0), (1, 1), (5, 2)]


@pytest.mark.parametrize(
    ("kind", "dtype"), [("csr", "float64"), ("csc", "float32"), ("csc", "int64")]
)
def test_sums_of_all_entries_rows_and_columns(kind, dtype):
    x = sparse.matrix(kind, "x", dtype=dtype)
    results = [sparse.sp_sum(x, axis=axis) for axis in (None, 0, 1)]
    matrices = [*of_shape_4_3(kind, dtype), *(matrix(shape, kind, dtype) for shape in SHAPES)]
    compare_on([x], results, [(a,) for a in matrices])


def test_sums_of_narrow_integers_have_the_dtype_of_their_variable():
    x = sparse.csr_matrix("x", dtype="int8")
    f = pytensor.function([x], sparse.sp_sum(x, axis=0), mode="ONNX")
    found = f(matrix((4, 3), "csr", "int8"))
    np.testing.assert_array_equal(found, matrix((4, 3), "csr", "int8").toarray().sum(axis=0))
    assert found.dtype == "int8"


@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_diagonals(kind):
    x = sparse.matrix(kind, "x")
    squares = [a[[0, 2, 3]] for a in of_shape_4_3(kind)]
    squares += [matrix((n, n), kind) for n in (0, 1, 5)]
    results = [sparse.diag(x), sparse.square_diagonal(sparse.diag(x))]
    compare_on([x], results, [(a,) for a in squares])
    with pytest.raises(ValueError, match="square matrix"):
        pytensor.function([x], sparse.diag(x), mode="ONNX")(matrix((4, 3), kind))
