"""Operations on one sparse matrix agree with SciPy on drawn matrices."""

import numpy as np
import pytensor.tensor as pt
import pytest
import scipy.special
from hypothesis import strategies as st
from pytensor import sparse
from pytensor.sparse import math

from tests.rewriting.sparse.properties.drawn import (
    COMPLEX,
    FLOATS,
    INTEGERS,
    Operations,
    assert_scipy_agrees,
    matrices,
    numbers,
    runs,
    sizes,
    with_entries,
)


@st.composite
def one_matrix(draw, kind, dtype, values=None):
    return [draw(matrices(kind, dtype, (draw(sizes()), draw(sizes())), values))]


@pytest.mark.few(2)
@runs([*FLOATS, *INTEGERS, COMPLEX])
def test_conversions_and_properties(kind, dtype, examples):
    x = sparse.matrix(kind, "x", dtype=dtype)
    data, indices, pointers, shape = sparse.csm_properties(x)
    turned = "csc" if kind == "csr" else "csr"
    operations: Operations = {
        "dense": (x.toarray(), lambda a: a.toarray()),
        "transposed": (x.T, lambda a: a.T),
        "data": (data, lambda a: a.data),
        "indices": (indices, lambda a: a.indices),
        "pointers": (pointers, lambda a: a.indptr),
        "sizes": (shape, lambda a: np.array(a.shape, "int32")),
        "shape": (x.shape, lambda a: np.array(a.shape)),
        "vectors": (sparse.CSM(kind)(data, indices, pointers, shape), lambda a: a),
        "vectors of the transposed": (
            sparse.CSM(turned)(data, indices, pointers, shape[::-1]),
            lambda a: a.T,
        ),
        "rows of the dense": (sparse.csr_from_dense(x.toarray()), lambda a: a.tocsr()),
        "columns of the dense": (sparse.csc_from_dense(x.toarray()), lambda a: a.tocsc()),
        "ones": (sparse.sp_ones_like(x), lambda a: with_entries(a, np.ones_like(a.data))),
        "zeros": (sparse.sp_zeros_like(x), lambda a: type(a)(a.shape, dtype=a.dtype)),
        "sorted": (sparse.ensure_sorted_indices(x), lambda a: a.sorted_indices()),
        "without zeros": (sparse.basic.remove0(x), lambda a: a),
        "clean": (sparse.clean(x), lambda a: a),
    }
    others = ("int64", "float64", "complex64")
    for other in {"f": ("float32", "float64"), "c": ("complex64",)}.get(dtype[0], others):
        operations[other] = (x.astype(other), lambda a, other=other: a.astype(other))
    assert_scipy_agrees([x], operations, one_matrix(kind, dtype), examples)


@runs([*FLOATS, *INTEGERS, COMPLEX])
def test_sums_and_diagonals(kind, dtype, examples):
    x = sparse.matrix(kind, "x", dtype=dtype)
    operations: Operations = {
        "sum": (sparse.sp_sum(x), lambda a: wide(a).sum()),
        "sums of columns": (sparse.sp_sum(x, axis=0), lambda a: sums(a, 0)),
        "sums of rows": (sparse.sp_sum(x, axis=1), lambda a: sums(a, 1)),
    }
    assert_scipy_agrees([x], operations, one_matrix(kind, dtype), examples)
    square = sizes().flatmap(lambda n: st.tuples(matrices(kind, dtype, (n, n))))
    diagonals: Operations = {"diagonal": (sparse.diag(x), lambda a: a.diagonal())}
    assert_scipy_agrees([x], diagonals, square, examples)


def sums(a, axis):
    """Return sums along an axis; SciPy multiplies by complex ones, and infinity times 0 is NaN."""
    a = wide(a)
    return np.asarray((a.toarray() if a.dtype.kind == "c" else a).sum(axis=axis)).ravel()


def wide(a):
    """Return a matrix in the dtype of its sums: SciPy merges entries in that of the matrix."""
    return a.astype(np.zeros(1, a.dtype).sum().dtype)


_FUNCTIONS = {
    math.abs: np.abs,
    math.structured_sigmoid: scipy.special.expit,
    math.structured_exp: np.exp,
    math.structured_log: np.log,
    math.sin: np.sin,
    math.sinh: np.sinh,
    math.arcsin: np.arcsin,
    math.arcsinh: np.arcsinh,
    math.tan: np.tan,
    math.tanh: np.tanh,
    math.arctan: np.arctan,
    math.arctanh: np.arctanh,
    math.rint: np.rint,
    math.sign: np.sign,
    math.ceil: np.ceil,
    math.floor: np.floor,
    math.log1p: np.log1p,
    math.expm1: np.expm1,
    math.deg2rad: np.deg2rad,
    math.rad2deg: np.rad2deg,
    math.trunc: np.trunc,
    math.sqr: np.square,
    math.sqrt: np.sqrt,
    math.neg: np.negative,
    math.conjugate: np.conjugate,
}
_WITH_A_NUMBER = {
    math.structured_pow: np.power,
    math.structured_minimum: np.minimum,
    math.structured_maximum: np.maximum,
    math.structured_add: np.add,
}


@pytest.mark.slow
@runs(FLOATS)
def test_structured_functions(kind, dtype, examples):
    x, number = sparse.matrix(kind, "x", dtype=dtype), pt.scalar("number", dtype=dtype)
    results = {f.__name__: (f(x), g) for f, g in _FUNCTIONS.items()}
    operations: Operations = {
        name: (y, lambda a, _, g=g: with_entries(a, g(a.data))) for name, (y, g) in results.items()
    }
    for f, g in _WITH_A_NUMBER.items():
        operations[f.__name__] = (
            f(x, number),
            lambda a, n, g=g: with_entries(a, g(a.data, np.full_like(a.data, n))),
        )
    values = st.tuples(one_matrix(kind, dtype), numbers(dtype)).map(
        lambda drawn: [*drawn[0], np.array(drawn[1], dtype)]
    )
    assert_scipy_agrees([x, number], operations, values, examples)
