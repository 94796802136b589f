"""Operations whose result has entries at places that depend on the values."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor import sparse

from tests.rewriting.sparse.matrices import (
    SHAPES,
    compare_on,
    irregular,
    matrix,
    of_shape_4_3,
)


@pytest.mark.slow
@pytest.mark.parametrize("kinds", [("csr", "csr"), ("csc", "csc"), ("csr", "csc")], ids="-".join)
def test_sums_and_products_of_two_matrices(kinds):
    x, y = (sparse.matrix(kind, name) for kind, name in zip(kinds, "xy", strict=True))
    first, second = map(of_shape_4_3, kinds)
    samples = [(a, b) for a in first for b in second]
    samples += [(matrix(s, kinds[0]), matrix(s[::-1], kinds[1]).T) for s in SHAPES]
    samples = [(a, b.asformat(kinds[1])) for a, b in samples]
    compare_on([x, y], [x + y, x * y, x - y], samples)


@pytest.mark.parametrize(
    ("kind", "dtype"), [("csr", "float32"), ("csc", "int16"), ("csr", "uint8")]
)
@pytest.mark.few(1)
def test_dtypes_of_two_matrices(kind, dtype):
    x, y = sparse.matrix(kind, "x", dtype=dtype), sparse.matrix(kind, "y", dtype="float64")
    a, b = matrix((4, 3), kind, dtype), irregular(kind)
    compare_on([x, y], [x + x, x * x, x + y, y * x], [(a, b), (irregular(kind, dtype), b)])


@pytest.mark.slow
def test_results_have_sorted_entries_without_zeros():
    x, y = sparse.csr_matrix("x"), sparse.csr_matrix("y")
    f = pytensor.function([x, y], [x + y, x - y], mode="ONNX")
    total, difference = f(irregular(), irregular())
    assert total.has_canonical_format
    assert total.nnz == 4
    assert difference.nnz == 0


def test_matrices_of_two_shapes_are_errors():
    x, y = sparse.csr_matrix("x"), sparse.csr_matrix("y")
    f = pytensor.function([x, y], x + y, mode="ONNX")
    with pytest.raises(ValueError, match="inconsistent shapes"):
        f(matrix((4, 3)), matrix((4, 2)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_indices_are_sorted_and_zeros_dropped(kind):
    x = sparse.matrix(kind, "x")
    results = [sparse.ensure_sorted_indices(x), sparse.Remove0()(x), sparse.clean(x)]
    matrices = [*of_shape_4_3(kind), *(matrix(shape, kind) for shape in SHAPES)]
    program = compare_on([x], results, [(a,) for a in matrices])
    ordered, smaller, clean = program(irregular(kind))
    assert ordered.has_sorted_indices
    assert (ordered.nnz, smaller.nnz, clean.nnz) == (7, 6, 6)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_gradients_by_the_entries(kind):
    x, y = sparse.matrix(kind, "x"), sparse.matrix(kind, "y")
    data, indices, pointers, shape = sparse.csm_properties(x)
    own = sparse.CSM(kind)(data, indices, pointers, shape)
    loss = sparse.sp_sum(sparse.structured_exp(own) * y, sparse_grad=True)
    gradient = pytensor.grad(loss, data)
    samples = [(irregular(kind), irregular(kind)), (matrix((4, 3), kind), irregular(kind))]
    program = compare_on([x, y], [gradient], samples, rtol=1e-14)
    assert np.count_nonzero(program(*samples[0])[0]) == 6


@pytest.mark.slow
def test_constant_places_are_folded_without_errors(caplog):
    data = pt.dvector("data")
    x = sparse.CSR(data, np.array([2, 0, 2], "int32"), np.array([0, 1, 3], "int32"), [2, 3])
    f = pytensor.function([data], sparse.dense_from_sparse(sparse.add(x, x)), mode="ONNX")
    np.testing.assert_array_equal(f([1.0, 2.0, 3.0]), [[0, 0, 2], [4, 0, 6]])
    assert not caplog.records
