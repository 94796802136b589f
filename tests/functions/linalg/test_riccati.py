"""The discrete algebraic Riccati equation."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.linalg

from pytensor_onnx import compile_onnx
from tests.conftest import compare_onnx_and_py
from tests.functions.linalg.matrices import assert_as_small, generator
from tests.functions.linalg.test_complex_elimination import shaken


@pytest.fixture(scope="module")
def solve():
    a, b, q, r = pt.matrices("abqr")
    return compile_onnx([a, b, q, r], pt.linalg.solve_discrete_are(a, b, q, r), verify=False)


def equation(m, n, scale=1.0):
    """Return the matrices of an equation with m states and n inputs."""
    rng = generator(m)
    a, b = scale * rng.normal(size=(m, m)) / np.sqrt(max(m, 1)), rng.normal(size=(m, n))
    q, r = rng.normal(size=(m, m)), rng.normal(size=(n, n))
    return a, b, q @ q.T, r @ r.T + np.eye(n)


def error(a, b, q, r, x):
    """Return the residual relative to the terms of the equation."""
    along, across = a.T @ x @ a, b.T @ x @ a
    lost = across.T @ np.linalg.solve(r + b.T @ x @ b, across)
    terms = sum(map(np.linalg.norm, (along, x, lost, q)))
    return np.linalg.norm(along - x - lost + q) / terms


@pytest.mark.slow
def test_solutions_and_gradients_are_pytensors():
    a, b, q, r = matrices = pt.matrices("abqr")
    x = pt.linalg.solve_discrete_are(a, b, q, r)
    results = [x, *pt.grad((x**2).sum(), list(matrices))]
    compare_onnx_and_py(matrices, results, equation(3, 2), rtol=1e-8, atol=1e-9)


@pytest.mark.slow
def test_batches_of_float32_are_pytensors():
    a, b = pt.ftensor3("a"), pt.fmatrix("b")
    x = pt.linalg.solve_discrete_are(a, b, np.eye(2, dtype="f4"), np.eye(1, dtype="f4"))
    values = [generator(1).normal(size=(3, 2, 2)), generator(2).normal(size=(2, 1))]
    values = [value.astype("float32") for value in values]
    program = compare_onnx_and_py([a, b], x, values, rtol=1e-4, atol=1e-5)
    assert [node.op_type for node in program.model.graph].count(
        "DiscreteRiccati_float32_batch1"
    ) == 1


@pytest.mark.parametrize("scale", [1e-6, 0.5, 2.0, 10.0])
def test_residuals_are_lapacks(scale, solve):
    for m, n in ((1, 1), (2, 1), (6, 6), (20, 5)):
        matrices = equation(m, n, scale)
        expected = scipy.linalg.solve_discrete_are(*matrices)
        found = solve(*matrices)
        np.testing.assert_array_equal(found, found.T)
        assert_as_small(error(*matrices, found), error(*matrices, expected))
        a, b, _, r = matrices
        closed = a - b @ np.linalg.solve(r + b.T @ found @ b, b.T @ found @ a)
        assert np.abs(np.linalg.eigvals(closed)).max() < 1


def test_solutions_have_the_scale_of_the_costs(solve):
    a, b, q, r = equation(3, 2)
    expected = solve(a, b, q, r)
    for scale in (2.0**-500, 2.0**500):
        np.testing.assert_allclose(solve(a, b, scale * q, scale * r) / scale, expected, rtol=1e-13)


def test_equations_without_a_solution_that_doubling_finds_are_nan(solve):
    one = np.eye(2)
    skew = one + np.eye(2, k=1)
    cases = {
        "not stabilisable": (2 * one, 0 * one, one, one),
        "on the unit circle": (one, 0 * one, one, one),
        "not detectable": (2 * one, one, 0 * one, one),
        "singular weights": (one, one, one, 0 * one),
        "costs that are not symmetric": (0.5 * one, one, skew, one),
        "weights that are not symmetric": (0.5 * one, one, one, skew),
    }
    for name, matrices in cases.items():
        assert np.isnan(solve(*matrices)).all(), name


def test_empty_and_non_finite_operands(solve):
    for m, n in ((0, 0), (0, 2), (2, 0)):
        matrices = equation(m, n, 0.3)
        found = solve(*matrices)
        assert found.shape == (m, m)
        if m:
            expected = scipy.linalg.solve_discrete_lyapunov(matrices[0].T, matrices[2])
            np.testing.assert_allclose(found, expected, rtol=1e-12)
    for place in range(4):
        matrices = [np.array(x) for x in equation(3, 2)]
        matrices[place][0, 0] = np.nan
        assert np.isnan(solve(*matrices)).all()


def test_shapes_that_do_not_fit_are_refused(solve):
    shapes = [(2, 2), (2, 1), (2, 2), (1, 1)]
    for place in range(4):
        wrong = [np.ones((3, 4)) if i == place else np.ones(s) for i, s in enumerate(shapes)]
        with pytest.raises(ValueError, match=r"square|dimensions"):
            solve(*wrong)


@pytest.fixture(scope="module")
def solve_complex():
    a, b, q, r = matrices = [pt.zmatrix(name) for name in "abqr"]
    return pytensor.function(matrices, pt.linalg.solve_discrete_are(a, b, q, r), mode="ONNX")


def complex_equation(m, n):
    rng = generator(m)
    a, b, q, r = (shaken(rng.normal(size=shape)) for shape in ((m, m), (m, n), (m, m), (n, n)))
    return a / np.sqrt(m), b, q @ q.conj().T, r @ r.conj().T + np.eye(n)


def complex_error(a, b, q, r, x):
    across = b.conj().T @ x @ a
    lost = across.conj().T @ np.linalg.solve(r + b.conj().T @ x @ b, across)
    along = a.conj().T @ x @ a
    terms = sum(map(np.linalg.norm, (along, x, lost, q)))
    return np.linalg.norm(along - x - lost + q) / terms


def test_residuals_of_complex_equations_are_lapacks(solve_complex):
    for m, n in ((1, 1), (2, 1), (6, 6), (20, 5)):
        matrices = complex_equation(m, n)
        found, expected = solve_complex(*matrices), scipy.linalg.solve_discrete_are(*matrices)
        np.testing.assert_array_equal(found, found.conj().T)
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9 * np.abs(expected).max())
        assert_as_small(complex_error(*matrices, found), complex_error(*matrices, expected))


def test_complex_equations_without_a_solution_are_nan(solve_complex):
    one, zero = np.eye(2) + 0j, np.zeros((2, 2)) + 0j
    assert np.isnan(solve_complex(2j * one, zero, one, one)).all()
    assert np.isnan(solve_complex(one * np.nan, one, one, one)).all()
    assert np.isnan(solve_complex(one, one, one * 1j, one)).all()


@pytest.mark.slow
def test_batches_of_complex_equations_are_pytensors():
    a, b, q, r = matrices = [pt.ztensor3("a"), *(pt.zmatrix(name) for name in "bqr")]
    values = complex_equation(3, 2)
    values = [np.stack([values[0], values[0] / 2]), *values[1:]]
    x = pt.linalg.solve_discrete_are(a, b, q, r)
    compare_onnx_and_py(matrices, x, values, rtol=1e-8, atol=1e-9)
