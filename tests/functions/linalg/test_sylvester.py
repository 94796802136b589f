"""Equations of Sylvester and Lyapunov."""

import numpy as np
import pytensor.tensor as pt
import pytest
import scipy.linalg

from tests.conftest import compare_onnx_and_py, sweep_rest
from tests.functions.linalg.matrices import assert_as_small, generator, relative
from tests.functions.linalg.nonsymmetric import HARD, NONSYMMETRIC


@pytest.fixture(scope="module")
def solve(compiled):
    a, b, c = pt.matrices("abc")
    return compiled([a, b, c], pt.linalg.solve_sylvester(a, b, c))


def error(a, b, c, x):
    """Return the residual relative to the matrices and the solution."""
    terms = a.astype("longdouble") @ x + x @ b.astype("longdouble")
    return relative(terms - c, np.concatenate([a.ravel(), b.ravel()]), x)


def batches():
    a, b, c = pt.tensor3("a"), pt.matrix("b"), pt.tensor3("c")
    rng = generator(1)
    values = [rng.normal(size=shape) for shape in ((2, 4, 4), (3, 3), (2, 4, 3))]
    return [a, b, c], pt.linalg.solve_sylvester(a, b, c), values


@pytest.mark.slow
def test_solutions_of_batches_are_pytensors():
    inputs, x, values = batches()
    compare_onnx_and_py(inputs, x, values, rtol=1e-9, atol=1e-10)


@pytest.mark.slow
def test_gradients_of_batches_are_pytensors():
    inputs, x, values = batches()
    compare_onnx_and_py(inputs, pt.grad((x**2).sum(), inputs), values, rtol=1e-9, atol=1e-10)


@pytest.mark.slow
def test_other_dtypes_are_cast_as_by_pytensor():
    a, b = pt.imatrix("a"), pt.fmatrix("b")
    results = [pt.linalg.solve_sylvester(a, b, a), pt.linalg.solve_sylvester(b, b, b)]
    value = generator(2).integers(-9, 9, size=(3, 3))
    arrays = [value.astype("int32"), (value.T + 1).astype("float32")]
    compare_onnx_and_py([a, b], results, arrays, rtol=1e-4, atol=1e-4)


@pytest.mark.few(3)
@pytest.mark.parametrize("name", sweep_rest(NONSYMMETRIC, HARD))
def test_residuals_are_lapacks(name, solve):
    for m, n in ((1, 2), (2, 2), (7, 10)):
        a, b = NONSYMMETRIC[name](m), NONSYMMETRIC[name](n)
        # Eigenvalues of one are far from those of the other, negative.
        b = b + 3 * np.abs(a).max() * np.eye(n)
        a = a + 3 * np.abs(b).max() * np.eye(m)
        c = generator(m).normal(size=(m, n))
        if not np.isfinite(a).all() or not a.any():
            continue
        expected = scipy.linalg.solve_sylvester(a, b, c)
        assert_as_small(error(a, b, c, solve(a, b, c)), error(a, b, c, expected))


def test_residuals_next_to_singular_equations_are_small(solve):
    a = generator(3).normal(size=(12, 12))
    a, c = a - a.T, generator(4).normal(size=(12, 12))
    b = a.T + 1e-7 * generator(5).normal(size=(12, 12))
    expected = scipy.linalg.solve_sylvester(a, b, c)
    assert_as_small(error(a, b, c, solve(a, b, c)), error(a, b, c, expected))


@pytest.mark.slow
def test_residuals_of_large_equations_are_lapacks(solve):
    for m, n in ((100, 40), (30, 90)):
        shapes = (m, m), (n, n), (m, n)
        a, b, c = (generator(k).normal(size=shape) for k, shape in enumerate(shapes))
        expected = scipy.linalg.solve_sylvester(a, b, c)
        assert_as_small(error(a, b, c, solve(a, b, c)), error(a, b, c, expected))


def test_equations_without_one_solution_are_nan(solve):
    pair = np.array([[0.0, 1.0], [-1.0, 0.0]])
    for a, b in ((np.eye(2), -np.eye(2)), (np.zeros((2, 2)), np.zeros((2, 2))), (pair, pair)):
        assert np.isnan(solve(a, b, np.ones((2, 2)))).all()


def test_empty_and_non_finite_operands(solve):
    for m, n in ((0, 0), (0, 2), (2, 0)):
        assert solve(np.eye(m), np.eye(n), np.zeros((m, n))).shape == (m, n)
    for place in range(3):
        operands = [np.eye(2), np.eye(3), np.ones((2, 3))]
        operands[place][0, 0] = np.inf
        assert np.isnan(solve(*operands)).all()


@pytest.mark.slow
@pytest.mark.parametrize("shapes", [((2, 3), (2, 2), (2, 2)), ((2, 2), (2, 2), (2, 3))])
def test_shapes_that_do_not_fit_are_refused(shapes, solve):
    with pytest.raises(ValueError, match=r"square|fit|is 2 in b and 3 in c"):
        solve(*map(np.ones, shapes))


@pytest.mark.slow
def test_solutions_of_discrete_lyapunov_equations_are_pytensors():
    a, q = pt.matrices("aq")
    values = [generator(k).normal(size=(4, 4)) / 4 for k in range(2)]
    x = pt.linalg.solve_discrete_lyapunov(a, q)
    compare_onnx_and_py([a, q], x, values, rtol=1e-9, atol=1e-11)


@pytest.mark.slow
def test_solutions_and_gradients_of_lyapunovs_equations_are_pytensors():
    a, q = pt.matrices("aq")
    continuous = pt.linalg.solve_continuous_lyapunov(a, q)
    direct = pt.linalg.solve_discrete_lyapunov(a, q, method="direct")
    values = [generator(k).normal(size=(4, 4)) / 4 for k in range(2)]
    results = [continuous, direct, *pt.grad((continuous**2).sum(), [a, q])]
    compare_onnx_and_py([a, q], results, values, rtol=1e-9, atol=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["bilinear", "direct"])
def test_gradients_of_discrete_lyapunov_equations_are_pytensors(method):
    a, q = pt.matrices("aq")
    x = pt.linalg.solve_discrete_lyapunov(a, q, method=method)
    values = [generator(k).normal(size=(4, 4)) / 4 for k in range(2)]
    compare_onnx_and_py([a, q], pt.grad((x**2).sum(), [a, q]), values, rtol=1e-8, atol=1e-10)
