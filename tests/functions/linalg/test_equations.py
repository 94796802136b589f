"""Equations of Sylvester and Lyapunov."""

import mpmath
import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.linalg

from pytensor_onnx import compile_onnx
from tests.conftest import compare_onnx_and_py, sweep_rest
from tests.functions.linalg.matrices import assert_as_small, generator, relative
from tests.functions.linalg.nonsymmetric import HARD, NONSYMMETRIC
from tests.functions.linalg.test_complex_lu import shaken


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


@pytest.mark.parametrize("shapes", [((2, 3), (2, 2), (2, 2)), ((2, 2), (2, 2), (2, 3))])
def test_shapes_that_do_not_fit_are_refused(shapes, solve):
    with pytest.raises(ValueError, match=r"square|fit|is 2 in b and 3 in c"):
        solve(*map(np.ones, shapes))


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


@pytest.fixture(scope="module")
def solve_riccati():
    a, b, q, r = pt.matrices("abqr")
    return compile_onnx([a, b, q, r], pt.linalg.solve_discrete_are(a, b, q, r), verify=False)


def equation(m, n, scale=1.0):
    """Return the matrices of an equation with m states and n inputs."""
    rng = generator(m)
    a, b = scale * rng.normal(size=(m, m)) / np.sqrt(max(m, 1)), rng.normal(size=(m, n))
    q, r = rng.normal(size=(m, m)), rng.normal(size=(n, n))
    return a, b, q @ q.T, r @ r.T + np.eye(n)


def error_riccati(a, b, q, r, x):
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
def test_residuals_are_lapacks_riccati(scale, solve):
    for m, n in ((1, 1), (2, 1), (6, 6), (20, 5)):
        matrices = equation(m, n, scale)
        expected = scipy.linalg.solve_discrete_are(*matrices)
        found = solve(*matrices)
        np.testing.assert_array_equal(found, found.T)
        assert_as_small(error_riccati(*matrices, found), error_riccati(*matrices, expected))
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


def test_empty_and_non_finite_operands_riccati(solve):
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


def test_shapes_that_do_not_fit_are_refused_riccati(solve):
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


@pytest.fixture(scope="module")
def exponential():
    x = pt.matrix("x")
    return compile_onnx([x], pt.linalg.expm(x), verify=False)


def test_exponentials_of_a_batch_are_pytensors_and_so_are_gradients():
    x = pt.tensor3("x")
    scales = np.array([0.0, 1e-8, 1.0, 30.0])[:, None, None]
    a = scales * generator(1).normal(size=(4, 3, 3))
    y = pt.linalg.expm(x)
    compare_onnx_and_py([x], [y, pt.grad(pt.log1p(y**2).sum(), x)], [a], rtol=1e-10, atol=1e-12)


def test_errors_are_small_beside_mpmath(exponential):
    for scale in (1e-3, 0.5, 3.0, 20.0):
        a = scale * generator(2).normal(size=(4, 4))
        with mpmath.workdps(60):
            exact = np.array(mpmath.expm(mpmath.matrix(a.tolist())).tolist(), dtype=float)
        bound = 50 * np.finfo(float).eps * max(np.linalg.norm(a), 1)
        assert np.linalg.norm(exponential(a) - exact) <= bound * np.linalg.norm(exact)


def test_empty_extreme_and_non_finite_matrices(exponential):
    assert exponential(np.zeros((0, 0))).shape == (0, 0)
    np.testing.assert_array_equal(exponential(np.zeros((3, 3))), np.eye(3))
    np.testing.assert_allclose(exponential([[-700.0]]), np.exp(-700.0), rtol=1e-11)
    np.testing.assert_array_equal(exponential(np.diag([-1e300, 0.0])), np.diag([0.0, 1.0]))
    assert np.isnan(exponential(np.array([[1.0, np.nan], [0.0, 1.0]]))).all()
    with pytest.raises(ValueError, match="square"):
        exponential(np.ones((2, 3)))
