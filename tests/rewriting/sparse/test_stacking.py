"""Sparse matrices of sparse blocks."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor import sparse
from pytensor.sparse.linalg import block_diag

from tests.rewriting.sparse.matrices import compare_on, irregular, matrix, special


@pytest.mark.slow
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
