"""Draws of predictors have the moments of PyMC's posterior predictive, between outputs too."""

from collections.abc import Callable, Iterator

import numpy as np
import pytensor
import pytest

pm = pytest.importorskip("pymc")
pmd = pytest.importorskip("pymc.dims")
arviz = pytest.importorskip("arviz")

import pytensor.tensor as pt  # noqa: E402
from pytensor.compile.builders import OpFromGraph  # noqa: E402

from pytensor_onnx import ArgumentError  # noqa: E402
from pytensor_onnx.pymc import export_predictor  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")
N = 1500
RNG = np.random.default_rng(36)
POSTERIOR = {
    "b": RNG.normal(2, 0.3, (1, N)),
    "s": 0.5 + RNG.random((1, N)),
    "w": RNG.dirichlet([4, 6], (1, N)),
    "y_unobserved": RNG.normal(7, 1, (1, N, 1)),
    "g": RNG.normal([0.0, 1.0, 2.0], 0.2, (1, N, 3)),
}
FORMS: dict[str, tuple[Callable[[], None], list[str], list[str]]] = {}
QUICK = {
    "observed_parents",
    "two_children_of_one_observed_parent",
    "sizes_of_data",
    "discrete",
    "one_generator_for_all",
    "custom_distribution",
}


@pytest.fixture(autouse=True)
def without_compiler() -> Iterator[None]:
    with pytensor.config.change_flags(cxx="", mode="FAST_COMPILE"):
        yield


def form(*outputs: str, sample_vars: tuple[str, ...] = ()) -> Callable:
    """Register a function that writes a model."""

    def register(write: Callable[[], None]) -> Callable[[], None]:
        FORMS[write.__name__] = write, list(outputs), list(sample_vars)
        return write

    return register


@form("x", "y", "z")
def observed_parents() -> None:
    x = pm.Normal("x", 0, 1, observed=np.zeros(3))
    y = pm.Normal("y", pm.Normal("b") * x, 0.1, observed=np.zeros(3))
    pm.Normal("z", y + x, 0.2, observed=np.zeros(3))


@form("u", "v", "mean")
def two_children_of_one_observed_parent() -> None:
    x = pm.Gamma("x", 2, 1, observed=1.0)
    mean = pm.Deterministic("mean", pm.math.log(x) + pm.Normal("b"))
    pm.Normal("u", mean, 0.3, observed=np.zeros(2))
    pm.Normal("v", -mean, pm.HalfNormal("s"), observed=0.0)


@form("x", "y")
def outputs_of_no_posterior_draw() -> None:
    pm.Normal("b")
    x = pm.Exponential("x", 1, observed=np.ones(2))
    pm.Normal("y", x, x, observed=np.zeros(2))


@form("scale", "y", "twice", sample_vars=("scale", "y"))
def resampled_without_parents() -> None:
    scale = pm.HalfNormal("scale", 1)
    y = pm.Normal("y", pm.Normal("b"), scale, shape=2)
    pm.Deterministic("twice", 2 * y[0] - scale)


@form("effect", "y", sample_vars=("effect",))
def new_groups_with_observed_parent() -> None:
    x = pm.Normal("x", 1, 0.5, observed=np.zeros(3))
    effect = pm.Normal("effect", pm.Normal("b"), pm.HalfNormal("s"), shape=2)
    pm.Normal("y", effect[np.array([0, 1, 0])] * x, 0.1, observed=np.zeros(3))


@form("x", "y")
def sizes_of_data() -> None:
    d = pm.Data("d", np.array([0.0, 1.0, 3.0]))
    x = pm.Normal("x", d, 1, shape=d.shape, observed=np.zeros(3))
    e = pm.Normal("e", 0, 2, shape=d.shape[0], observed=np.zeros(3))
    pm.Normal("y", pm.Normal("b") * x + e, 0.1, shape=d.shape, observed=np.zeros(3))


@form("count", "hits", "kind", "y")
def discrete() -> None:
    count = pm.Poisson("count", 6, observed=np.array([3, 4]))
    pm.Binomial("hits", count, pm.math.invlogit(pm.Normal("b")), observed=np.array([1, 2]))
    kind = pm.Categorical("kind", [0.2, 0.3, 0.5], observed=1)
    pm.Normal("y", pm.Normal("g", shape=3)[kind], 0.1, observed=0.0)


@form("x", "p", "k", "y")
def multivariate() -> None:
    x = pm.MvNormal("x", np.zeros(2), np.array([[1, 0.6], [0.6, 2]]), observed=np.zeros(2))
    p = pm.Dirichlet("p", np.array([2.0, 3.0]), observed=np.array([0.5, 0.5]))
    pm.Multinomial("k", 5, p, observed=np.array([2, 3]))
    cov = pm.HalfNormal("s") ** 2 * np.eye(2)
    pm.MvNormal("y", x, cov, observed=np.zeros((2, 2)))


@form("x", "y")
def one_generator_for_all() -> None:
    rng = pt.random.shared_rng(seed=1)
    x = pm.Normal.dist(0, 1, size=2, rng=rng)
    e = pm.Normal.dist(0, 1, size=2, rng=x.owner.outputs[0])
    pm.Deterministic("x", x)
    pm.Normal("y", pm.Normal("b") + x + 2 * e, 0.1, observed=np.zeros(2))


@form("y", "y_observed")
def missing_observations() -> None:
    x = pm.Normal("x", 0, 1, observed=np.zeros(3))
    pm.Normal("y", x + pm.Normal("b"), 0.5, observed=np.array([0.0, np.nan, 1.0]))


def drifting(start: pt.TensorVariable, scale: pt.TensorVariable, size: object) -> object:
    return start + pm.Normal.dist(0, scale, size=(3,)).cumsum()


@form("x", "y", "z")
def custom_distribution() -> None:
    x = pm.Normal("x", 0, 1, observed=0.0)
    y = pm.CustomDist("y", x, 0.5, dist=drifting, signature="(),()->(n)", observed=np.zeros(3))
    pm.Normal("z", y * pm.Normal("b"), 0.1, observed=np.zeros(3))


def walking(start: pt.TensorVariable, rho: pt.TensorVariable, size: object) -> object:
    def step(x: pt.TensorVariable, rng: object, rho: pt.TensorVariable) -> tuple:
        after, e = pm.Normal.dist(0, 0.3, rng=rng).owner.outputs
        return rho * x + e, after

    path, _ = pytensor.scan(
        step,
        outputs_info=[start, pt.random.shared_rng(seed=3)],
        non_sequences=[rho],
        n_steps=3,
        return_updates=False,
    )
    return path


@form("x", "y", "z")
def loop_in_a_custom_distribution() -> None:
    x = pm.Normal("x", 1, 1, observed=0.0)
    rho = 0.4 * pm.Normal("b")
    y = pm.CustomDist("y", x, rho, dist=walking, signature="(),()->(n)", observed=np.zeros(3))
    pm.Normal("z", y[2], 0.1, observed=0.0)


@form("x", "spread", "y")
def named_dimensions() -> None:
    pm.modelcontext(None).add_coords({"place": [0, 1, 2], "time": [0, 1]})
    d = pmd.Data("d", np.array([0.0, 1.0, 3.0]), dims="place")
    zeros = pmd.as_xtensor(np.zeros((3, 2)), dims=("place", "time"))
    x = pmd.Normal("x", d, 1, observed=zeros.isel(time=0))
    spread = pmd.Deterministic("spread", pmd.math.exp(x - x.mean("place")))
    loc = pmd.Normal("g", dims="place") * x + pmd.Normal("b")
    pmd.Normal("y", loc, 0.1 + spread.mean(), observed=zeros)


@form("x", "path")
def time_series() -> None:
    x = pm.Normal("x", 1, 1, observed=0.0)
    start = pm.Normal.dist(x, 0.1)
    rho = 0.4 * pm.Normal("b")
    pm.AR("path", [rho], 0.3, init_dist=start, steps=3, observed=np.zeros(4))


@form("x", "y")
def mixtures() -> None:
    x = pm.NormalMixture("x", [0.3, 0.7], [-1, 2], 0.3, observed=np.zeros(2))
    parts = [pm.Normal.dist(x, 0.1), pm.Laplace.dist(0, 1)]
    pm.Mixture("y", pm.Dirichlet("w", np.ones(2)), parts, observed=np.zeros(2))


@form("x", "y", "z")
def transformed() -> None:
    x = pm.Censored("x", pm.Normal.dist(0, 1), -0.5, 1, observed=np.zeros(2))
    y = pm.Truncated("y", pm.Gamma.dist(2, 1), upper=3, observed=np.ones(2))
    pm.ZeroSumNormal(
        "z", pm.HalfNormal("s") + pm.math.abs(x).sum() + y[0], shape=3, observed=np.zeros(3)
    )


@form("noise", "y")
def graphs_in_an_operation() -> None:
    loc, rng = pt.vector("loc", shape=(2,)), pt.random.shared_rng(seed=2)
    after, x = pt.random.normal(loc, 1, rng=rng, return_next_rng=True)
    noise = OpFromGraph([rng, loc], [after, x])(rng, np.array([0.0, 5.0]))[1]
    pm.Deterministic("noise", noise)
    pm.Normal("y", noise * pm.Normal("b"), 0.1, observed=np.zeros(2))


def moments(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and products of deviations of rows, and their standard errors."""
    deviations = values - values.mean(axis=0)
    products = (deviations[:, :, None] * deviations[:, None]).reshape(len(values), -1)
    terms = np.concatenate([values, products], axis=1)
    return terms.mean(axis=0), terms.std(axis=0) / np.sqrt(len(values))


@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in FORMS]
)
@pytest.mark.slow
def test_moments_are_those_of_the_posterior_predictive(name: str) -> None:
    write, outputs, sample_vars = FORMS[name]
    with pm.Model() as model:
        write()
    free = {v.name for v in model.free_RVs}
    posterior = {k: v for k, v in POSTERIOR.items() if k in free}
    program = export_predictor(
        model, posterior, outputs=outputs, sample_vars=sample_vars, verify=False
    )
    data = {v.name: v.get_value() for v in model.data_vars}
    found = program(**data, seed=5)
    with model:
        tree = pm.sample_posterior_predictive(
            arviz.from_dict({"posterior": posterior}),
            var_names=outputs,
            progressbar=False,
            random_seed=4,
        )
    expected = [tree.posterior_predictive[k].values.reshape(N, -1) for k in outputs]
    got, got_error = moments(np.concatenate([x.reshape(N, -1) for x in found], axis=1))
    want, want_error = moments(np.concatenate(expected, axis=1).astype("float64"))
    error = np.sqrt(got_error**2 + want_error**2)
    assert np.all(abs(got - want) <= 5 * error + 1e-9), (got, want)


def test_variables_that_steps_would_draw_anew_are_refused():
    with pm.Model() as model:
        shift = pm.Normal("shift")
        path = pytensor.scan(lambda x: x + shift, pt.ones(3), return_updates=False)
        pm.Deterministic("path", path)
    with pytest.raises(ArgumentError, match=r"'shift'.*non_sequences=\[shift\]"):
        export_predictor(model, {"shift": np.zeros((1, 4))}, outputs="path")
    with pm.Model() as model:
        shift = pm.Normal("shift")
        path = pytensor.scan(
            lambda x, shift: x + shift, pt.ones(3), non_sequences=[shift], return_updates=False
        )
        pm.Deterministic("path", path)
    predict = export_predictor(model, {"shift": np.arange(4.0)[None]}, outputs={"path": "draws"})
    (paths,) = predict()
    np.testing.assert_array_equal(paths, np.arange(1.0, 5)[:, None] * np.ones(3))
