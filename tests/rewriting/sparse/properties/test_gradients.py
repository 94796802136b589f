"""Gradients by sparse matrices agree with their formulas in SciPy on drawn matrices."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import strategies as st
from pytensor import sparse
from pytensor.sparse import basic, math

from tests.rewriting.sparse.properties.drawn import (
    FLOATS,
    Operations,
    arrays,
    assert_scipy_agrees,
    matrices,
    places,
    runs,
    sizes,
    with_entries,
)


@st.composite
def beside_weights(draw, kind, dtype):
    """Draw an m x n matrix, and dense arrays of the shapes (m, n), (n, 3), (m, 3), (n,), (m,)."""
    shape = m, n = draw(sizes()), draw(sizes())
    shapes = (shape, (n, 3), (m, 3), (n,), (m,))
    return [draw(matrices(kind, dtype, shape)), *(draw(arrays(dtype, size)) for size in shapes)]


def at_entries(a, dense):
    return with_entries(a, dense[places(a)])


@pytest.mark.slow
@runs(FLOATS)
def test_gradients_have_the_entries_of_the_matrix(kind, dtype, examples):
    x = sparse.matrix(kind, "x", dtype=dtype)
    d, b, w = (pt.matrix(name, dtype=dtype) for name in "dbw")
    cols, rows = (pt.vector(name, dtype=dtype) for name in ("cols", "rows"))

    def gradient(weights, result, by=x):
        return pytensor.grad((weights * result).sum(), by)

    def of_sum(matrix, by=x):
        return pytensor.grad(sparse.sp_sum(matrix, sparse_grad=True), by)

    operations: Operations = {
        "product": (
            gradient(w, sparse.structured_dot(x, b)),
            lambda a, d, b, w, cols, rows: at_entries(a, w @ b.T),
        ),
        "product by the dense factor": (
            gradient(w, sparse.structured_dot(x, b), b),
            lambda a, d, b, w, cols, rows: np.asarray(a.T @ w),
        ),
        "product with a vector": (
            gradient(rows, sparse.dot(x, cols), cols),
            lambda a, d, b, w, cols, rows: np.asarray(a.T @ rows),
        ),
        "transposed": (
            gradient(rows, sparse.sp_sum(x.T, axis=0, sparse_grad=True)),
            lambda a, d, b, w, cols, rows: with_entries(a, rows[places(a)[0]]),
        ),
        "product with an array": (of_sum(x * d), lambda a, d, *_: at_entries(a, d)),
        "product with columns": (
            of_sum(math.mul_s_v(x, cols)),
            lambda a, d, b, w, cols, rows: with_entries(a, cols[places(a)[1]]),
        ),
    }
    inputs = [x, d, b, w, cols, rows]
    assert_scipy_agrees(inputs, operations, beside_weights(kind, dtype), examples)


def without_duplicates(values):
    values[0].sum_duplicates()
    return values


@runs(FLOATS)
def test_gradients_of_entries_without_duplicates(kind, dtype, examples):
    # PyTensor gives each of several entries at one place the sum of their gradients.
    x = sparse.matrix(kind, "x", dtype=dtype)
    d, b, w = (pt.matrix(name, dtype=dtype) for name in "dbw")
    cols, rows = (pt.vector(name, dtype=dtype) for name in ("cols", "rows"))

    def gradient(matrix, by):
        return pytensor.grad(sparse.sp_sum(matrix, sparse_grad=True), by)

    def non_zero(a):
        a.eliminate_zeros()
        return a

    def weighted(weights, result):
        return pytensor.grad((weights * result).sum(), x)

    square = math.sqr(x)
    sampled = sparse.sampling_dot(w, b, x)
    operations: Operations = {
        "sums of columns": (
            weighted(cols, sparse.sp_sum(square, axis=0, sparse_grad=True)),
            lambda a, d, b, w, cols, rows: with_entries(a, 2 * a.data * cols[places(a)[1]]),
        ),
        "sums of rows": (
            weighted(rows, sparse.sp_sum(square, axis=1, sparse_grad=True)),
            lambda a, d, b, w, cols, rows: with_entries(a, 2 * a.data * rows[places(a)[0]]),
        ),
        "product by the array": (
            gradient(square * d, d),
            lambda a, d, *_: with_entries(a, a.data**2).toarray(),
        ),
        "scaled columns": (
            gradient(basic.col_scale(square, cols), cols),
            lambda a, d, b, w, cols, rows: np.bincount(
                places(a)[1], a.data.astype("float64") ** 2, len(cols)
            ).astype(dtype),
        ),
        "scaled rows": (
            gradient(basic.row_scale(square, rows), rows),
            lambda a, d, b, w, cols, rows: np.bincount(
                places(a)[0], a.data.astype("float64") ** 2, len(rows)
            ).astype(dtype),
        ),
        "entries": (
            weighted(3, sparse.csm_data(square)),
            lambda a, *_: with_entries(a, 6 * a.data),
        ),
        "function": (
            gradient(math.structured_exp(x), x),
            lambda a, *_: with_entries(a, np.exp(a.data)),
        ),
        "sampled product by a factor": (
            gradient(sampled, w),
            lambda a, d, b, *_: np.asarray(non_zero(a) @ b),
        ),
        "sampled product by the other": (
            gradient(sampled, b),
            lambda a, d, b, w, *_: np.asarray(non_zero(a).T @ w),
        ),
    }
    strategy = beside_weights(kind, dtype).map(without_duplicates)
    assert_scipy_agrees([x, d, b, w, cols, rows], operations, strategy, examples)
