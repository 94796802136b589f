"""Operations on a sparse matrix and dense arrays agree with SciPy on drawn values."""

import numpy as np
import pytensor.tensor as pt
import pytest
from hypothesis import strategies as st
from pytensor import sparse
from pytensor.sparse import basic, math

from tests.rewriting.sparse.properties.drawn import (
    COMPLEX,
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

COMPARISONS = {
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less_than": np.less,
    "less_equal": np.less_equal,
    "greater_than": np.greater,
    "greater_equal": np.greater_equal,
}


@st.composite
def beside_dense(draw, kind, dtype):
    """Draw a matrix, a dense one of its shape, a number for each column and row, and a number."""
    shape = m, n = draw(sizes()), draw(sizes())
    dense = [draw(arrays(dtype, size)) for size in (shape, (n,), (m,), ())]
    return [draw(matrices(kind, dtype, shape)), *dense]


@pytest.mark.few(1)
@runs([*FLOATS, "int8", COMPLEX])
def test_sums_products_and_comparisons(kind, dtype, examples):
    x, d = sparse.matrix(kind, "x", dtype=dtype), pt.matrix("d", dtype=dtype)
    cols, rows = pt.vector("cols", dtype=dtype), pt.vector("rows", dtype=dtype)
    number = pt.scalar("number", dtype=dtype)

    def scaled(a, factors):
        return with_entries(a, a.data * factors)

    def scaled_columns(a, d, cols, rows, number):
        return scaled(a, cols[places(a)[1]])

    operations: Operations = {
        "sum": (x + d, lambda a, d, *_: np.asarray(a + d)),
        "sum from the right": (d + x, lambda a, d, *_: np.asarray(a + d)),
        "difference": (d - x, lambda a, d, *_: np.asarray(d - a)),
        "product": (x * d, lambda a, d, *_: scaled(a, d[places(a)])),
        "product with a number": (number * x, lambda a, *others: scaled(a, others[-1])),
        "product with columns": (math.mul_s_v(x, cols), scaled_columns),
        "scaled columns": (basic.col_scale(x, cols), scaled_columns),
        "scaled rows": (
            basic.row_scale(x, rows),
            lambda a, d, cols, rows, number: scaled(a, rows[places(a)[0]]),
        ),
        "sum with columns": (
            math.structured_add_s_v(x, cols),
            lambda a, d, cols, *_: type(a)(
                np.where(a.toarray() != 0, a.toarray() + cols, np.zeros((), dtype))
            ),
        ),
        "sum of entries": (
            sparse.add_s_s_data(x, sparse.structured_add(x, number)),
            lambda a, *others: with_entries(a, a.data + (a.data + others[-1])),
        ),
        "rows of dense": (sparse.csr_from_dense(d), lambda a, d, *_: type(a)(d).tocsr()),
        "columns of dense": (sparse.csc_from_dense(d), lambda a, d, *_: type(a)(d).tocsc()),
    }
    for name, compare in COMPARISONS.items():
        operations[name] = (
            getattr(math, f"{name}_s_d")(x, d),
            lambda a, d, *_, compare=compare: compare(a.toarray(), d).astype("uint8"),
        )
    inputs = [x, d, cols, rows, number]
    assert_scipy_agrees(inputs, operations, beside_dense(kind, dtype), examples)


@st.composite
def factors(draw, kind, dtype):
    """Draw m x k and k x n matrices, sparse and dense, and others of the sizes of products."""
    m, k, n = (draw(sizes(3)) for _ in range(3))
    x, y = (draw(matrices(kind, dtype, shape)) for shape in ((m, k), (k, n)))
    shapes = [(m, k), (k, n), (k,), (m,), (m, n), (m, n)]
    dense = [draw(arrays(dtype, shape)) for shape in shapes[:-1]]
    return [x, y, *dense, draw(matrices(kind, dtype, (m, n))), draw(arrays(dtype, ()))]


@pytest.mark.few(1)
@runs([*FLOATS, "int64", COMPLEX])
def test_products(kind, dtype, examples):
    x, y, p = (sparse.matrix(kind, name, dtype=dtype) for name in "xyp")
    a, b, z = (pt.matrix(name, dtype=dtype) for name in "abz")
    v, w = (pt.vector(name, dtype=dtype) for name in "vw")
    number = pt.scalar("number", dtype=dtype)

    def product(x, y):
        return np.asarray(x @ y)

    operations: Operations = {
        "sparse and vector": (sparse.dot(x, v), lambda x, y, a, b, v, *_: product(x, v)),
        "vector and sparse": (sparse.dot(w, x), lambda x, y, a, b, v, w, *_: product(x.T, w)),
        "sparse and dense": (sparse.dot(x, b), lambda x, y, a, b, *_: product(x, b)),
        "structured": (sparse.structured_dot(x, b), lambda x, y, a, b, *_: product(x, b)),
        "dense and sparse": (sparse.dot(a, y), lambda x, y, a, *_: product(y.T, a.T).T),
        "structured of dense": (
            sparse.structured_dot(a, y),
            lambda x, y, a, *_: product(y.T, a.T).T,
        ),
        "dense of two": (sparse.dot(x, y), lambda x, y, *_: (x @ y).toarray()),
        "of two": (sparse.true_dot(x, y), lambda x, y, *_: (x @ y).asformat(kind)),
        "structured of two": (
            sparse.structured_dot(x, y),
            lambda x, y, *_: (x @ y).asformat(kind),
        ),
        "scaled and added": (
            math.usmm(number, x, b, z),
            lambda x, y, a, b, v, w, z, p, number: number * product(x, b) + z,
        ),
        "at the entries of a pattern": (
            sparse.sampling_dot(a, b.T, p),
            lambda x, y, a, b, v, w, z, p, number: with_entries(p, p.data * (a @ b)[places(p)]),
        ),
    }
    inputs = [x, y, a, b, v, w, z, p, number]
    assert_scipy_agrees(inputs, operations, factors(kind, dtype), examples)
