"""A low-rank metric is the geometric mean of covariances, and makes trajectories short."""

import numpy as np
import pytensor.tensor as pt
import pytest
from scipy import linalg

pm = pytest.importorskip("pymc")

from arviz_stats.base import array_stats  # noqa: E402

from pytensor_onnx import ArgumentError, compile_onnx  # noqa: E402
from pytensor_onnx.pymc import export_sampler, low_rank, sample  # noqa: E402
from pytensor_onnx.pymc.low_rank import Points, Updates, correction_of, with_point  # noqa: E402
from pytensor_onnx.pymc.nuts import Correction  # noqa: E402
from pytensor_onnx.pymc.warmup import schedule  # noqa: E402

SIZE = 6
RNG = np.random.default_rng(5)
FACTORS = RNG.normal(size=(SIZE, 2))
COVARIANCE = np.diag(RNG.uniform(0.1, 0.3, SIZE) ** 2) + FACTORS @ FACTORS.T
"""Two directions have most of the variance."""


def correlated(covariance: np.ndarray = COVARIANCE) -> pm.Model:
    with pm.Model() as model:
        pm.MvNormal("x", np.zeros(len(covariance)), cov=covariance)
    return model


def computed(draws, gradients, scale, row, count):
    """Return the correction as a matrix, for all rows of the points in any order."""
    size = len(scale)
    rank = min(size, low_rank.RANK)
    names = [pt.matrix("x", shape=draws.shape), pt.matrix("g", shape=draws.shape)]
    names += [pt.vector("s", shape=(size,)), pt.lscalar("row"), pt.lscalar("count")]
    updates = Updates(pt.constant(True), *names[3:])
    now = Correction(pt.zeros((size, rank)), pt.ones(rank))
    found = correction_of(Points(*names[:2]), names[2], updates, now)
    vectors, stretches = compile_onnx(names, list(found))(draws, gradients, scale, row, count)
    return np.eye(size) + (vectors * stretches) @ vectors.T, vectors, stretches


def expected(draws, gradients, scale):
    """Return the square root of the geometric mean, with small eigenvalues as one."""
    size = len(scale)
    first, second = (
        (x - x.mean(axis=0)).T @ (x - x.mean(axis=0)) / 1e-5 + np.eye(size)
        for x in (draws / scale, gradients * scale)
    )
    root = linalg.sqrtm(second).real
    inverse = np.linalg.inv(root)
    mean = inverse @ linalg.sqrtm(root @ first @ root).real @ inverse
    values, vectors = np.linalg.eigh(mean)
    roots = np.where((values > 2) | (values < 0.5), np.sqrt(values), 1.0)
    return (vectors * roots) @ vectors.T


@pytest.mark.parametrize(("row", "count"), [(199, 200), (30, 200), (40, 60), (150, 12)])
def test_the_correction_is_the_root_of_the_geometric_mean_of_the_last_points(row, count):
    rng = np.random.default_rng(1)
    # Not normal, so that the two covariances differ.
    draws = rng.multivariate_normal(np.ones(SIZE), COVARIANCE, size=200)
    gradients = -np.tanh(draws @ np.linalg.inv(COVARIANCE)) + rng.normal(size=draws.shape)
    scale = rng.uniform(0.5, 2.0, SIZE)
    last = (row - np.arange(count)) % 200
    found, vectors, stretches = computed(draws, gradients, scale, row, count)
    np.testing.assert_allclose(found, expected(draws[last], gradients[last], scale), rtol=1e-6)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(SIZE), atol=1e-12)
    assert (stretches != 0).sum() >= 2


def test_points_of_a_normal_density_give_its_covariance():
    rng = np.random.default_rng(2)
    draws = rng.multivariate_normal(np.zeros(SIZE), COVARIANCE, size=200)
    scale = np.sqrt(np.diag(COVARIANCE))
    gradients = -draws @ np.linalg.inv(COVARIANCE)
    found, *_ = computed(draws, gradients, scale, 100, 30)
    inverse = np.linalg.inv(scale[:, None] * found)
    values = np.linalg.eigvalsh(inverse @ COVARIANCE @ inverse.T)
    assert values.min() > 0.499
    assert values.max() < 2.001
    assert np.linalg.cond(COVARIANCE / np.outer(scale, scale)) > 50


def test_many_coordinates_have_the_eigenvectors_that_matter_most(monkeypatch):
    """In the space of the points, and as many as there is room for."""
    rng, size = np.random.default_rng(3), 40
    monkeypatch.setattr(low_rank, "POINTS", 15)
    monkeypatch.setattr(low_rank, "RANK", 2)
    direction = np.zeros((2, size))
    direction[0, :3], direction[1, 5:8] = 1 / np.sqrt(3), 1 / np.sqrt(3)
    covariance = np.eye(size) + direction.T @ np.diag([400.0, -0.99]) @ direction
    draws = rng.multivariate_normal(np.zeros(size), covariance, size=15)
    gradients = -draws @ np.linalg.inv(covariance)
    found, vectors, stretches = computed(draws, gradients, np.ones(size), 14, 15)
    assert vectors.shape == (size, 2)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(2), atol=1e-10)
    assert sorted(np.sign(stretches)) == [-1, 1]
    wide, narrow = np.einsum("ki,ij,kj->k", direction, found, direction)
    assert wide > 8
    assert narrow < 0.4


def test_points_that_are_not_finite_change_nothing():
    draws = np.full((200, 3), np.nan)
    found, _, stretches = computed(draws, draws, np.ones(3), 0, 10)
    np.testing.assert_array_equal(found, np.eye(3))
    np.testing.assert_array_equal(stretches, 1.0)


def test_a_point_takes_the_place_of_one():
    points = Points(*(pt.constant(np.zeros((200, 2))) for _ in "xg"))
    x, gradient = pt.constant(np.array([1.0, 2.0])), pt.constant(np.array([3.0, 4.0]))
    after = with_point(points, x, gradient, pt.constant(7))
    draws, gradients = (v.eval(mode="FAST_COMPILE") for v in after)
    assert draws[7].tolist() == [1, 2]
    assert gradients[7].tolist() == [3, 4]
    assert not np.delete(draws, 7, axis=0).any()


def test_corrections_are_due_at_the_ends_of_windows_and_every_twenty_steps():
    n_warmup, n_steps = pt.lscalars("n_warmup", "n_steps")
    plan = schedule(n_warmup, n_steps, low_rank=True)
    call = compile_onnx([n_warmup, n_steps], [*plan.updates, plan.ends_window])
    is_due, row, count, ends = call(1000, 1100)
    due = np.flatnonzero(is_due) + 1
    wanted = {*range(10, 301, 10), *range(20, 850, 20)}
    assert due.tolist() == sorted(wanted)
    assert {*(np.flatnonzero(ends) + 1)} <= wanted
    assert row.tolist() == [step % 200 for step in range(1100)]
    # Of the present window and the one before it, at most 200, and without this at its end.
    assert count[[8, 9, 14, 299, 379, 380, 498, 499]].tolist() == [9, 10, 15, 10, 80, 81, 199, 120]
    assert not call(5, 8)[0].any()


def test_a_strongly_correlated_normal_has_its_moments_and_short_trajectories():
    found = {}
    for metric in ("diagonal", "low_rank"):
        program = export_sampler(correlated(), metric=metric, verify=False)
        names = [value.name for value in program.model.graph.outputs]
        results = program(seed=np.arange(4), warmup=600, draws=1000)
        found[metric] = dict(zip(names, results, strict=True))
    steps = {metric: x["n_steps"].mean() for metric, x in found.items()}
    assert steps["low_rank"] < 0.4 * steps["diagonal"]
    assert steps["low_rank"] < 6
    drawn = found["low_rank"]
    assert not drawn["diverging"].any()
    for i, x in enumerate(np.moveaxis(drawn["x"], -1, 0)):
        assert array_stats.rhat(x) < 1.01
        assert array_stats.ess(x) > 1000
        assert abs(x.mean()) < 4 * array_stats.mcse(x)
        error = array_stats.mcse(x, method="sd")
        assert abs(x.std() - np.sqrt(COVARIANCE[i, i])) < 4 * error


def test_chains_go_on_from_a_state_with_the_same_bits():
    program = export_sampler(correlated(), state=True, metric="low_rank")
    names = [value.name for value in program.model.graph.outputs]
    width = 3 * SIZE + 3 + SIZE * (SIZE + 1)

    def call(draws, state):
        results = program(seed=[1, 2], warmup=150, draws=draws, state=state)
        return dict(zip(names, results, strict=True))

    whole, first = (call(draws, np.zeros((0, width))) for draws in (30, 11))
    second = call(19, first["next_state"])
    together = np.concatenate([first["x"], second["x"]], axis=1)
    np.testing.assert_array_equal(together, whole["x"])
    np.testing.assert_array_equal(second["next_state"], whole["next_state"])
    assert second["n_steps"].mean() < 8


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["pytensor_onnx", "nutpie"])
def test_sample_takes_the_metric(sampler):
    if sampler == "nutpie":
        pytest.importorskip("nutpie")
    settings = {"chains": 2, "cores": 1, "random_seed": 1, "progressbar": False, "quiet": True}
    trace = sample(
        500, tune=500, model=correlated(), metric="low_rank", nuts_sampler=sampler, **settings
    )
    assert trace.sample_stats["n_steps"].mean() < 6
    with pytest.raises(ArgumentError, match="low-rank"):
        sample(model=correlated(), metric="low_rank", nuts_sampler="pymc")


@pytest.mark.slow
def test_the_size_of_the_point_may_depend_on_the_data():
    with pm.Model() as model:
        y = pm.Data("y", RNG.normal(size=3))
        pm.Normal("seen", pm.Normal("mu") + pm.Normal("effect", shape=y.shape), observed=y)
    program = export_sampler(model, metric="low_rank", verify=False, unconstrained=True)
    for size in (3, 5):
        point = program(seed=[1], warmup=100, draws=20, y=np.ones(size))[2]
        assert point.shape == (1, 20, size + 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"metric": "dense"}, "metric"), ({"metric": "low_rank", "lockstep": True}, "lockstep")],
)
def test_errors_name_the_argument(options, message):
    with pytest.raises(ArgumentError, match=message):
        export_sampler(correlated(), **options)
