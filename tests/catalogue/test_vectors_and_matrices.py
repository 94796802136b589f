"""Distributions of vectors, matrices and series, and batches of matrices."""

from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
import scipy.stats as st

from pytensor_onnx.catalogue.compile_entry import compile_entry
from pytensor_onnx.catalogue.library import entries, model_of
from pytensor_onnx.catalogue.vectors import run

BY_NAME = {entry.name: entry for entry in entries()}
STATE = np.array([0, 42])
MU = np.array([0.5, -0.5, 1.0])
COV = np.array([[2.0, 0.5, 0.1], [0.5, 1.5, -0.3], [0.1, -0.3, 1.0]])
SCALE = np.array([[1.0, 0.2], [0.2, 0.5]])


def called(name: str, *operands: Any, dtype: str = "float64") -> list[np.ndarray]:
    """Return the results of a function in ONNX Runtime."""
    entry = BY_NAME[name]
    given = [np.asarray(x, a.dtype_in(dtype)) for x, a in zip(operands, entry.inputs, strict=True)]
    return run(model_of(compile_entry(entry, dtype), [x.ndim for x in given]), given)


def drawn(name: str, *parameters: Any, n: int = 20_000) -> np.ndarray:
    """Return n draws, in two axes."""
    values, _ = called(f"{name}Random", STATE, [n // 4, 4], *parameters)
    assert values.shape[:2] == (n // 4, 4)
    return values.reshape(n, *values.shape[2:])


def assert_mean(values: np.ndarray, mean: Any) -> None:
    """Compare the mean of draws with its expectation, within 5 standard errors."""
    error = values.std(axis=0) / np.sqrt(len(values)) + 1e-12
    assert (abs(values.mean(axis=0) - mean) < 5 * error).all()


def test_draws_of_vectors_have_their_moments() -> None:
    for name, parameters, covariance in (
        ("MvNormal", (MU, COV), COV),
        ("MvStudentT", (9.0, MU, COV), COV * 9 / 7),
    ):
        values = drawn(name, *parameters)
        assert_mean(values, MU)
        products = (values - MU)[:, :, None] * (values - MU)[:, None]
        assert_mean(products, covariance)


@pytest.mark.slow
def test_draws_of_shares_and_counts_have_their_moments() -> None:
    a = np.array([1.5, 2.0, 0.7])
    p = a / a.sum()
    shares = drawn("Dirichlet", a)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, 1e-12)
    assert_mean(shares, p)
    assert_mean(shares**2, p * (a + 1) / (a.sum() + 1))
    for name, parameter, distribution in (
        ("Multinomial", p, st.multinomial(6, p)),
        ("DirichletMultinomial", a, st.dirichlet_multinomial(a, 6)),
    ):
        counts = drawn(name, 6, parameter)
        assert (counts.sum(axis=1) == 6).all()
        assert_mean(counts, 6 * p)
        covariance = distribution.cov()
        products = (counts - 6 * p)[:, :, None] * (counts - 6 * p)[:, None]
        assert_mean(products, covariance)
    categories = drawn("Categorical", p)
    assert_mean(categories[:, None] == np.arange(3), p)


def test_wishart_is_that_of_scipy() -> None:
    values = drawn("Wishart", 4.0, SCALE, n=8000)
    assert_mean(values, 4.0 * SCALE)
    exact = st.wishart(4.0, SCALE)
    variance = 4.0 * (SCALE**2 + np.outer(np.diag(SCALE), np.diag(SCALE)))
    assert_mean((values - 4.0 * SCALE) ** 2, variance)
    (found,) = called("WishartLogProb", values[:5], 4.0, SCALE)
    np.testing.assert_allclose(found, [exact.logpdf(x) for x in values[:5]], 1e-11)


@pytest.mark.slow
def test_lkj_has_the_marginals_of_its_paper() -> None:
    n, eta = 4, 1.7
    values = drawn("LKJCorr", n, eta, n=8000)
    # Each correlation is 2 x - 1 with x of a beta distribution (Lewandowski et al., 2009).
    shape = eta - 1 + n / 2
    for i, j in ((1, 0), (2, 1), (3, 0), (3, 2)):
        assert st.kstest((values[:, i, j] + 1) / 2, st.beta(shape, shape).cdf).pvalue > 1e-3
    np.testing.assert_allclose(values, values.transpose(0, 2, 1))
    factors = drawn("LKJCholesky", n, eta, n=8)
    (found,) = called("LKJCholeskyLogProb", factors, eta)
    exact = pm.logp(pm.LKJCorr.dist(n=n, eta=eta), pt.as_tensor(factors)).eval()
    np.testing.assert_allclose(found, exact, 1e-11)
    # The Jacobian of the product of a factor with its transpose.
    jacobian = sum((n - 1 - i) * np.log(factors[:, i, i]) for i in range(n))
    (of_matrix,) = called("LKJCorrLogProb", factors @ factors.transpose(0, 2, 1), eta)
    np.testing.assert_allclose(of_matrix, found - jacobian, 1e-11)


def test_series_have_the_density_of_their_steps() -> None:
    series = np.random.default_rng(1).normal(size=(3, 7))
    (found,) = called("GaussianRandomWalkLogProb", series, 0.25, 0.75, 0.5, 2.0)
    exact = st.norm.logpdf(np.diff(series), 0.25, 0.75).sum(axis=1)
    np.testing.assert_allclose(found, exact + st.norm.logpdf(series[:, 0], 0.5, 2.0), 1e-12)
    (found,) = called("ARLogProb", series, [0.5, -0.25], 0.75)
    predicted = 0.5 * series[:, 1:-1] - 0.25 * series[:, :-2]
    exact = st.norm.logpdf(series[:, 2:], predicted, 0.75).sum(axis=1)
    np.testing.assert_allclose(found, exact, 1e-12)
    walks = drawn("GaussianRandomWalk", 5, 0.25, 0.75, 0.5, 2.0)
    steps = np.diff(walks, axis=1)
    assert_mean(walks[:, 0], 0.5)
    assert_mean(steps, 0.25)
    assert_mean((steps - 0.25) ** 2, 0.5625)


@pytest.mark.parametrize("t", [1, 2, 6])
def test_series_of_values_before_have_their_moments(t: int) -> None:
    rho, init = np.array([0.5, -0.25]), np.array([1.0, 2.0])
    values = drawn("AR", t, rho, 0.75, init)
    assert values.shape == (20_000, t)
    assert (values[:, :2] == init[:t]).all()
    if t > 2:
        errors = values[:, 2:] - 0.5 * values[:, 1:-1] + 0.25 * values[:, :-2]
        assert_mean(errors, 0.0)
        assert_mean(errors**2, 0.5625)
        assert_mean(errors[:, 1:] * errors[:, :-1], 0.0)


def test_series_have_the_variances_of_the_values_before() -> None:
    omega, alpha, beta, initial = 0.5, 0.25, 0.5, 1.5
    of = (omega, alpha, beta, initial)
    series = np.random.default_rng(1).normal(size=(3, 7))
    (found,) = called("GARCH11LogProb", series, *of)
    reference = pm.GARCH11.dist(
        omega=omega, alpha_1=alpha, beta_1=beta, initial_vol=initial, steps=6
    )
    exact = [pm.logp(reference, x).eval() for x in series]
    np.testing.assert_allclose(found, exact, 1e-12)
    values = drawn("GARCH11", 4, *of)
    variance = np.full(len(values), initial**2)
    for x in values.T:
        assert_mean(x**2 / variance, 1.0)
        assert_mean(x, 0.0)
        variance = omega + alpha * x**2 + beta * variance
    assert called("GARCH11Random", STATE, [0], 3, *of)[0].shape == (0, 3)


@pytest.mark.parametrize("batch", [(), (2,), (2, 0), (3, 2)])
def test_batches_of_matrices(batch: tuple[int, ...]) -> None:
    rng = np.random.default_rng(2)
    a = rng.normal(size=(*batch, 3, 3)) + 3 * np.eye(3)
    (found,) = called("BatchCholesky", a @ np.swapaxes(a, -1, -2))
    np.testing.assert_allclose(found, np.linalg.cholesky(a @ np.swapaxes(a, -1, -2)), 1e-12)
    sign, log_det = called("BatchLogAbsDet", a)
    for x, y in zip((sign, log_det), np.linalg.slogdet(a), strict=True):
        assert x.shape == batch
        np.testing.assert_allclose(x, y, 1e-12)


def test_batches_of_matrices_broadcast() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(4, 1, 3, 3)), rng.normal(size=(2, 3, 5))
    (found,) = called("BatchSolve", a, b)
    np.testing.assert_allclose(found, np.linalg.solve(a, np.broadcast_to(b, (4, 2, 3, 5))), 1e-9)
    (one,) = called("BatchSolve", a[0, 0], b)
    np.testing.assert_allclose(one, np.linalg.solve(np.broadcast_to(a[0, 0], (2, 3, 3)), b), 1e-9)
