"""Linear algebra of complex matrices."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.linalg

from tests.conftest import compare_onnx_and_py
from tests.functions.linalg.matrices import GENERAL, generator

L = pt.linalg


def complex_normal(*shape, seed=0):
    parts = generator(seed).normal(size=(2, *shape))
    return parts[0] + 1j * parts[1]


A, B = complex_normal(4, 4), complex_normal(4, 3, seed=1)
POSITIVE = A @ A.conj().T + np.eye(4)
TRIANGLE = A + 3 * np.eye(4)
OPERATIONS = {
    "solve": L.solve,
    "solve, one side": lambda a, b: L.solve(a, b[:, 0], b_ndim=1),
    "solve, Hermitian": lambda a, b: L.solve(a, b, assume_a="her"),
    "solve, symmetric": lambda a, b: L.solve(a, b, assume_a="sym", lower=True),
    "solve, tridiagonal": lambda a, b: L.solve(a, b, assume_a="tridiagonal"),
    "inv": lambda a, b: L.inv(a) @ b,
    "pinv": lambda a, b: L.pinv(b),
    "pinv of a triangle": lambda a, b: L.pinv(a, hermitian=True),
    "norm of singular values": lambda a, b: L.norm(a, "nuc"),
    "expm": lambda a, b: L.expm(a / 4),
    "block_diag": L.block_diag,
    "real matrix": lambda a, b: L.solve(a.real, b),
}


@pytest.mark.slow
def test_results_are_pytensors():
    a, b = pt.zmatrix("a"), pt.zmatrix("b")
    results = [operation(a, b) for operation in OPERATIONS.values()]
    compare_onnx_and_py([a, b], results, [A, B], rtol=1e-11, atol=1e-11)


@pytest.mark.slow
def test_triangular_and_positive_systems_are_pytensors():
    a, b, c = pt.zmatrix("a"), pt.zmatrix("b"), pt.zmatrix("c")
    results = [
        L.solve_triangular(a, b, lower=True),
        L.solve_triangular(a, b, trans="C"),
        L.solve_triangular(a, b[:, 0], lower=True, unit_diagonal=True, b_ndim=1),
        L.cho_solve((a, True), b),
        L.cho_solve((a, False), b[:, 0], b_ndim=1),
        L.solve(c, b, assume_a="pos"),
    ]
    compare_onnx_and_py([a, b, c], results, [TRIANGLE, B, POSITIVE], rtol=1e-11, atol=1e-11)


@pytest.fixture(scope="module")
def solvers():
    a, b = pt.ztensor3("a"), pt.ztensor3("b")
    results = [L.solve(a, b), L.inv(a), L.solve_triangular(a, b, lower=True)]
    return pytensor.function([a, b], results, mode="ONNX")


@pytest.mark.parametrize("n", [1, 2, 3, 17])
def test_backward_errors_are_lapacks(n, solvers):
    sides = complex_normal(n, 2, seed=5)
    names = [name for name in GENERAL if name != "Wilkinson"]
    a = np.stack([GENERAL[name](n) * np.exp(1j * complex_normal(n, n).real) for name in names])
    found = solvers(a, np.stack([sides] * len(a)))
    for name, matrix, x, inverse, y in zip(names, a, *found, strict=True):
        lower = np.tril(matrix)
        for given, ours, lapacks, right in (
            (matrix, x, scipy.linalg.solve(matrix, sides), sides),
            (matrix, inverse, scipy.linalg.inv(matrix), np.eye(n)),
            (lower, y, scipy.linalg.solve_triangular(lower, sides, lower=True), sides),
        ):
            errors = [
                np.abs(given @ z - right).max() / np.abs(given).max() / np.abs(z).max()
                for z in (ours, lapacks)
            ]
            assert errors[0] <= 10 * max(errors[1], 2.2e-16), name


@pytest.mark.slow
def test_empty_singular_and_non_finite_matrices(solvers):
    for shape in ((0, 2, 2), (2, 0, 0)):
        sides = np.zeros((*shape[:2], 3))
        expected = [sides.shape, shape, sides.shape]
        assert [x.shape for x in solvers(np.zeros(shape), sides)] == expected
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        solvers(np.zeros((1, 2, 2)), np.ones((1, 2, 1)))
    x, _, y = solvers(np.full((1, 2, 2), np.nan), np.ones((1, 2, 1)))
    assert np.isnan(x).all()
    assert np.isnan(y).all()


@pytest.mark.slow
def test_single_precision_is_kept():
    a = pt.cmatrix("a")
    compare_onnx_and_py([a], L.inv(a), [TRIANGLE.astype("complex64")], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", [(2, 2, 2), (1, 2, 3, 3)])
@pytest.mark.slow
def test_reshapes_in_batches(shape):
    """Kronecker products, and the discrete equation of Lyapunov by these."""
    rng = np.random.default_rng(5)
    values = [rng.normal(size=shape) + 1j * rng.normal(size=shape) for _ in range(2)]
    a, q = (pt.tensor(name, dtype="complex128", shape=(None,) * len(shape)) for name in "aq")
    product = pt.vectorize(pt.linalg.kron, signature="(n,n),(n,n)->(m,m)")(a, q)
    solution = pt.linalg.solve_discrete_lyapunov(a, q, method="direct")
    compare_onnx_and_py([a, q], [product, solution], values, rtol=1e-9, atol=1e-12)
