"""Equations of Sylvester and Lyapunov with complex matrices."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.linalg

from tests.conftest import compare_onnx_and_py
from tests.functions.linalg.matrices import assert_as_small, generator
from tests.functions.linalg.test_complex_elimination import shaken
from tests.functions.linalg.test_complex_schur import complex_matrices

L = pt.linalg


@pytest.fixture(scope="module")
def solve():
    a, b, c = (pt.zmatrix(name) for name in "abc")
    return pytensor.function([a, b, c], L.solve_sylvester(a, b, c), mode="ONNX")


def error(a, b, c, x):
    """Return the residual relative to the matrices and the solution."""
    size = np.hypot(np.linalg.norm(a), np.linalg.norm(b)) * np.linalg.norm(x)
    return np.linalg.norm(a @ x + x @ b - c) / (size or 1)


def normal(*shape, seed=0):
    return shaken(generator(seed).normal(size=shape))


@pytest.mark.parametrize(("m", "n"), [(1, 2), (2, 2), (7, 10)])
@pytest.mark.slow
def test_residuals_are_lapacks(m, n, solve):
    firsts, seconds = complex_matrices(m), complex_matrices(n)
    for name, a in firsts.items():
        if not a.any() or name == "next to overflow":
            continue
        # Eigenvalues of one are far from those of the other, negative.
        b = seconds[name] + 3 * np.abs(a).max() * np.eye(n)
        a = a + 3 * np.abs(b).max() * np.eye(m)  # noqa: PLW2901
        c = normal(m, n)
        expected = scipy.linalg.solve_sylvester(a, b, c)
        assert_as_small(error(a, b, c, solve(a, b, c)), error(a, b, c, expected))


def test_residuals_next_to_singular_equations_are_small(solve):
    a, c = normal(12, 12), normal(12, 12, seed=4)
    a = a - a.conj().T
    b = a.conj().T + 1e-7 * normal(12, 12, seed=5)
    expected = scipy.linalg.solve_sylvester(a, b, c)
    assert_as_small(error(a, b, c, solve(a, b, c)), error(a, b, c, expected))


@pytest.mark.slow
def test_residuals_of_large_equations_are_lapacks(solve):
    a, b, c = normal(60, 60), normal(33, 33), normal(60, 33)
    expected = scipy.linalg.solve_sylvester(a, b, c)
    assert_as_small(error(a, b, c, solve(a, b, c)), error(a, b, c, expected))


def test_large_and_small_matrices_are_scaled(solve):
    a, b, c = normal(4, 4), normal(3, 3), normal(4, 3)
    x = solve(a, b, c)
    for scale in (1e150, 1e-150):
        found = solve(a * scale, b * scale, c) * scale
        np.testing.assert_allclose(found, x, rtol=1e-12)


def test_equations_without_one_solution_are_nan(solve):
    for a, b in ((1j * np.eye(2), -1j * np.eye(2)), (np.zeros((2, 2)), np.zeros((2, 2)))):
        assert np.isnan(solve(a, b, np.ones((2, 2)))).all()


@pytest.mark.slow
def test_empty_and_non_finite_operands(solve):
    for m, n in ((0, 0), (0, 2), (2, 0)):
        assert solve(np.eye(m), np.eye(n), np.zeros((m, n))).shape == (m, n)
    for place in range(3):
        operands = [np.eye(2) + 0j, np.eye(3) + 0j, np.ones((2, 3)) + 0j]
        operands[place][0, 0] = complex(0, np.inf)
        assert np.isnan(solve(*operands)).all()
    with pytest.raises(ValueError, match=r"square|fit"):
        solve(np.ones((2, 3)), np.ones((2, 2)), np.ones((2, 2)))


@pytest.mark.slow
def test_solutions_with_a_real_matrix_solve_the_equation():
    a, c, r = pt.zmatrix("a"), pt.zmatrix("c"), pt.dmatrix("r")
    equations = [(a, r, c), (r, a, c), (r, r, c)]
    f = pytensor.function([a, c, r], [L.solve_sylvester(*e) for e in equations], mode="ONNX")
    values = {a: normal(6, 6), c: normal(6, 6, seed=1), r: generator(7).normal(size=(6, 6))}
    for x, (left, right, side) in zip(f(values[a], values[c], values[r]), equations, strict=True):
        terms = values[left] @ x + x @ values[right]
        np.testing.assert_allclose(terms, values[side], rtol=0, atol=1e-11)


@pytest.mark.slow
def test_solutions_of_batches_and_lyapunov_equations_are_pytensors():
    a, q = pt.ztensor3("a"), pt.zmatrix("q")
    value, side = normal(2, 4, 4) / 4, normal(4, 4, seed=2)
    results = [
        L.solve_sylvester(a, q, q),
        L.solve_continuous_lyapunov(a[0], q),
        L.solve_discrete_lyapunov(a[1], q),
        L.solve_discrete_lyapunov(a[1], q, method="direct"),
    ]
    compare_onnx_and_py([a, q], results, [value, side], rtol=1e-9, atol=1e-10)


@pytest.mark.slow
def test_single_precision_is_kept():
    a = pt.cmatrix("a")
    value = normal(3, 3).astype("complex64")
    compare_onnx_and_py([a], L.solve_sylvester(a, a, a), [value], rtol=1e-4, atol=1e-4)
