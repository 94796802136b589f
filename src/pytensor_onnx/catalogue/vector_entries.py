"""Entries of distributions of vectors, matrices and series: densities and draws."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.tensor import linalg
from pytensor.tensor.variable import TensorVariable as V

from pytensor_onnx.catalogue.distribution_entries import NEXT_STATE, SHAPE, STATE
from pytensor_onnx.catalogue.entry import Argument, Entry
from pytensor_onnx.functions.loops import iterate

POSITIVE = "positive"
SHAPE_OF_DRAWS = SHAPE.dtype, SHAPE.core, SHAPE.is_batched, SHAPE.example
_ABOUT = {
    "Categorical": "Logarithm of the probability of each category.",
    "LKJCholesky": "Logarithm of the density of Cholesky factors of correlation matrices (LKJ).",
    "AR": "Logarithm of the density of each series, given its first k values (AR).",
    "GARCH11": "Logarithm of the density of each series with the variance "
    "omega + alpha_1 value² + beta_1 variance after each value (GARCH11).",
}
_MATRIX = ((2.0, 0.5, 0.1), (0.5, 1.5, -0.3), (0.1, -0.3, 1.0))
_POINTS = ((0.3, -1.2, 0.5), (-1.0, 0.1, 2.0))
_SIMPLEX = ((0.2, 0.3, 0.5), (0.6, 0.3, 0.1))
_WEIGHTS = (1.5, 2.0, 0.7)
_FACTORS = (((1.0, 0.0), (0.6, 0.8)), ((1.0, 0.0), (-0.28, 0.96)))
_CORRELATIONS = (((1.0, 0.6), (0.6, 1.0)), ((1.0, -0.28), (-0.28, 1.0)))
_COVARIANCES = (((2.0, 0.5), (0.5, 1.5)), ((1.0, -0.3), (-0.3, 0.8)))
_SERIES = ((0.3, -0.2, 0.5, 1.1), (-1.0, 0.1, 2.0, 1.5))


def _one(name: str, about: str, example: object, *core: str, dtype: str = "T") -> Argument:
    """Return a parameter, which all values share."""
    return Argument(name, about, dtype, core, is_batched=False, example=example)


def vector_entries() -> Iterator[Entry]:
    """Yield the functions of distributions of vectors, matrices and series."""
    mu = _one("mu", "real", (0.5, -0.5, 1.0), "n")
    cov = _one("cov", "covariance", _MATRIX, "n", "n")
    nu = _one("nu", "positive, degrees of freedom", 4.0)
    n = _one("n", "number of trials", 6, dtype="int64")
    p = _one("p", "probabilities", (0.2, 0.3, 0.5), "k")
    a = _one("a", "positive", _WEIGHTS, "k")
    real = Argument("value", "real", core=("n",), example=_POINTS)
    simplex = Argument("value", "positive, with a sum of 1", core=("k",), example=_SIMPLEX)
    counts = Argument(
        "value", "counts with the sum n", "int64", ("k",), example=((1, 2, 3), (4, 0, 2))
    )
    category = Argument("value", "0 to k - 1", "int64", example=(0, 2, 1, 1))
    eta = _one("eta", "positive; 1 for the uniform distribution", 1.5)
    scale = _one("v", "symmetric and positive definite", ((1.0, 0.2), (0.2, 0.5)), "n", "n")
    factor = Argument(
        "value",
        "lower Cholesky factor of a correlation matrix",
        core=("n", "n"),
        example=_FACTORS,
    )
    correlation = Argument("value", "correlation matrix", core=("n", "n"), example=_CORRELATIONS)
    covariance = Argument(
        "value", "symmetric and positive definite", core=("n", "n"), example=_COVARIANCES
    )
    series = Argument("value", "series", core=("t",), example=_SERIES)
    of_step = (_one("mu", "mean of a step", 0.2), _one("sigma", "positive, of a step", 0.7))
    start = (_one("init_mu", "mean of the first value", 0.5), _one("init_sigma", POSITIVE, 2.0))
    rho = _one("rho", "coefficients of the values before, the last value first", (0.5, -0.2), "k")
    of_error = _one("sigma", "positive, of an error", 0.7)
    init = _one("init", "first values of each series", (0.3, -0.5), "k")
    of_variance = (
        _one("omega", POSITIVE, 0.3),
        _one("alpha_1", "not negative", 0.4),
        _one("beta_1", "not negative", 0.2),
        _one("initial_vol", "positive, standard deviation of the first value", 0.8),
    )
    size = _one("n", "number of rows", 3, dtype="int64")
    length = _one("t", "length of a series", 5, dtype="int64")
    cases: list[tuple[str, Argument, tuple[Argument, ...], Callable[..., V]]] = [
        ("MvNormal", real, (mu, cov), _of_pymc(pm.MvNormal.dist)),
        ("MvStudentT", real, (nu, mu, cov), _of_pymc(_mv_student_t)),
        ("Dirichlet", simplex, (a,), _of_pymc(pm.Dirichlet.dist)),
        ("Multinomial", counts, (n, p), _of_pymc(pm.Multinomial.dist)),
        ("DirichletMultinomial", counts, (n, a), _of_pymc(pm.DirichletMultinomial.dist)),
        ("Categorical", category, (p,), _of_pymc(pm.Categorical.dist)),
        ("Wishart", covariance, (nu, scale), _wishart),
        ("LKJCorr", correlation, (eta,), _lkj_corr),
        ("LKJCholesky", factor, (eta,), _lkj_cholesky),
        ("GaussianRandomWalk", series, (*of_step, *start), _random_walk),
        ("AR", series, (rho, of_error), _auto_regression),
        ("GARCH11", series, of_variance, _garch),
    ]
    for name, value, parameters, density in cases:
        yield Entry(
            f"{name}LogProb",
            "vectors",
            name,
            _ABOUT.get(name, f"Logarithm of the density of each value ({name})."),
            (value, *parameters),
            (Argument("log_prob"),),
            density,
            "core",
        )
    draws: list[tuple[str, Argument, tuple[Argument, ...], Callable[..., V]]] = [
        ("MvNormal", real, (mu, cov), _draws(pm.MvNormal.dist)),
        ("MvStudentT", real, (nu, mu, cov), _draw_mv_student_t),
        ("Dirichlet", simplex, (a,), _draws(pm.Dirichlet.dist)),
        ("Multinomial", counts, (n, p), _draws(pm.Multinomial.dist)),
        ("DirichletMultinomial", counts, (n, a), _draw_dirichlet_multinomial),
        ("Categorical", category, (p,), _draws(pm.Categorical.dist)),
        ("Wishart", covariance, (nu, scale), _draw_wishart),
        ("LKJCorr", correlation, (size, eta), _draw_lkj_corr),
        ("LKJCholesky", factor, (size, eta), _draw_lkj_cholesky),
        ("GaussianRandomWalk", series, (length, *of_step, *start), _draw_random_walk),
        ("AR", series, (length, rho, of_error, init), _draw_auto_regression),
        ("GARCH11", series, (length, *of_variance), _draw_garch),
    ]
    shape = Argument("shape", "shape of the draws, without the axes of one value", *SHAPE_OF_DRAWS)
    for name, value, parameters, draw in draws:
        yield Entry(
            f"{name}Random",
            "vectors",
            name,
            f"Independent draws, and the next state ({name}).",
            (STATE, shape, *parameters),
            (Argument("value", "the draws", value.dtype, value.core), NEXT_STATE),
            draw,
            "random",
        )


def _of_pymc(dist: Callable[..., V]) -> Callable[..., V]:
    return lambda value, *parameters: pm.logp(dist(*parameters), value)


def _draws(dist: Callable[..., V]) -> Callable[..., V]:
    return lambda rng, size, *parameters: dist(*parameters, size=(size,), rng=rng)


def _mv_student_t(nu: V, mu: V, cov: V) -> V:
    return pm.MvStudentT.dist(nu=nu, mu=mu, scale=cov)


def _draw_mv_student_t(rng: V, size: V, nu: V, mu: V, cov: V) -> V:
    after, squares = pt.random.chisquare(nu, size=(size,), rng=rng, return_next_rng=True)
    normals = pm.MvNormal.dist(pt.zeros_like(mu), cov, size=(size,), rng=after)
    return mu + normals * pt.sqrt(nu / squares)[:, None].astype(mu.type.dtype)


def _draw_dirichlet_multinomial(rng: V, size: V, n: V, a: V) -> V:
    after, p = pt.random.dirichlet(a, size=(size,), rng=rng, return_next_rng=True)
    return pt.random.multinomial(n, p, rng=after, return_next_rng=True)[1]


def _log_det(factor: V) -> V:
    return 2.0 * pt.log(pt.diagonal(factor, axis1=-2, axis2=-1)).sum(axis=-1)


def _wishart(value: V, nu: V, v: V) -> V:
    """Return the density by Cholesky factors: tr(V^-1 X) is a sum of squares."""
    n = v.shape[0].astype(v.type.dtype)
    left, right = linalg.cholesky(v), linalg.cholesky(value)
    # One solution for the columns of all values.
    columns = right.transpose((1, 0, 2)).reshape((v.shape[0], -1))
    trace = linalg.solve_triangular(left, columns, lower=True) ** 2
    trace = trace.reshape((v.shape[0], value.shape[0], v.shape[0])).sum(axis=(0, 2))
    rows = pt.arange(v.shape[0]).astype(v.type.dtype)
    constant = n * (n - 1.0) / 4.0 * np.log(np.pi) + pt.gammaln(0.5 * (nu - rows)).sum()
    squares = (nu - n - 1.0) * _log_det(right) - trace - nu * _log_det(left)
    return 0.5 * (squares - nu * n * np.log(2.0)) - constant


def _draw_wishart(rng: V, size: V, nu: V, v: V) -> V:
    """Return the product of Bartlett's triangle, from the left, with its transpose."""
    n = v.shape[0]
    rows = pt.arange(n)
    after, squares = pt.random.chisquare(
        nu - rows.astype(v.type.dtype), size=(size, n), rng=rng, return_next_rng=True
    )
    normals = pt.random.normal(
        pt.zeros_like(v), pt.ones_like(v), size=(size, n, n), rng=after, return_next_rng=True
    )[1]
    roots = pt.sqrt(squares)[:, :, None].astype(v.type.dtype)
    below = pt.switch(rows[:, None] > rows, normals, 0.0)
    triangle = linalg.cholesky(v) @ pt.switch(pt.eq(rows[:, None], rows), roots, below)
    return triangle @ triangle.transpose((0, 2, 1))


def _lkj_constant(n: V, eta: V) -> V:
    """Return the constant of Lewandowski, Kurowicka and Joe (2009)."""
    k = pt.arange(1, n).astype(eta.type.dtype)
    count = n.astype(eta.type.dtype) - 1.0
    terms = 0.5 * k * np.log(np.pi) + pt.gammaln(eta + 0.5 * (count - k))
    return count * pt.gammaln(eta + 0.5 * count) - terms.sum()


def _lkj_corr(value: V, eta: V) -> V:
    n = value.shape[-1]
    return (eta - 1.0) * _log_det(linalg.cholesky(value)) + _lkj_constant(n, eta)


def _lkj_cholesky(value: V, eta: V) -> V:
    n = value.shape[-1]
    powers = 2.0 * (eta - 1.0) + (n - 1 - pt.arange(n)).astype(eta.type.dtype)
    logs = pt.log(pt.diagonal(value, axis1=-2, axis2=-1))
    return (powers * logs).sum(axis=-1) + _lkj_constant(n, eta)


def _draw_lkj_cholesky(rng: V, size: V, n: V, eta: V) -> V:
    """Return factors by partial correlations, which are independent (a C-vine)."""
    rows = pt.arange(n)
    shape = eta + 0.5 * (n - 2 - rows).astype(eta.type.dtype)
    # The last column has no partial correlations.
    shape = pt.switch(rows < n - 1, shape, 1.0)
    _, halves = pt.random.beta(shape, shape, size=(size, n, n), rng=rng, return_next_rng=True)
    halves = halves.astype(eta.type.dtype)
    below = rows[:, None] > rows
    partial = pt.switch(below, 2.0 * halves - 1.0, 0.0)
    rest = pt.sqrt(1.0 - partial**2)
    # The part of a row's length that the columns before a column leave.
    left = pt.cumprod(rest, axis=2)
    before = pt.concatenate([pt.ones_like(left[:, :, :1]), left[:, :, :-1]], axis=2)
    return pt.switch(pt.eq(rows[:, None], rows), before, partial * before)


def _draw_lkj_corr(rng: V, size: V, n: V, eta: V) -> V:
    factor = _draw_lkj_cholesky(rng, size, n, eta)
    rows = pt.arange(n)
    product = factor @ factor.transpose((0, 2, 1))
    return pt.switch(pt.eq(rows[:, None], rows), 1.0, product).astype(eta.type.dtype)


def _normal(value: V, mu: V, sigma: V) -> V:
    return -0.5 * ((value - mu) / sigma) ** 2 - pt.log(sigma) - 0.5 * np.log(2.0 * np.pi)


def _random_walk(value: V, mu: V, sigma: V, init_mu: V, init_sigma: V) -> V:
    steps = _normal(value[:, 1:] - value[:, :-1], mu, sigma).sum(axis=1)
    return steps + _normal(value[:, 0], init_mu, init_sigma)


def _draw_random_walk(rng: V, size: V, t: V, mu: V, sigma: V, init_mu: V, init_sigma: V) -> V:
    is_first = pt.eq(pt.arange(t), 0)
    centers, scales = pt.switch(is_first, init_mu, mu), pt.switch(is_first, init_sigma, sigma)
    _, steps = pt.random.normal(centers, scales, size=(size, t), rng=rng, return_next_rng=True)
    return pt.cumsum(steps, axis=1)


def _auto_regression(value: V, rho: V, sigma: V) -> V:
    k, t = rho.shape[0], value.shape[1]
    before = pt.arange(k, t)[:, None] - 1 - pt.arange(k)
    return _normal(value[:, k:], value[:, before] @ rho, sigma).sum(axis=1)


def _draw_auto_regression(rng: V, size: V, t: V, rho: V, sigma: V, init: V) -> V:
    """Return series whose last k values are the state of a loop, the last one first."""
    k = rho.shape[0]
    n_steps = pt.maximum(t - k, 0)
    _, errors = pt.random.normal(
        pt.zeros_like(sigma), sigma, size=(n_steps, size), rng=rng, return_next_rng=True
    )

    def step(error: V, last: V, rho: V) -> list[V]:
        after = last @ rho + error
        return [pt.concatenate([after[:, None], last[:, :-1]], axis=1), after]

    first = pt.zeros((size, k), dtype=init.type.dtype) + init
    _, values = iterate(step, [first[:, ::-1]], [rho], n_steps=n_steps, sequences=[errors])
    return pt.concatenate([first, values.T], axis=1)[:, :t]


def _variance(value: V, variance: V, omega: V, alpha: V, beta: V) -> V:
    return omega + alpha * value**2 + beta * variance


def _garch(value: V, omega: V, alpha: V, beta: V, initial_vol: V) -> V:
    def step(value: V, variance: V, *of: V) -> list[V]:
        after = _variance(value, variance, *of)
        return [after, after]

    first = pt.full_like(value[:, 0], initial_vol**2)
    before = value[:, :-1].T
    _, variances = iterate(
        step, [first], [omega, alpha, beta], n_steps=before.shape[0], sequences=[before]
    )
    scales = pt.sqrt(pt.concatenate([first[:, None], variances.T], axis=1))
    return _normal(value, pt.zeros_like(value), scales).sum(axis=1)


def _draw_garch(rng: V, size: V, t: V, omega: V, alpha: V, beta: V, initial_vol: V) -> V:
    _, normals = pt.random.normal(
        pt.zeros_like(omega), pt.ones_like(omega), size=(t, size), rng=rng, return_next_rng=True
    )

    def step(normal: V, variance: V, *of: V) -> list[V]:
        value = pt.sqrt(variance) * normal
        return [_variance(value, variance, *of), value]

    first = pt.full_like(normals.sum(axis=0), initial_vol**2)
    _, values = iterate(step, [first], [omega, alpha, beta], n_steps=t, sequences=[normals])
    return values.T
