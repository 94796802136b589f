"""Selections from sparse matrices agree with SciPy on drawn matrices and indices."""

import numpy as np
import pytensor.tensor as pt
import pytest
import scipy.sparse as sp
from hypothesis import strategies as st
from pytensor import sparse
from pytensor.sparse import basic

from tests.rewriting.sparse.properties.drawn import (
    COMPLEX,
    FLOATS,
    Operations,
    arrays,
    assert_scipy_agrees,
    matrices,
    runs,
    sizes,
)


@st.composite
def with_bounds(draw, kind, dtype):
    x = draw(matrices(kind, dtype, (draw(sizes(5)), draw(sizes(5)))))
    return [x, *(np.array(draw(st.integers(-7, 7)), "int64") for _ in range(4))]


@pytest.mark.few(2)
@runs([*FLOATS, "int8", COMPLEX])
def test_slices(kind, dtype, examples):
    x = sparse.matrix(kind, "x", dtype=dtype)
    bounds = [pt.lscalar(name) for name in "ijkn"]
    slices = {
        "rows": lambda x, i, j, k, n: x[i:j],
        "columns": lambda x, i, j, k, n: x[:, i:j],
        "both": lambda x, i, j, k, n: x[i:j, k:n],
        "from": lambda x, i, j, k, n: x[i:, k:],
        "backwards": lambda x, i, j, k, n: x[i:j:-1, ::-2],
        "every other": lambda x, i, j, k, n: x[::2, k:n:3],
        "constant": lambda x, i, j, k, n: x[1:3, -2:],
    }
    operations: Operations = {name: (f(x, *bounds), f) for name, f in slices.items()}
    assert_scipy_agrees([x, *bounds], operations, with_bounds(kind, dtype), examples)


@st.composite
def with_lists(draw, kind, dtype):
    """Draw a matrix, lists of rows and columns, values at their places, and rows of values."""
    m, n = draw(sizes(5).map(lambda size: size + 1)), draw(sizes(5).map(lambda size: size + 1))
    count = draw(st.integers(1, 4))
    rows, cols = (
        np.array(draw(st.lists(st.integers(-size, size - 1), min_size=count, max_size=count)))
        for size in (m, n)
    )
    return [
        draw(matrices(kind, dtype, (m, n))),
        rows,
        cols,
        draw(arrays(dtype, (count,))),
        draw(matrices(kind, dtype, (count, n))),
    ]


@pytest.mark.few(1)
@runs([*FLOATS, "int8", COMPLEX])
def test_rows_and_elements_of_lists(kind, dtype, examples):
    x, rows, cols = sparse.matrix(kind, "x", dtype=dtype), pt.lvector("rows"), pt.lvector("cols")
    values, taken = pt.vector("values", dtype=dtype), sparse.matrix(kind, "taken", dtype=dtype)

    def set_rows(a, rows, cols, values, taken):
        result = np.zeros(a.shape, dtype)
        result[rows] = taken.toarray()
        return type(a)(result)

    def set_elements(a, rows, cols, values, taken):
        result = np.zeros(a.shape, dtype)
        result[rows, cols] = values
        return type(a)(result)

    operations: Operations = {
        "rows": (sparse.get_item_list(x, rows), lambda a, rows, *_: a[rows]),
        "element": (
            sparse.get_item_scalar(x, [rows[0], cols[0]]),
            lambda a, rows, cols, *_: np.asarray(a[rows[0], cols[0]]),
        ),
        "gradient of rows": (basic.get_item_list_grad(x, rows, taken), set_rows),
    }
    if not dtype.startswith("complex"):
        operations["elements"] = (
            sparse.get_item_2lists(x, rows, cols),
            # PyTensor declares float64.
            lambda a, rows, cols, *_: np.asarray(a[rows, cols])[0].astype("float64"),
        )
    if not dtype.startswith("int"):
        operations["gradient of elements"] = (
            basic.get_item_2lists_grad(x, rows, cols, values),
            set_elements,
        )
    inputs = [x, rows, cols, values, taken]
    assert_scipy_agrees(inputs, operations, with_lists(kind, dtype), examples)


@st.composite
def rows_of_values(draw, dtype):
    m, n = draw(sizes()), draw(sizes())
    rows = np.array(draw(st.lists(st.integers(0, max(m - 1, 0)), max_size=min(m, 3))), "int64")
    like = draw(arrays(dtype, (m, n)))
    return [like, draw(arrays(dtype, (len(rows), n))), rows]


@runs(FLOATS)
def test_matrices_of_rows_of_a_list(kind, dtype, examples):
    like, values = (pt.matrix(name, dtype=dtype) for name in ("like", "values"))
    rows = pt.lvector("rows")

    def reference(like, values, rows):
        result = np.zeros_like(like)
        np.add.at(result, rows, values)
        return sp.csc_matrix(result)

    operations: Operations = {
        "rows": (sparse.construct_sparse_from_list(like, values, rows), reference)
    }
    assert_scipy_agrees([like, values, rows], operations, rows_of_values(dtype), examples)
