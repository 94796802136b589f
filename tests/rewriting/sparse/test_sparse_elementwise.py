"""Sparse matrices combined with dense arrays, element by element."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor import sparse
from pytensor.sparse.basic import col_scale, row_scale
from pytensor.sparse.math import structured_add_s_v

from tests.rewriting.sparse.matrices import SHAPES, compare_on, matrix, of_shape_4_3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "dtype"),
    [("csr", "float64"), ("csc", "float64"), ("csr", "float32"), ("csc", "int16")],
)
def test_sums_and_products_with_dense_arrays(kind, dtype):
    x, d = sparse.matrix(kind, "x", dtype=dtype), pt.matrix("d", dtype=dtype)
    cols, rows = (pt.vector(name, dtype=dtype) for name in ("cols", "rows"))
    number = pt.scalar("number", dtype=dtype)
    results = [
        x + d,
        d - x,
        x * d,
        number * x,
        sparse.math.mul_s_v(x, cols),
        structured_add_s_v(x, cols),
        col_scale(x, cols),
        row_scale(x, rows),
        sparse.add_s_s_data(x, x * d),
    ]

    def sample(a):
        rng = np.random.default_rng(a.shape)
        shapes = [a.shape, a.shape[1:], a.shape[:1], ()]
        return [a, *(rng.integers(1, 5, shape).astype(dtype) for shape in shapes)]

    matrices = [*of_shape_4_3(kind, dtype), *(matrix(shape, kind, dtype) for shape in SHAPES)]
    compare_on([x, d, cols, rows, number], results, [sample(a) for a in matrices])


@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_operands_of_two_dtypes(kind):
    x, d = sparse.matrix(kind, "x", dtype="float32"), pt.matrix("d", dtype="float64")
    i = sparse.matrix(kind, "i", dtype="int8")
    results = [x + d, x * d, i * d, i + d, i * 0.5]
    dense = np.random.default_rng(1).normal(size=(4, 3))
    compare_on(
        [x, d, i], results, [(matrix((4, 3), kind, "float32"), dense, matrix((4, 3), kind, "int8"))]
    )


@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_products_at_the_entries_of_a_pattern(kind):
    x, y, pattern = pt.matrix("x"), pt.matrix("y"), sparse.matrix(kind, "pattern")
    rng = np.random.default_rng(1)
    samples = [
        (rng.normal(size=(a.shape[0], k)), rng.normal(size=(a.shape[1], k)), a)
        for a in (*of_shape_4_3(kind)[:2], matrix((5, 2), kind), matrix((3, 0), kind))
        for k in (3, 0, 1)
    ]
    compare_on([x, y, pattern], [sparse.sampling_dot(x, y, pattern)], samples, atol=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_shapes_that_do_not_fit_are_errors(kind):
    x, d, v = sparse.matrix(kind, "x"), pt.matrix("d"), pt.vector("v")
    a = matrix((4, 3), kind)
    for result, other, wrong in (
        (x + d, d, np.ones((3, 4))),
        (x + d, d, np.ones((1, 3))),
        (x * d, d, np.ones((4, 2))),
        (sparse.math.mul_s_v(x, v), v, np.ones(4)),
        (col_scale(x, v), v, np.ones(2)),
        (row_scale(x, v), v, np.ones(3)),
    ):
        f = pytensor.function([x, other], result, mode="ONNX")
        with pytest.raises(ValueError, match=r"inconsistent shapes|dimension mismatch"):
            f(a, wrong)


@pytest.mark.slow
def test_gradients_of_products_with_dense_arrays():
    x, d, number = sparse.csr_matrix("x"), pt.matrix("d"), pt.scalar("number")
    loss = sparse.sp_sum(x * d * number, sparse_grad=True)
    dense = np.arange(12.0).reshape(4, 3)
    # Not with duplicates: SciPy merges those of x in place in one of the gradients.
    samples = [(matrix((4, 3)), dense, 2.0), (matrix((4, 3), density=0), dense, 2.0)]
    compare_on([x, d, number], pytensor.grad(loss, [x, d, number]), samples)
