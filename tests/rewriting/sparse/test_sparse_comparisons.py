"""Comparisons of sparse matrices."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor import sparse
from pytensor.sparse import math

from tests.rewriting.sparse.matrices import compare_on, irregular, matrix, of_shape_4_3

pytestmark = pytest.mark.filterwarnings("ignore:Comparing two sparse", "ignore:.*is made dense")


@pytest.mark.slow
def test_comparisons_with_sparse_and_dense_matrices():
    kind = "csc"
    x, y, d = sparse.matrix(kind, "x"), sparse.matrix(kind, "y"), pt.matrix("d")
    names = ("equal", "not_equal", "less_than", "less_equal", "greater_than", "greater_equal")
    results = [getattr(math, f"{name}_s_s")(x, y) for name in names]
    results += [getattr(math, f"{name}_s_d")(x, d) for name in names]
    matrices = of_shape_4_3(kind)
    samples = [(a, b, b.toarray()) for a in matrices for b in matrices]
    samples += [(matrix((n, 2), kind), matrix((n, 2), kind), np.ones((n, 2))) for n in (0, 1)]
    compare_on([x, y, d], results, samples)


def test_comparisons_that_are_true_for_zeros_say_what_becomes_dense():
    x, y = sparse.csr_matrix("x", shape=(4, None)), sparse.csr_matrix("y")
    with pytest.warns(UserWarning, match=r"\{csr,float64\} is made dense \(4 x \?\) for LessEqual"):
        f = pytensor.function([x, y], x <= y, mode="ONNX")
    np.testing.assert_array_equal(f(irregular(), irregular()).toarray(), np.ones((4, 3)))
