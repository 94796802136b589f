"""Products of sparse matrices with dense vectors and matrices."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.sparse as sp
from pytensor import sparse

from pytensor_onnx import dispatch
from tests.conftest import op_types
from tests.rewriting.sparse.matrices import SHAPES, compare_on, matrix, of_shape_4_3


def sample(a):
    """Return a matrix, and dense operands for it."""
    rng = np.random.default_rng(a.shape)
    m, n = a.shape
    shapes = [(n,), (m,), (n, 3), (2, m), (n, 1)]
    return [a, *(rng.integers(-3, 4, shape).astype(a.dtype) for shape in shapes)]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("kind", "dtype"),
    [("csr", "float64"), ("csc", "float64"), ("csr", "float32"), ("csc", "int16")],
)
def test_products_with_vectors_and_matrices(kind, dtype):
    x = sparse.matrix(kind, "x", dtype=dtype)
    right, left = (pt.vector(name, dtype=dtype) for name in ("right", "left"))
    wide, tall = (pt.matrix(name, dtype=dtype) for name in ("wide", "tall"))
    column = pt.matrix("column", dtype=dtype, shape=(None, 1))
    results = [
        sparse.dot(x, right),
        sparse.dot(left, x),
        sparse.dot(x, wide),
        sparse.dot(tall, x),
        sparse.dot(x, column),
        sparse.structured_dot(x, wide),
        sparse.structured_dot(x, column),
        sparse.structured_dot(tall, x),
        sparse.true_dot(x, wide),
        sparse.math.usmm(pt.constant(np.array([[2]], dtype)), x, wide, sparse.dot(x, wide)),
    ]
    matrices = [*of_shape_4_3(kind, dtype), *(matrix(shape, kind, dtype) for shape in SHAPES)]
    inputs = [x, right, left, wide, tall, column]
    compare_on(inputs, results, [sample(a) for a in matrices])


def test_operands_of_two_dtypes():
    x, y = sparse.csr_matrix("x", dtype="float32"), pt.matrix("y", dtype="float64")
    z = sparse.csc_matrix("z", dtype="int32")
    results = [sparse.dot(x, y), sparse.structured_dot(z, y), sparse.dot(y.T, z.T)]
    dense = np.random.default_rng(1).normal(size=(3, 2))
    a, b = matrix((4, 3), "csr", "float32"), matrix((4, 3), "csc", "int32")
    compare_on([x, y, z], results, [(a, dense, b)])


def test_infinities_and_nan_of_dense_operands():
    x, v = sparse.csr_matrix("x"), pt.vector("v")
    values = np.array([np.inf, np.nan, 2.0])
    compare_on([x, v], [sparse.dot(x, v)], [(a, values) for a in of_shape_4_3()])


@pytest.mark.parametrize("kinds", ["csr csr", "csc csc", "csr csc"])
@pytest.mark.few(1)
def test_products_of_two_sparse_matrices(kinds):
    x, y = (sparse.matrix(kind, name) for kind, name in zip(kinds.split(), "xy", strict=True))
    first, second = (of_shape_4_3(kind) for kind in kinds.split())
    results = [sparse.dot(x, y), sparse.structured_dot(x, y), sparse.true_dot(x, y)]
    samples = [(a, b.T.asformat(kinds.split()[1])) for a in first for b in second]
    samples += [
        (matrix((m, k), kinds[:3]), matrix((k, n), kinds[4:]))
        for m, k, n in ((0, 3, 2), (3, 0, 2), (3, 2, 0), (0, 0, 0), (6, 5, 7))
    ]
    compare_on([x, y], results, samples)


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_sizes_that_do_not_fit_are_errors(kind, size):
    x, v, d = sparse.matrix(kind, "x"), pt.vector("v"), pt.matrix("d")
    f = pytensor.function([x, v], sparse.dot(x, v), mode="ONNX")
    g = pytensor.function([x, d], sparse.structured_dot(x, d), mode="ONNX")
    a = matrix((5, 3), kind)
    for run, wrong in ((f, np.ones(size)), (g, np.ones((size, 2)))):
        with pytest.raises(ValueError, match="dimension mismatch"):
            run(a, wrong)


@pytest.mark.parametrize("kind", ["csr", "csc"])
@pytest.mark.parametrize("product", [sparse.dot, sparse.structured_dot])
def test_gradients_of_products(kind, product):
    x, d = sparse.matrix(kind, "x"), pt.matrix("d")
    loss = (product(x, d) ** 2).sum()
    gradients = pytensor.grad(loss, [x, d])
    samples = [(a, sample(a)[3]) for a in of_shape_4_3(kind) if np.isfinite(a.data).all()]
    samples += [(a, sample(a)[3]) for a in (matrix((0, 3), kind), matrix((5, 2), kind))]
    compare_on([x, d], gradients, samples)


def test_a_product_gathers_and_scatters():
    x, v = sparse.csr_matrix("x"), pt.vector("v")
    a = matrix((4, 3))
    program = compare_on([x, v], [sparse.dot(x, v)], [(a, np.ones(3))])
    counts = {name: op_types(program).count(name) for name in ("GatherElements", "ScatterElements")}
    assert counts == {"GatherElements": 1, "ScatterElements": 1}
    assert len(op_types(program)) <= 15


def test_large_products_stay_sparse():
    n, count = 100_000, 300_000
    rng = np.random.default_rng(0)
    places = np.unique(rng.integers(0, n * n, count))
    a = sp.csr_matrix((rng.normal(size=len(places)), (places // n, places % n)), shape=(n, n))
    x, v = sparse.csr_matrix("x"), pt.vector("v")
    f = pytensor.function([x, v], sparse.dot(x, v), mode="ONNX")
    values = rng.normal(size=n)
    np.testing.assert_allclose(f(a, values), a @ values, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "int8"])
def test_products_of_many_entries_are_added_in_chunks(monkeypatch, dtype):
    monkeypatch.setattr(dispatch.sparse, "CHUNK", 8)
    x, b = sparse.csc_matrix("x", dtype=dtype), pt.matrix("b", dtype=dtype)
    rng = np.random.default_rng(1)
    shapes = [(4, 30, 2), (3, 40, 9), (0, 3, 2), (3, 0, 2), (3, 2, 0), (1, 8, 1)]
    samples = [
        (matrix((m, k), "csc", dtype, density=0.8), rng.integers(-3, 4, (k, n)).astype(dtype))
        for m, k, n in shapes
    ]
    compare_on([x, b], [sparse.dot(x, b), sparse.structured_dot(x, b)], samples)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_products_at_entries_are_added_in_blocks_of_columns(monkeypatch, dtype):
    monkeypatch.setattr(dispatch.sparse, "CHUNK", 8)
    monkeypatch.setattr(dispatch.sparse, "FEWEST_COLUMNS", 2)
    x = sparse.csr_matrix("x", dtype=dtype)
    u, v = pt.matrix("u", dtype=dtype), pt.matrix("v", dtype=dtype)
    gradient = pytensor.grad((u * sparse.structured_dot(x, v)).sum(), x)
    rng = np.random.default_rng(1)
    samples = [
        (matrix((m, n), "csr", dtype), *(rng.integers(-3, 4, (i, k)).astype(dtype) for i in (m, n)))
        for m, n, k in [(5, 6, 7), (5, 6, 2), (3, 4, 0), (0, 3, 5), (4, 4, 1)]
    ]
    compare_on([x, u, v], [sparse.sampling_dot(u, v, x), gradient], samples)
    with pytest.raises(ValueError, match="dimension mismatch"):
        pytensor.function([x, u, v], sparse.sampling_dot(u, v, x), mode="ONNX")(
            matrix((3, 4), "csr", dtype), np.ones((3, 2), dtype), np.ones((4, 4), dtype)
        )


@pytest.mark.parametrize("left", ["csr", "csc"])
@pytest.mark.parametrize("right", ["csr", "csc"])
@pytest.mark.few(1)
def test_gradients_of_products_of_two_sparse_matrices(left, right):
    x, y = sparse.matrix(left, "x"), sparse.matrix(right, "y")
    weights = pt.matrix("weights")
    results = []
    for product in (sparse.structured_dot, sparse.true_dot):
        cost = (sparse.dense_from_sparse(product(x, y)) * weights).sum()
        results += pytensor.grad(cost, [x, y])
    rng = np.random.default_rng(0)
    samples = [
        (matrix((4, 3), left), matrix((3, 2), right), rng.normal(size=(4, 2))),
        (matrix((0, 3), left), matrix((3, 1), right), np.zeros((0, 1))),
        (matrix((2, 1), left), sp.csr_matrix((1, 5)).asformat(right), np.ones((2, 5))),
    ]
    compare_on([x, y, weights], results, samples, rtol=1e-14, atol=1e-14)
