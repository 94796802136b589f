"""Distributions of vectors, bijectors and matrices in mpmath.

Vectors are lists of numbers, matrices are those of mpmath.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import mpmath as mp

Form = Callable[..., Any]
Vector = Sequence[Any]


def log_det(matrix: Any) -> Any:
    """Return the logarithm of the absolute determinant."""
    return mp.log(abs(mp.det(matrix)))


def log_gamma(x: Any) -> Any:
    """Return the logarithm of the gamma function at a positive number."""
    return mp.log(mp.gamma(x))


def distance(value: Vector, mu: Vector, cov: Any) -> Any:
    """Return the square of the distance of Mahalanobis."""
    d = mp.matrix([x - m for x, m in zip(value, mu, strict=True)])
    return (d.T * mp.lu_solve(cov, d))[0]


def mv_normal(value: Vector, mu: Vector, cov: Any) -> Any:
    """Return the log-density of a normal vector."""
    return -(distance(value, mu, cov) + log_det(cov) + len(mu) * mp.log(2 * mp.pi)) / 2


def mv_student_t(value: Vector, nu: Any, mu: Vector, cov: Any) -> Any:
    """Return the log-density of a vector of Student's distribution."""
    n = len(mu)
    constant = log_gamma((nu + n) / 2) - log_gamma(nu / 2) - n * mp.log(nu * mp.pi) / 2
    rest = (nu + n) * mp.log1p(distance(value, mu, cov) / nu) / 2
    return constant - log_det(cov) / 2 - rest


def dirichlet(value: Vector, a: Vector) -> Any:
    """Return the log-density of shares."""
    logs = ((k - 1) * mp.log(x) - log_gamma(k) for x, k in zip(value, a, strict=True))
    return log_gamma(mp.fsum(a)) + mp.fsum(logs)


def multinomial(value: Vector, n: Any, p: Vector) -> Any:
    """Return the log-probability of counts."""
    product = mp.factorial(n)
    for k, share in zip(value, p, strict=True):
        product *= share**k / mp.factorial(k)
    return mp.log(product)


def dirichlet_multinomial(value: Vector, n: Any, a: Vector) -> Any:
    """Return the log-probability of counts whose shares are drawn, too."""
    product = mp.factorial(n) / mp.rf(mp.fsum(a), n)
    for k, weight in zip(value, a, strict=True):
        product *= mp.rf(weight, k) / mp.factorial(k)
    return mp.log(product)


def wishart(value: Any, nu: Any, v: Any) -> Any:
    """Return the log-density of a covariance."""
    n = v.rows
    trace = mp.fsum((mp.inverse(v) * value)[i, i] for i in range(n))
    constant = nu * n * mp.log(2) / 2 + n * (n - 1) * mp.log(mp.pi) / 4
    constant += mp.fsum(log_gamma((nu - i) / 2) for i in range(n))
    return ((nu - n - 1) * log_det(value) - trace - nu * log_det(v)) / 2 - constant


def lkj_constant(n: int, eta: Any) -> Any:
    """Return the constant of theorem 5 of Lewandowski, Kurowicka and Joe (2009)."""
    total = mp.mpf(0)
    for k in range(1, n):
        shape = eta + mp.mpf(n - k - 1) / 2
        total += (2 * eta - 2 + n - k) * (n - k) * mp.log(2)
        total += (n - k) * mp.log(mp.beta(shape, shape))
    return total


def lkj_corr(value: Any, eta: Any) -> Any:
    """Return the log-density of a correlation matrix."""
    return (eta - 1) * log_det(value) - lkj_constant(value.rows, eta)


def lkj_cholesky(value: Any, eta: Any) -> Any:
    """Return the log-density of the factor of a correlation matrix."""
    n = value.rows
    powers = (n - 1 - i + 2 * (eta - 1) for i in range(n))
    logs = (power * mp.log(value[i, i]) for i, power in enumerate(powers))
    return mp.fsum(logs) - lkj_constant(n, eta)


def log_normal_density(x: Any, mu: Any, sigma: Any) -> Any:
    """Return the log-density of a normal number."""
    return -(((x - mu) / sigma) ** 2) / 2 - mp.log(sigma * mp.sqrt(2 * mp.pi))


def random_walk(value: Vector, mu: Any, sigma: Any, init_mu: Any, init_sigma: Any) -> Any:
    """Return the log-density of a sum of normal steps."""
    steps = (log_normal_density(b - a, mu, sigma) for a, b in pairwise(value))
    return log_normal_density(value[0], init_mu, init_sigma) + mp.fsum(steps)


def auto_regression(value: Vector, rho: Vector, sigma: Any) -> Any:
    """Return the log-density of a series given its first values."""
    k = len(rho)
    return mp.fsum(
        log_normal_density(value[t], mp.fdot(rho, value[t - k : t][::-1]), sigma)
        for t in range(k, len(value))
    )


def garch(value: Vector, omega: Any, alpha: Any, beta: Any, initial_vol: Any) -> Any:
    """Return the log-density of a series whose variance follows from the values before."""
    total, variance = mp.mpf(0), initial_vol**2
    for x in value:
        total += log_normal_density(x, 0, mp.sqrt(variance))
        variance = omega + alpha * x**2 + beta * variance
    return total


VECTORS: dict[str, Form] = {
    "MvNormal": mv_normal,
    "MvStudentT": mv_student_t,
    "Dirichlet": dirichlet,
    "Multinomial": multinomial,
    "DirichletMultinomial": dirichlet_multinomial,
    "Categorical": lambda value, p: mp.log(p[int(value)]),
    "Wishart": wishart,
    "LKJCorr": lkj_corr,
    "LKJCholesky": lkj_cholesky,
    "GaussianRandomWalk": random_walk,
    "AR": auto_regression,
    "GARCH11": garch,
}
"""Log-densities of vectors, matrices and series."""


def sigmoid(x: Any) -> Any:
    """Return the logistic function."""
    return 1 / (1 + mp.exp(-x))


def ordered(x: Vector) -> list[Any]:
    """Return increasing numbers."""
    return [x[0] + mp.fsum(map(mp.exp, x[1 : i + 1])) for i in range(len(x))]


def gaps(y: Vector) -> list[Any]:
    """Return the first number and the logarithms of differences."""
    return [y[0], *(mp.log(b - a) for a, b in pairwise(y))]


def softmax(x: Vector) -> list[Any]:
    """Return shares of numbers whose last one has them sum to zero."""
    powers = [mp.exp(t) for t in (*x, -mp.fsum(x))]
    return [p / mp.fsum(powers) for p in powers]


def centered_logs(y: Vector) -> list[Any]:
    """Return logarithms without their mean, and without the last one."""
    logs = [mp.log(t) for t in y]
    return [t - mp.fsum(logs) / len(y) for t in logs[:-1]]


def zero_sum(x: Vector) -> list[Any]:
    """Return numbers with the sum zero and the length of the vector: a reflection."""
    n, total = mp.mpf(len(x) + 1), mp.fsum(x)
    shift = total / (mp.sqrt(n) + n)
    return [*(t - shift for t in x), -total / mp.sqrt(n)]


def reduced(y: Vector) -> list[Any]:
    """Return the inverse of `zero_sum`."""
    n = mp.mpf(len(y))
    total = -y[-1] * mp.sqrt(n)
    return [t + total / (mp.sqrt(n) + n) for t in y[:-1]]


def on_diagonal(x: Vector, function: Form) -> list[Any]:
    """Apply a function to the diagonal of a lower triangle by rows."""
    ends = {i * (i + 3) // 2 for i in range(len(x))}
    return [function(t) if i in ends else t for i, t in enumerate(x)]


def triangle(x: Vector) -> Any:
    """Return the lower triangle of its rows."""
    n = int((8 * len(x) + 1) ** 0.5 - 1) // 2
    factor = mp.zeros(n)
    for i in range(n):
        for j in range(i + 1):
            factor[i, j] = x[i * (i + 1) // 2 + j]
    return factor


def rows(matrix: Any, offset: int = 0) -> list[Any]:
    """Return the elements of a lower triangle by rows, less an offset of the diagonal."""
    return [matrix[i, j] for i in range(matrix.rows) for j in range(i + 1 - offset)]


def covariance(x: Vector) -> Any:
    """Return the covariance of a factor with logarithms on its diagonal."""
    factor = triangle(on_diagonal(x, mp.exp))
    return factor * factor.T


def spiral(count: int) -> dict[tuple[int, int], int]:
    """Return the places in a strict lower triangle of numbers in the order of TensorFlow."""
    k = int((8 * count + 1) ** 0.5 - 1) // 2
    order = [*range(k, count), *reversed(range(count))]
    return {(i + 1, j): order[i * k + j] for i in range(k) for j in range(i + 1)}


def correlation_factor(x: Vector) -> Any:
    """Return the triangle with ones on the diagonal, its rows divided by their lengths."""
    places = spiral(len(x))
    n = max(i for i, _ in places) + 1
    factor = mp.eye(n)
    for (i, j), k in places.items():
        factor[i, j] = x[k]
    for i in range(n):
        length = mp.norm(factor[i, :])
        for j in range(i + 1):
            factor[i, j] /= length
    return factor


def correlation_numbers(factor: Any) -> list[Any]:
    """Return the inverse of `correlation_factor`."""
    n = factor.rows
    places = spiral(n * (n - 1) // 2)
    found = {k: factor[i, j] / factor[i, i] for (i, j), k in places.items()}
    return [found[k] for k in range(len(found))]


BIJECTORS: dict[str, tuple[Form, Form]] = {
    "Log": (mp.log, mp.exp),
    "LogExpM1": (lambda y: mp.log(mp.expm1(y)), lambda x: mp.log1p(mp.exp(x))),
    "LogOdds": (lambda y: mp.log(y / (1 - y)), sigmoid),
    "Circular": (lambda y: y, lambda x: mp.atan2(mp.sin(x), mp.cos(x))),
    "Interval": (
        lambda y, a, b: mp.log((y - a) / (b - y)),
        lambda x, a, b: a + (b - a) * sigmoid(x),
    ),
    "LowerBound": (lambda y, a: mp.log(y - a), lambda x, a: a + mp.exp(x)),
    "UpperBound": (lambda y, b: mp.log(b - y), lambda x, b: b - mp.exp(x)),
    "Ordered": (gaps, ordered),
    "PositiveOrdered": (
        lambda y: [mp.log(y[0]), *gaps(y)[1:]],
        lambda x: ordered([mp.exp(x[0]), *x[1:]]),
    ),
    "Descending": (lambda y: gaps(y[::-1]), lambda x: ordered(x)[::-1]),
    "Simplex": (centered_logs, softmax),
    "SumTo1": (lambda y: y[:-1], lambda x: [*x, 1 - mp.fsum(x)]),
    "ZeroSum": (reduced, zero_sum),
    "CholeskyCovPacked": (
        lambda y: on_diagonal(y, mp.log),
        lambda x: on_diagonal(x, mp.exp),
    ),
    "CholeskyCov": (lambda y: on_diagonal(rows(mp.cholesky(y)), mp.log), covariance),
    "CholeskyCorr": (correlation_numbers, correlation_factor),
}
"""Both directions of bijectors."""


def log_jacobian(name: str, x: Any, *parameters: Any) -> Any:
    """Return the logarithm of the volume of a small cube of real numbers, by central differences.

    Coordinates are those of the value, of its strict lower triangle for factors, all but the last
    of shares. Other directions have a sum of squares, as for a vector whose sum is zero.
    """
    inverse = BIJECTORS[name][1]
    if not isinstance(x, list):
        return mp.chop(mp.log(abs(mp.diff(lambda t: inverse(t, *parameters), x))), 1e-20)
    step = mp.mpf(10) ** (-mp.mp.dps // 3)

    def coordinates(at: list[Any]) -> list[Any]:
        y = inverse(at)
        if isinstance(y, mp.matrix):
            return rows(y, offset=int(name == "CholeskyCorr"))
        return y[:-1] if name in ("Simplex", "SumTo1") else y

    columns = []
    for i in range(len(x)):
        up, down = ([*x[:i], x[i] + h, *x[i + 1 :]] for h in (step, -step))
        ends = zip(coordinates(up), coordinates(down), strict=True)
        columns.append([(b - a) / (2 * step) for b, a in ends])
    jacobian = mp.matrix(columns)
    return mp.chop(log_det(jacobian * jacobian.T) / 2, 1e-20)


def _qr(a: Any) -> tuple[Any, Any]:
    return mp.qr(a, mode="skinny")


MATRICES: dict[str, Form] = {
    "Cholesky": mp.cholesky,
    "SolveTriangular": lambda a, b: mp.inverse(a) * b,
    "SolveTriangularTransposed": lambda a, b: mp.inverse(a.T) * b,
    "CholeskySolve": lambda a, b: mp.inverse(a * a.T) * b,
    "Solve": lambda a, b: mp.inverse(a) * b,
    "Inverse": mp.inverse,
    "LogAbsDet": lambda a: (mp.sign(mp.det(a)), log_det(a)),
    "QR": _qr,
    "Eigh": mp.eigsy,
    "SVD": mp.svd_r,
    "Expm": mp.expm,
}
"""Functions of matrices."""
