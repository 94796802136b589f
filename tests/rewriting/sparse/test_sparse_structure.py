"""Operations whose result has entries at places that depend on the values."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor import sparse
from pytensor.sparse.linalg import block_diag

from tests.rewriting.sparse.matrices import (
    SHAPES,
    compare_on,
    irregular,
    matrix,
    of_shape_4_3,
    special,
)


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


@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_indices_are_sorted_and_zeros_dropped(kind):
    x = sparse.matrix(kind, "x")
    results = [sparse.ensure_sorted_indices(x), sparse.Remove0()(x), sparse.clean(x)]
    matrices = [*of_shape_4_3(kind), *(matrix(shape, kind) for shape in SHAPES)]
    program = compare_on([x], results, [(a,) for a in matrices])
    ordered, smaller, clean = program(irregular(kind))
    assert ordered.has_sorted_indices
    assert (ordered.nnz, smaller.nnz, clean.nnz) == (7, 6, 6)


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


def test_constant_places_are_folded_without_errors(caplog):
    data = pt.dvector("data")
    x = sparse.CSR(data, np.array([2, 0, 2], "int32"), np.array([0, 1, 3], "int32"), [2, 3])
    f = pytensor.function([data], sparse.dense_from_sparse(sparse.add(x, x)), mode="ONNX")
    np.testing.assert_array_equal(f([1.0, 2.0, 3.0]), [[0, 0, 2], [4, 0, 6]])
    assert not caplog.records


KINDS = pytest.mark.parametrize("kind", ["csr", "csc"])


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


@KINDS
def test_gradients_of_elements(kind):
    x, rows, cols = sparse.matrix(kind, "x"), pt.lvector("rows"), pt.lvector("cols")
    loss = (sparse.get_item_2lists(x, rows, cols) ** 2).sum()
    samples = [(a, [0, 3, 0], [2, 0, 2]) for a in of_shape_4_3(kind)]
    compare_on([x, rows, cols], [pytensor.grad(loss, x)], samples)


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


@pytest.mark.parametrize("kinds", ["csr csr", "csc csc", "csr csc"], ids=str)
def test_stacks_of_rows_and_columns(kinds):
    first, second = kinds.split()
    x, y = sparse.matrix(first, "x"), sparse.matrix(second, "y", dtype="float32")
    results = [
        stack(blocks, format=format)
        for format in ("csr", "csc")
        for stack, blocks in ((sparse.hstack, [x, y]), (sparse.vstack, [y, y, x]))
    ]
    results += [block_diag(x, y, x, format=format) for format in ("csr", "csc")]
    samples = [
        (matrix((4, 3), first), irregular(second, "float32")),
        (irregular(first), special(second, "float32")),
        *((matrix(s, first), matrix(s, second, "float32")) for s in ((0, 2), (2, 0), (1, 1))),
    ]
    compare_on([x, y], results, samples)


def test_blocks_that_do_not_fit_are_errors():
    x, y = sparse.csr_matrix("x"), sparse.csr_matrix("y")
    for stack, wrong in ((sparse.hstack, (3, 3)), (sparse.vstack, (4, 2))):
        f = pytensor.function([x, y], stack([x, y]), mode="ONNX")
        with pytest.raises(ValueError, match="incompatible dimensions"):
            f(matrix((4, 3)), matrix(wrong))


def test_diagonal_of_dense_and_sparse_blocks():
    x, d = sparse.csr_matrix("x"), pt.matrix("d")
    compare_on([x, d], [block_diag(x, d, format="csr")], [(irregular(), np.eye(2, 3))])


def test_a_matrix_of_rows():
    x, values, rows = pt.matrix("x"), pt.matrix("values"), pt.lvector("rows")
    made = sparse.construct_sparse_from_list(x, values, rows)
    samples = [
        (np.zeros((4, 3)), np.arange(6.0).reshape(2, 3), np.array(r)) for r in ([3, 1], [2, 2])
    ]
    compare_on([x, values, rows], [made], samples)
