"""Conversions between sparse matrices, their vectors and dense matrices."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.sparse as sp
from pytensor import sparse

from pytensor_onnx import export_onnx
from tests.conftest import op_types
from tests.rewriting.sparse.matrices import (
    SHAPES,
    compare_on,
    irregular,
    matrix,
    of_shape_4_3,
    special,
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        *(("csr", dtype) for dtype in ("float64", "int8", "int64")),
        *(("csc", dtype) for dtype in ("float32", "uint16")),
    ],
)
def test_a_matrix_becomes_dense_sparse_transposed_and_another_dtype(kind, dtype):
    x, d = sparse.matrix(kind, "x", dtype=dtype), pt.matrix("d", dtype=dtype)
    results = [
        sparse.dense_from_sparse(x),
        x.T,
        sparse.cast(x, "float64"),
        sparse.cast(x, "int32" if dtype.startswith("float") else "float32"),
        sparse.csr_from_dense(d),
        sparse.csc_from_dense(d),
        x.shape,
        sparse.sp_ones_like(x),
        sparse.sp_zeros_like(x),
    ]
    matrices = [*of_shape_4_3(kind, dtype), *(matrix(shape, kind, dtype) for shape in SHAPES)]
    finite = [a for a in matrices if np.isfinite(a.data).all()]
    compare_on([x, d], results, [(a, a.toarray()) for a in finite])


@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_infinities_and_nan_are_kept(kind):
    x, d = sparse.matrix(kind, "x"), pt.matrix("d")
    results = [sparse.dense_from_sparse(x), x.T, sparse.csc_from_dense(d)]
    a = special(kind)
    compare_on([x, d], results, [(a, a.toarray())])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_properties_and_matrices_of_vectors(kind):
    x = sparse.matrix(kind, "x")
    data, indices, pointers, shape = sparse.csm_properties(x)
    from_vectors = sparse.CSM(kind)
    results = [
        *(data, indices, pointers, shape),
        from_vectors(data * 2, indices, pointers, shape),
        # The transposed matrix, and a matrix of more columns.
        sparse.CSM("csc" if kind == "csr" else "csr")(data, indices, pointers, shape[::-1]),
        from_vectors(
            data, indices, pointers, shape + (np.array([0, 1]) if kind == "csr" else [1, 0])
        ),
    ]
    compare_on([x], results, [(a,) for a in [*of_shape_4_3(kind), matrix((0, 3), kind)]])


def test_wrong_vectors_are_errors():
    data, indices = pt.vector("data"), pt.ivector("indices")
    pointers, shape = pt.ivector("pointers"), pt.lvector("shape")
    f = pytensor.function(
        [data, indices, pointers, shape],
        sparse.CSR(data, indices, pointers, shape),
        mode="ONNX",
    )
    right = [[1.0, 2.0], [0, 1], [0, 1, 2], [2, 2]]
    np.testing.assert_array_equal(f(*right).toarray(), np.diag([1.0, 2.0]))
    # Entries after the last pointer are dropped, as SciPy does.
    np.testing.assert_array_equal(f(*right[:2], [0, 1, 1], [2, 2]).toarray(), np.diag([1.0, 0]))
    for i, wrong, message in (
        (0, [1.0], "same number of elements"),
        (2, [0, 1], "index pointer"),
        (2, [1, 1, 2], "index pointer"),
        (2, [0, 1, 3], "Last value of index pointer"),
        (3, [3, 2], "index pointer"),
        (2, [0, 2, 1], "must not decrease"),
        (1, [0, 2], "index out of range"),
        (1, [-1, 1], "index out of range"),
    ):
        with pytest.raises(IndexError if i == 1 else ValueError, match=message):
            f(*right[:i], wrong, *right[i + 1 :])


def test_structured_operations_compute_on_the_entries_alone():
    x = sparse.csr_matrix("x")
    program = export_onnx([x], sparse.structured_exp(x))
    assert op_types(program) == ["Exp", *["Identity"] * 3]
    found = program(irregular())
    np.testing.assert_allclose(found.data, np.exp(irregular().data), rtol=1e-15)
    assert isinstance(found, sp.csr_matrix)


@pytest.mark.slow
def test_pointers_may_be_joined():
    counts = pt.lvector("counts")
    pointers = pt.concatenate([np.zeros(1, "int64"), counts.cumsum()])
    x = sparse.CSR(pt.ones(3), pt.arange(3), pointers, pt.stack([counts.shape[0], 3]))
    compare_on([counts], [x], [(np.array([1, 2]),), (np.array([0, 3, 0]),)])
