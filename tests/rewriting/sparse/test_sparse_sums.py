"""Sums and diagonals of sparse matrices."""

import numpy as np
import pytensor
import pytest
import scipy.sparse as sp
from pytensor import sparse

from tests.rewriting.sparse.matrices import compare_on, matrix, of_shape_4_3

SHAPES = [(0, 0), (0, 3), (3, 0), (1, 1), (5, 2)]


@pytest.mark.parametrize(
    ("kind", "dtype"), [("csr", "float64"), ("csc", "float32"), ("csc", "int64")]
)
def test_sums_of_all_entries_rows_and_columns(kind, dtype):
    x = sparse.matrix(kind, "x", dtype=dtype)
    results = [sparse.sp_sum(x, axis=axis) for axis in (None, 0, 1)]
    matrices = [*of_shape_4_3(kind, dtype), *(matrix(shape, kind, dtype) for shape in SHAPES)]
    compare_on([x], results, [(a,) for a in matrices])


def test_sums_of_narrow_integers_do_not_overflow():
    x = sparse.csr_matrix("x", dtype="int8")
    a = sp.csr_matrix(np.full((2, 3), 100, "int8"))
    results = [sparse.sp_sum(x, axis=axis) for axis in (None, 0, 1)]
    compare_on([x], [*results, results[2][::-1]], [(a,)])
    # Operations on the sums have their declared dtype, as those on cumulative sums.
    f = pytensor.function([x], results[1] - 100, mode="ONNX")
    np.testing.assert_array_equal(f(a), np.full(3, 100, "int8"), strict=True)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_diagonals(kind):
    x = sparse.matrix(kind, "x")
    squares = [a[[0, 2, 3]] for a in of_shape_4_3(kind)]
    squares += [matrix((n, n), kind) for n in (0, 1, 5)]
    results = [sparse.diag(x), sparse.square_diagonal(sparse.diag(x))]
    compare_on([x], results, [(a,) for a in squares])
    with pytest.raises(ValueError, match="square matrix"):
        pytensor.function([x], sparse.diag(x), mode="ONNX")(matrix((4, 3), kind))
