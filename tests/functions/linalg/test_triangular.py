"""Solutions of triangular systems, and of systems with Cholesky factors."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.linalg

from pytensor_onnx import compile_onnx, export_onnx
from tests.conftest import compare_onnx_and_py
from tests.functions.linalg import matrices
from tests.functions.linalg.matrices import GENERAL, LARGE, SIZES


def operands(batch: int, b_ndim: int, dtype: str = "float64") -> list[pt.TensorVariable]:
    return [
        pt.tensor(name, dtype=dtype, shape=(None,) * (batch + ndim))
        for name, ndim in (("a", 2), ("b", b_ndim))
    ]


def solver(batch: int = 0, b_ndim: int = 2, dtype: str = "float64", **options):
    a, b = operands(batch, b_ndim, dtype)
    x = pt.linalg.solve_triangular(a, b, b_ndim=b_ndim, **options)
    return compile_onnx([a, b], x, verify=False)


@pytest.fixture(scope="module")
def solvers():
    return {lower: solver(lower=lower) for lower in (True, False)}


@pytest.fixture(scope="module")
def batch_solvers():
    return {lower: solver(batch=1, lower=lower) for lower in (True, False)}


def regular(*shape: int, dtype: str = "float64") -> np.ndarray:
    a = np.random.default_rng(3).normal(size=shape) / shape[-1]
    return (a + 2 * np.eye(shape[-1])).astype(dtype)


def test_batches_of_right_hand_sides_share_a_matrix():
    a, b = pt.matrix("a"), pt.tensor3("b")
    values = [regular(5, 5), np.random.default_rng(0).normal(size=(3, 5, 2))]
    compare_onnx_and_py([a, b], pt.linalg.solve_triangular(a, b, lower=True), values)


def test_empty_systems_have_empty_solutions(solvers, batch_solvers):
    for lower in (True, False):
        for n, columns in ((0, 0), (0, 2), (3, 0)):
            found = solvers[lower](np.eye(n), np.ones((n, columns)))
            assert found.shape == (n, columns)
        for count, n, columns in ((0, 3, 2), (2, 0, 2), (2, 3, 0)):
            sides = np.ones((count, n, columns))
            assert batch_solvers[lower](np.ones((count, n, n)), sides).shape == sides.shape


TRIANGLES = {
    "Cholesky factor": lambda n: np.linalg.cholesky(matrices.random_positive(n)),
    "ill-conditioned factor": lambda n: np.linalg.cholesky(matrices.POSITIVE["ill-conditioned"](n)),
    "lower triangle of random": lambda n: np.tril(matrices.random(n)),
    **{
        f"U of {name}": lambda n, make=make: scipy.linalg.lu(make(n))[2].T if n else make(n)
        for name, make in GENERAL.items()
        if name not in ("Hilbert",)
    },
}


@pytest.mark.parametrize("name", TRIANGLES)
def test_backward_errors_are_lapacks(name, solvers, batch_solvers):
    # The factor of Wilkinson's matrix of one row is zero.
    for n in SIZES if "Wilkinson" not in name else SIZES[2:]:
        lower = TRIANGLES[name](n)
        for triangle, is_lower in ((lower, True), (lower.T, False)):
            b = matrices.generator(n).normal(size=(n, 2))
            found = solvers[is_lower](triangle, b)
            (in_batch,) = batch_solvers[is_lower](triangle[None], b[None])
            expected = scipy.linalg.solve_triangular(triangle, b, lower=is_lower) if n else b
            for x in (found, in_batch):
                assert_solution(x, triangle, b, expected)


@pytest.mark.slow
@pytest.mark.parametrize("n", LARGE)
def test_backward_errors_of_large_systems_are_lapacks(n, solvers):
    triangle = TRIANGLES["ill-conditioned factor"](n)
    b = matrices.generator(n).normal(size=(n, 2))
    expected = scipy.linalg.solve_triangular(triangle, b, lower=True)
    assert_solution(solvers[True](triangle, b), triangle, b, expected)


def assert_solution(x: np.ndarray, a: np.ndarray, b: np.ndarray, expected: np.ndarray) -> None:
    errors = [matrices.residual(a, solution, b) for solution in (x, expected)]
    matrices.assert_as_small(*errors)


@pytest.mark.parametrize("n", [1, 2, 17, 40])
def test_a_zero_in_the_diagonal_makes_all_unknowns_nan(n, solvers, batch_solvers):
    for lower in (True, False):
        a = regular(n, n)
        a[n // 2, n // 2] = 0
        assert np.isnan(solvers[lower](a, np.ones((n, 2)))).all()
        bad, good = batch_solvers[lower](np.stack([a, np.eye(n)]), np.ones((2, n, 2)))
        assert np.isnan(bad).all()
        np.testing.assert_array_equal(good, 1)


@pytest.mark.parametrize("n", [3, 20])
def test_nan_reaches_all_unknowns_that_depend_on_it(n, solvers, batch_solvers):
    a, b = regular(n, n), np.ones((n, 2))
    a[2, 1] = b[1, 1] = np.nan
    for solve in (solvers[True], lambda *x: batch_solvers[True](*(y[None] for y in x))[0]):
        found = solve(a, b)
        assert np.isnan(found[2:]).all()
        assert np.isnan(found[1:, 1]).all()


def test_gradients_are_pytensors():
    a, b = pt.matrix("a"), pt.matrix("b")
    x = pt.linalg.solve_triangular(a, b, lower=False)
    values = [regular(6, 6), np.random.default_rng(0).normal(size=(6, 2))]
    compare_onnx_and_py([a, b], pt.grad((x**2).sum(), [a, b]), values, atol=1e-13)


@pytest.mark.slow
def test_gradients_of_factors_are_pytensors():
    a, b = pt.matrix("a"), pt.matrix("b")
    factor = pt.linalg.cholesky(a, lower=False)
    cost = (pt.linalg.cho_solve((factor, False), b) ** 2).sum() + pt.sin(factor).sum()
    value = regular(6, 6) @ regular(6, 6).T
    compare_onnx_and_py(
        [a, b], pt.grad(cost, [a, b]), [value, np.ones((6, 2))], rtol=1e-11, atol=1e-12
    )


def test_shapes_that_do_not_fit_are_refused(solvers, batch_solvers):
    for solve, batch in ((solvers[True], ()), (batch_solvers[True], (2,))):
        with pytest.raises(ValueError, match="expected square matrix"):
            solve(np.ones((*batch, 2, 3)), np.ones((*batch, 3, 1)))
        with pytest.raises(ValueError, match="shapes of a and b are incompatible"):
            solve(np.ones((*batch, 3, 3)), np.ones((*batch, 2, 1)))
    a, b = pt.matrix("a", shape=(3, 3)), pt.vector("b", shape=(2,))
    with pytest.raises(ValueError, match="must be equal"):
        export_onnx([a, b], pt.linalg.solve_triangular(a, b), verify=False)
    c, d = pt.matrix("c"), pt.vector("d")
    solve = pytensor.function([c, d], pt.linalg.cho_solve((c, True), d), mode="ONNX")
    with pytest.raises(ValueError, match="The factored matrix c is not square"):
        solve(np.ones((2, 3)), np.ones(3))
    with pytest.raises(ValueError, match="incompatible dimensions"):
        solve(np.ones((3, 3)), np.ones(2))
