"""Log-likelihoods of linear models by few squares are those of PyMC."""

from collections.abc import Callable, Iterator

import numpy as np
import pytensor
import pytest

pm = pytest.importorskip("pymc")

import pytensor.tensor as pt  # noqa: E402
from hypothesis import given, strategies as st  # noqa: E402
from scipy import sparse  # noqa: E402

from pytensor_onnx import ONNXProgram  # noqa: E402
from pytensor_onnx.pymc import ModelGraph, export_logp, export_sampler  # noqa: E402
from pytensor_onnx.pymc.linear_likelihoods import residuals  # noqa: E402

N = 120
RNG = np.random.default_rng(11)
X = RNG.normal(size=(N, 4)) * [1, 10, 1e-3, 1] + [0, 3, 0, 1e3]
COUNTY, YEAR = RNG.integers(9, size=N), RNG.integers(3, size=N)
STATE = np.array([0, 0, 1, 1, 1, 2, 2, 0, 1])
Y = RNG.normal(size=N) + X[:, 0] - 2 * X[:, 2] + 0.1 * COUNTY


def observe(mean: pt.TensorVariable, observed: np.ndarray = Y) -> None:
    pm.Normal("y", mean, pm.HalfNormal("sigma"), observed=observed)


def matrix() -> None:
    observe(2.5 + X @ pm.Normal("b", shape=4))


def scalars() -> None:
    a, b = pm.Normal("a"), pm.Normal("b", shape=2)
    observe(a + b[0] * X[:, 0] - X[:, 1] * b[1] / 7 + 1e6, Y + 1e6)


def dependent_columns() -> None:
    joined = np.column_stack([X, X[:, 0] + X[:, 1], np.ones(N), np.zeros(N)])
    observe(pm.Normal("a") + pm.math.dot(joined, pm.Normal("b", shape=7)))


def groups() -> None:
    a = pm.Normal("a", pm.Normal("mean"), pm.HalfNormal("deviation"), shape=10)
    observe(a[COUNTY] + pm.Normal("b") * X[:, 0])


def slopes_of_groups() -> None:
    raw = pm.Normal("raw", shape=(2, 9))
    a, b = pm.Normal("mean") + raw[0] * 2, pm.math.exp(raw[1])
    observe(a[COUNTY] + b[COUNTY] * X[:, 1])


def nested_groups() -> None:
    observe(pm.Normal("c", shape=9)[COUNTY] + pm.Normal("s", shape=3)[STATE[COUNTY]])


def crossed_groups() -> None:
    observe(pm.Normal("c", shape=9)[COUNTY] + pm.Normal("t", shape=3)[YEAR] + X @ np.ones(4))


def constant_mean() -> None:
    pm.Normal("y", pm.Normal("a"), pm.HalfNormal("sigma", shape=1), observed=Y.reshape(12, 10))


def known_mean() -> None:
    observe(pt.exp(pt.constant(X[:, 0])))


def missing() -> None:
    observe(X @ pm.Normal("b", shape=4), np.where(X[:, 0] > 1, np.nan, Y))


def rows_and_columns() -> None:
    rows, columns = pm.Normal("rows", shape=8), pm.Normal("columns", shape=15)
    observe(rows[:, None] + columns[None], Y.reshape(8, 15))


MODELS = [
    *(matrix, scalars, dependent_columns, groups, slopes_of_groups, nested_groups, crossed_groups),
    *(constant_mean, known_mean, missing),
]


@pytest.fixture(autouse=True)
def without_compiler() -> Iterator[None]:
    with pytensor.config.change_flags(cxx="", mode="FAST_COMPILE"):
        yield


def build(write: Callable[[], None], **options) -> pm.Model:
    with pm.Model(**options) as model:
        write()
    return model


def points_of(model: pm.Model, n: int) -> list[np.ndarray]:
    size = ModelGraph(model).start.size
    return [0.7 * np.random.default_rng(i).normal(size=size) for i in range(n)]


def in_pymc(model: pm.Model, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    values, start = {}, 0
    for value in ModelGraph(model).continuous:
        size = value.start.size
        values[value.name] = point[start : start + size].reshape(value.start.shape)
        start += size
    return model.compile_logp()(values), model.compile_dlogp()(values)


def largest_constant(program: ONNXProgram) -> int:
    return max(x.const_value.size for x in program.model.graph.initializers.values())


@pytest.mark.filterwarnings("ignore:Data in y contains missing values")
@pytest.mark.parametrize("write", MODELS)
def test_densities_and_gradients_are_those_of_all_rows(write):
    model = build(write)
    program = export_logp(model, precision="float64")
    assert any("squares of y" in str(change) for change in program.conversion.changes)
    for point in points_of(model, 3):
        logp, gradient = program(point)
        expected, of_rows = in_pymc(model, point)
        np.testing.assert_allclose(logp, expected, rtol=1e-12)
        np.testing.assert_allclose(gradient, of_rows, rtol=1e-10, atol=1e-12 * abs(of_rows).max())


def weighted() -> None:
    pm.Normal("y", X @ pm.Normal("b", shape=4), pm.HalfNormal("sigma", shape=N), observed=Y)


def not_linear() -> None:
    observe(pm.math.exp(X[:, :1] @ pm.Normal("b", shape=1)))


def product_of_parameters() -> None:
    observe(pm.Normal("a", shape=9)[COUNTY] * pm.Normal("b") * X[:, 0])


def of_many_parameters() -> None:
    observe(pm.Normal("a", shape=N))


def of_discrete_variables() -> None:
    observe(X @ pm.Normal("b", shape=4) + X[:, 0] * pm.Poisson("n", 3))


def of_drawn_rows() -> None:
    x, y = pm.Minibatch(X, Y, batch_size=40)
    pm.Normal("y", x @ pm.Normal("b", shape=4), 1.0, observed=y)


def of_loops() -> None:
    b = pm.Normal("b")
    sums = pytensor.scan(lambda x, y: x * b + y, [X[:, 0]], [pt.zeros(())], return_updates=False)
    observe(sums)


def with_data() -> None:
    observe(pm.Data("x", X) @ pm.Normal("b", shape=4))


def with_data_observed() -> None:
    observe(X @ pm.Normal("b", shape=4), pm.Data("z", Y))


@pytest.mark.parametrize(
    "write",
    [
        *(weighted, not_linear, product_of_parameters, of_many_parameters, of_discrete_variables),
        *(of_drawn_rows, of_loops, with_data, with_data_observed, rows_and_columns),
    ],
)
def test_other_likelihoods_stay_as_they_are(write):
    assert not ModelGraph(build(write)).reduced


def test_stored_data_are_constants():
    for write in (with_data, with_data_observed):
        model = build(write)
        (advice,) = [x for x in export_logp(model).conversion.changes if "squares" in str(x)]
        assert str(advice) == "squares of y: data='stored' sums 4 in place of 120 rows"
        graph = ModelGraph(model, data="stored")
        assert [rv.name for rv in graph.reduced] == ["y"]
        program = export_logp(model, data="stored")
        (point,) = points_of(model, 1)
        np.testing.assert_allclose(program(point)[0], in_pymc(model, point)[0], rtol=1e-12)


def test_effects_of_thousands_of_rows_cost_as_many_squares_as_groups():
    county = np.random.default_rng(0).integers(50, size=5000)
    x = np.random.default_rng(1).normal(size=5000)

    def write() -> None:
        a, b = pm.Normal("a", shape=50), pm.Normal("b", shape=50)
        observe(a[county] + b[county] * x, x)

    program = export_logp(build(write))
    assert "sums of 5,000 rows are those of 100" in str(program.conversion)
    assert largest_constant(program) <= 100


def test_an_invalid_deviation_has_no_density():
    def write() -> None:
        pm.Normal("y", pm.Normal("a"), pm.Normal("sigma"), observed=Y)

    program = export_logp(build(write))
    assert program([0.1, -2.0])[0] == -np.inf
    assert np.isfinite(program([0.1, 2.0])[0])


def test_the_density_without_constants_has_the_same_gradient():
    model = build(groups)
    whole, part = (export_logp(model, propto=propto) for propto in (False, True))
    points = points_of(model, 2)
    differences = [whole(p)[0] - part(p)[0] for p in points]
    np.testing.assert_allclose(differences[0], differences[1], rtol=1e-10)
    np.testing.assert_allclose(whole(points[0])[1], part(points[0])[1], rtol=1e-12)


def test_terms_of_observations_are_those_of_all_rows():
    model = build(groups)
    program = export_logp(model, outputs=["logp", "pointwise", "logp_b"])
    (point,) = points_of(model, 1)
    logp, terms, _ = program(point)
    assert terms.shape == (N,)
    others = in_pymc(model, point)[0] - terms.sum()
    np.testing.assert_allclose(logp - terms.sum(), others, rtol=1e-10)


@pytest.mark.slow
def test_samplers_draw_the_posterior_of_all_rows():
    def write() -> None:
        b = pm.Normal("b", 0, 10, shape=4)
        pm.Normal("y", X / [1, 10, 1e-3, 1e3] @ b, 1.5, observed=Y)

    program = export_sampler(build(write))
    drawn = program(seed=[1, 2, 3, 4], warmup=500, draws=2000)[0].reshape(-1, 4)
    design = X / [1, 10, 1e-3, 1e3]
    covariance = np.linalg.inv(design.T @ design / 1.5**2 + np.eye(4) / 100)
    mean = covariance @ design.T @ Y / 1.5**2
    deviation = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose((drawn.mean(axis=0) - mean) / deviation, 0, atol=0.08)
    np.testing.assert_allclose(drawn.std(axis=0) / deviation, 1, atol=0.05)


@given(seed=st.integers(0, 10**6), n_leaves=st.integers(1, 4))
def test_squares_of_residuals_are_those_of_all_rows(seed, n_leaves):
    rng = np.random.default_rng(seed)
    n, matrices = 30, []
    for _ in range(n_leaves):
        k = int(rng.integers(1, 6))
        one_hot = np.eye(k)[rng.integers(k, size=n)]
        kinds = [one_hot, one_hot * rng.normal(size=(n, 1)), rng.normal(size=(n, k))]
        kinds += [np.ones((n, k)), np.zeros((n, k)), rng.integers(3, size=(n, k)).astype(float)]
        matrices.append(sparse.csc_matrix(kinds[rng.integers(len(kinds))] * 10 ** rng.normal()))
    target = rng.normal(size=n)
    rows, rest = residuals(matrices, target)
    weights = [rng.normal(size=m.shape[1]) for m in matrices]
    expected = target - sum(m @ w for m, w in zip(matrices, weights, strict=True))
    found = [rest]
    for row in rows:
        predicted = [b @ np.concatenate([weights[i] for i in at]) for at, b in row.blocks]
        found.append(np.linalg.norm(row.target - np.sum(predicted, axis=0)))
    np.testing.assert_allclose(np.linalg.norm(found), np.linalg.norm(expected), rtol=1e-11)
