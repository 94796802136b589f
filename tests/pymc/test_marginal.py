"""Discrete variables are summed out of densities, and drawn back by files of samplers."""

import gc
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

pm = pytest.importorskip("pymc")
pytest.importorskip("pymc_extras")

from pymc_extras.distributions import DiscreteMarkovChain  # noqa: E402
from pymc_extras.marginal import conditional, marginalize  # noqa: E402

from pytensor_onnx import ArgumentError  # noqa: E402
from pytensor_onnx.kernels.regions import region_of_all  # noqa: E402
from pytensor_onnx.pymc import (  # noqa: E402
    calibrate,
    export_advi,
    export_laplace,
    export_logp,
    export_pathfinder,
    export_predictor,
    export_sampler,
    export_smc,
    model_sampling,
    nutpie_model,
    predict,
    sample,
    to_datatree,
)
from pytensor_onnx.pymc.marginal import Marginalized  # noqa: E402
from tests.web.tapes import needs_tapes, run_in_node  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:There are multiple dependent variables")

RNG = np.random.default_rng(5)
Y = np.array([-2.1, -1.0, 0.3, 0.9, 1.8])
COUNTS = np.array([4, 5, 3, 6, 4, 1, 0, 2, 1, 1])
SERIES = np.array([0.2, -0.9, 1.4, 2.3, 1.1])


@dataclass
class Case:
    """A model, and the joint density of its discrete variable with all others, by SciPy.

    Attributes
    ----------
    build
        Function that returns the model.
    name
        The discrete variable.
    states
        All values of the discrete variable, on the first axis.
    joint
        Function of the free variables and of states that returns the log-density of each.
    """

    build: Callable[[], pm.Model]
    name: str
    states: np.ndarray
    joint: Callable[..., np.ndarray]

    def weights(self, draws: dict[str, np.ndarray]) -> np.ndarray:
        """Return the posterior probability of each state, given draws of one chain."""
        names = [name for name in draws if name != self.name]
        logs = np.array(
            [
                self.joint(**dict(zip(names, values, strict=True)), z=self.states)
                for values in zip(*(draws[name] for name in names), strict=True)
            ]
        )
        return np.exp(logs - logsumexp(logs, axis=1, keepdims=True))


def all_states(n: int, size: int) -> np.ndarray:
    return np.array(list(product(range(n), repeat=size)))


def mixture() -> pm.Model:
    with pm.Model(coords={"row": list("abcde")}) as model:
        w, mu, sigma = pm.Beta("w", 2, 3), pm.Normal("mu", [-1, 1], 2), pm.HalfNormal("sigma", 1)
        z = pm.Bernoulli("z", w, dims="row")
        pm.Normal("y", mu[z], sigma, observed=Y, dims="row")
    return model


def of_mixture(w: float, mu: np.ndarray, sigma: float, z: np.ndarray) -> np.ndarray:
    prior = stats.beta(2, 3).logpdf(w) + stats.norm([-1, 1], 2).logpdf(mu).sum()
    prior += stats.halfnorm(scale=1).logpdf(sigma)
    return prior + (stats.bernoulli(w).logpmf(z) + stats.norm(mu[z], sigma).logpdf(Y)).sum(axis=1)


def categories() -> pm.Model:
    with pm.Model() as model:
        w, mu = pm.Dirichlet("w", np.ones(3)), pm.Normal("mu", [-1, 0, 1], 2)
        z = pm.Categorical("z", w, shape=5)
        pm.Normal("y", mu[z], 0.7, observed=Y)
    return model


def of_categories(w: np.ndarray, mu: np.ndarray, z: np.ndarray) -> np.ndarray:
    prior = stats.dirichlet(np.ones(3)).logpdf(w) + stats.norm([-1, 0, 1], 2).logpdf(mu).sum()
    return prior + (np.log(w)[z] + stats.norm(mu[z], 0.7).logpdf(Y)).sum(axis=1)


def change_point() -> pm.Model:
    with pm.Model() as model:
        z = pm.DiscreteUniform("z", 2, 8)
        early, late = pm.Exponential("early", 1), pm.Exponential("late", 1)
        rate = pm.math.switch(z > np.arange(10), early, late)
        pm.Poisson("y", rate, observed=COUNTS)
    return model


def of_change_point(early: float, late: float, z: np.ndarray) -> np.ndarray:
    prior = stats.expon.logpdf(early) + stats.expon.logpdf(late) + stats.randint(2, 9).logpmf(z)
    rate = np.where(z[:, None] > np.arange(10), early, late)
    return prior + stats.poisson(rate).logpmf(COUNTS).sum(axis=1)


def chain() -> pm.Model:
    with pm.Model() as model:
        p, mu = pm.Dirichlet("p", np.ones((3, 3)) + np.eye(3)), pm.Normal("mu", [-1, 0, 1], 1)
        start = pm.Categorical.dist([0.5, 0.3, 0.2])
        z = DiscreteMarkovChain("z", P=p, init_dist=start, shape=(5,))
        pm.Normal("y", mu[z], 0.5, observed=SERIES)
    return model


def of_chain(p: np.ndarray, mu: np.ndarray, z: np.ndarray) -> np.ndarray:
    prior = stats.norm([-1, 0, 1], 1).logpdf(mu).sum()
    prior += sum(stats.dirichlet(np.ones(3) + np.eye(3)[i]).logpdf(p[i]) for i in range(3))
    path = np.log([0.5, 0.3, 0.2])[z[:, 0]] + np.log(p)[z[:, :-1], z[:, 1:]].sum(axis=1)
    return prior + path + stats.norm(mu[z], 0.5).logpdf(SERIES).sum(axis=1)


def one_way() -> pm.Model:
    """Two states, the second of which does not end."""
    with pm.Model() as model:
        stay, mu = pm.Beta("stay", 4, 1), pm.Normal("mu", [-1, 1], 1)
        p = pm.math.stack([pm.math.stack([stay, 1 - stay]), pm.math.stack([0.0, 1.0])])
        z = DiscreteMarkovChain("z", P=p, init_dist=pm.Categorical.dist([1.0, 0.0]), shape=(5,))
        pm.Normal("y", mu[z], 2.0, observed=SERIES)
    return model


def of_one_way(stay: float, mu: np.ndarray, z: np.ndarray) -> np.ndarray:
    prior = stats.beta(4, 1).logpdf(stay) + stats.norm([-1, 1], 1).logpdf(mu).sum()
    with np.errstate(divide="ignore"):
        path = np.log([1.0, 0.0])[z[:, 0]]
        path = path + np.log([[stay, 1 - stay], [0, 1]])[z[:, :-1], z[:, 1:]].sum(axis=1)
    return prior + path + stats.norm(mu[z], 2.0).logpdf(SERIES).sum(axis=1)


def zero_inflated() -> pm.Model:
    with pm.Model() as model:
        p, rate = pm.Beta("p", 1, 1), pm.Gamma("rate", 2, 1)
        z = pm.Bernoulli("z", p, shape=6)
        pm.Poisson("y", z * rate, observed=[0, 3, 0, 0, 1, 2])
    return model


def of_zero_inflated(p: float, rate: float, z: np.ndarray) -> np.ndarray:
    prior = stats.beta(1, 1).logpdf(p) + stats.gamma(2).logpdf(rate)
    seen = stats.poisson(z * rate).logpmf([0, 3, 0, 0, 1, 2])
    return prior + (stats.bernoulli(p).logpmf(z) + seen).sum(axis=1)


CASES = {
    "mixture": Case(mixture, "z", all_states(2, 5), of_mixture),
    "categories": Case(categories, "z", all_states(3, 5), of_categories),
    "change point": Case(change_point, "z", np.arange(2, 9), of_change_point),
    "chain": Case(chain, "z", all_states(3, 5), of_chain),
    "one-way chain": Case(one_way, "z", all_states(2, 5), of_one_way),
    "zero-inflated": Case(zero_inflated, "z", all_states(2, 6), of_zero_inflated),
}
each_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def called(program, **inputs: object) -> dict[str, np.ndarray]:
    names = [value.name for value in program.model.graph.outputs]
    return dict(zip(names, program(**inputs), strict=True))


@pytest.mark.few(2)
@each_case
def test_the_density_is_the_sum_over_all_states(case):
    model = marginalize(case.build(), [case.name])
    program = export_logp(model, inputs="named", space="constrained", verify=False)
    values = {
        rv.name: draw
        for rv, draw in zip(model.free_RVs, pm.draw(model.free_RVs, random_seed=1), strict=True)
    }
    logp, *_ = program(**values)
    expected = logsumexp(case.joint(**values, z=case.states))
    np.testing.assert_allclose(logp, expected, rtol=1e-9)
    unconstrained = export_logp(model, verify=False)
    start = model.initial_point()
    point = np.concatenate([np.ravel(start[v.name]) for v in model.value_vars])
    expected = model.compile_logp(mode="FAST_COMPILE")(start)
    np.testing.assert_allclose(unconstrained(point)[0], expected, rtol=1e-9)


@pytest.mark.slow
@each_case
def test_the_states_are_drawn_from_their_conditional_posterior(case):
    program = export_sampler(case.build(), probabilities=True, verify=False)
    drawn = called(program, seed=[3], warmup=200, draws=400)
    draws = {name: x[0] for name, x in drawn.items() if name in case.build().named_vars}
    weights = case.weights(draws)
    z, found = draws["z"], drawn["z_probabilities"][0]
    values = np.unique(case.states)
    of_value = case.states[..., None] == values
    expected = np.tensordot(weights, of_value.astype(float), 1)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-12)
    # Each state as a whole, not only its elements.
    rows = case.states.reshape(len(case.states), -1)
    index = (z.reshape(len(z), 1, -1) == rows).all(axis=-1)
    assert (index.sum(axis=1) == 1).all()
    assert (weights[index] > 0).all()
    variance = (weights * (1 - weights)).sum(axis=0)
    common = variance > 5
    assert common.any()
    errors = (index.sum(axis=0) - weights.sum(axis=0))[common] / np.sqrt(variance[common])
    assert np.abs(errors).max() < 4.5


@pytest.mark.slow
@each_case
def test_files_are_verified_and_agree_with_pymc_extras(case):
    model = case.build()
    summed = marginalize(model, ["z"])
    program = export_sampler(summed, probabilities=True, unconstrained=True)
    assert program.verification.verdict in ("equal", "close")
    drawn = called(program, seed=[1], warmup=100, draws=20)
    of_all = conditional(summed)
    logp = of_all.compile_logp(vars=[of_all["z"]], sum=False, mode="FAST_COMPILE")
    values = [str(v.name) for v in summed.value_vars]
    sizes = [summed.initial_point()[name] for name in values]
    least = case.states.min()
    for i, point in enumerate(drawn["point"][0]):
        parts = np.split(point, np.cumsum([x.size for x in sizes])[:-1])
        given = {k: p.reshape(x.shape) for k, p, x in zip(values, parts, sizes, strict=True)}
        z, chances = drawn["z"][0, i], drawn["z_probabilities"][0, i]
        (expected,) = logp({**given, "z": z})
        if "Markov" not in type(model["z"].owner.op).__name__:
            chosen = np.take_along_axis(chances, np.asarray(z - least)[..., None], -1)[..., 0]
            np.testing.assert_allclose(np.log(chosen), expected, rtol=1e-8, atol=1e-10)
        else:
            assert np.isfinite(expected)


def with_data(n: int = 5) -> pm.Model:
    """A mixture whose observations are an input, with deterministics of its components."""
    with pm.Model() as model:
        y = pm.Data("y_seen", Y[:n], dims="row")
        mu = pm.Normal("mu", [-1, 1], 1)
        z = pm.Bernoulli("z", 0.4, dims="row")
        mean = pm.Deterministic("mean", mu[z], dims="row")
        pm.Deterministic("share", z.mean())
        pm.Deterministic("gap", mu[1] - mu[0])
        pm.Normal("y", mean, 0.8, observed=y, dims="row")
    return model


@pytest.fixture(scope="module")
def mixture_of_data():
    return export_sampler(with_data(), probabilities=True, state=True, verify=False)


NEW = {"state": np.zeros((0, 9)), "warmup": 100, "y_seen": Y}


def chances(mu: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the posterior probability of the second component, by Bayes' rule."""
    first = 0.6 * stats.norm(mu[..., :1], 0.8).pdf(y)
    second = 0.4 * stats.norm(mu[..., 1:], 0.8).pdf(y)
    return second / (first + second)


@pytest.mark.parametrize("y", [Y, RNG.normal(0, 2, 9), Y[:1], Y[:0]], ids=len)
def test_components_follow_data_of_any_length(mixture_of_data, y):
    drawn = called(mixture_of_data, **NEW | {"y_seen": y}, seed=[1, 2], draws=50)
    assert drawn["z"].shape == (2, 50, len(y))
    expected = chances(drawn["mu"], y)
    np.testing.assert_allclose(drawn["z_probabilities"][..., 1], expected, rtol=1e-9)
    assert drawn["z_probabilities"].shape == (2, 50, len(y), 2)


def test_deterministics_follow_the_drawn_components(mixture_of_data):
    drawn = called(mixture_of_data, **NEW, seed=[1, 2], draws=30)
    mean = np.take_along_axis(drawn["mu"], drawn["z"], axis=-1)
    np.testing.assert_array_equal(drawn["mean"], mean)
    np.testing.assert_allclose(drawn["share"], drawn["z"].mean(axis=-1), rtol=1e-15)
    np.testing.assert_array_equal(drawn["gap"], drawn["mu"][..., 1] - drawn["mu"][..., 0])


def test_components_depend_on_the_seed_and_the_step_alone(mixture_of_data):
    def call(seed, draws, state=NEW["state"]):
        return called(mixture_of_data, **NEW | {"state": state}, seed=seed, draws=draws)

    whole, first = call([4, 5], 30), call([4, 5], 12)
    second = call([4, 5], 18, first["next_state"])
    together = np.concatenate([first["z"], second["z"]], axis=1)
    np.testing.assert_array_equal(together, whole["z"])
    assert (whole["z"][0] != whole["z"][1]).any()
    same = call([4, 4], 30)
    np.testing.assert_array_equal(same["z"][0], same["z"][1])
    # Numbers of one draw say nothing of those of the next.
    z, p = whole["z"], whole["z_probabilities"][..., 1]
    errors = (z - p) / np.sqrt(p * (1 - p))
    assert abs((errors[:, 1:] * errors[:, :-1]).mean()) < 5 / np.sqrt(errors.size)


def test_trees_have_the_dimensions_of_drawn_variables(mixture_of_data):
    model = with_data()
    results = mixture_of_data(**NEW, seed=[1, 2], draws=150)
    expected = {"z": ("row",), "mean": ("row",), "share": (), "z_probabilities": ("row", "z_value")}
    for given in (None, model):
        tree = to_datatree(mixture_of_data, results, given, compute_convergence_checks=False)
        for name, dims in expected.items():
            assert tree.posterior[name].dims == ("chain", "draw", *dims)


@pytest.mark.slow
def test_trees_of_a_model_whose_variables_are_summed_out_have_its_dimensions():
    without = marginalize(mixture(), ["z"])
    program = export_sampler(without, verify=False)
    results = program(seed=[1], warmup=10, draws=5)
    tree = to_datatree(program, results, without, compute_convergence_checks=False)
    assert tree.posterior["z"].dims == ("chain", "draw", "row")


@pytest.mark.slow
def test_variables_are_chosen_by_name():
    program = export_sampler(mixture(), variables=["z"], probabilities=True, verify=False)
    names = [value.name for value in program.model.graph.outputs]
    assert names[:2] == ["z", "z_probabilities"]
    assert "mu" not in names
    with pytest.raises(ArgumentError, match="did you mean z"):
        export_sampler(mixture(), variables=["zz"])


@pytest.mark.slow
def test_variables_that_no_other_depends_on_are_drawn_forward():
    with pm.Model() as model:
        w, rate = pm.Beta("w", 2, 2), pm.Gamma("rate", 2, 1)
        z = pm.Bernoulli("z", w, shape=3)
        pm.Poisson("y", rate * (1 + 4 * z), observed=[1, 2, 9])
        new = pm.Bernoulli("new", w)
        pm.Poisson("later", rate * (1 + 4 * new))
    found = Marginalized.of(model)
    assert [rv.name for rv in found.model.free_RVs] == ["w", "rate"]
    assert [*found.summed] == ["z"]
    drawn = called(export_sampler(model, verify=False), seed=[1], warmup=200, draws=2000)
    error = drawn["new"] - drawn["w"]
    assert abs(error.mean()) < 4 * error.std() / np.sqrt(2000)
    rate = drawn["rate"] * (1 + 4 * drawn["new"])
    scaled = (drawn["later"] - rate) / np.sqrt(rate)
    assert abs(scaled.mean()) < 4 / np.sqrt(2000)
    assert abs((scaled**2).mean() - 1) < 0.3


@pytest.mark.slow
def test_several_variables_are_drawn_from_their_joint_posterior():
    """The second variable depends on the first, and both on the data."""
    y = 1.3
    with pm.Model() as model:
        mu = pm.Normal("mu")
        first = pm.Bernoulli("first", 0.3)
        second = pm.Categorical("second", pm.math.switch(first, [0.2, 0.3, 0.5], [0.6, 0.3, 0.1]))
        pm.Normal("y", mu + first + second, 0.7, observed=y)
    program = export_sampler(model, probabilities=True, verify=False)
    drawn = called(program, seed=[2], warmup=200, draws=3000)
    prior = np.array([[0.7], [0.3]]) * [[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]]
    mean = drawn["mu"][0, :, None, None] + np.add.outer(np.arange(2), np.arange(3))
    joint = prior * stats.norm(mean, 0.7).pdf(y)
    joint /= joint.sum(axis=(1, 2), keepdims=True)
    np.testing.assert_allclose(drawn["first_probabilities"][0], joint.sum(axis=2), rtol=1e-9)
    given = joint[np.arange(3000), drawn["first"][0]]
    given /= given.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(drawn["second_probabilities"][0], given, rtol=1e-9)
    found = np.zeros((2, 3))
    np.add.at(found, (drawn["first"][0], drawn["second"][0]), 1)
    errors = (found - joint.sum(axis=0)) / np.sqrt((joint * (1 - joint)).sum(axis=0))
    assert np.abs(errors).max() < 4.5


@pytest.mark.slow
@pytest.mark.parametrize("build", [mixture, chain], ids=["mixture", "chain"])
def test_files_run_as_tapes_with_the_same_bits(build, tmp_path):
    program = export_sampler(build(), tmp_path / "model.onnx", verify=False)
    _, region = region_of_all(program.proto)
    assert region is not None
    needs_tapes()
    feeds = {"seed": np.arange(2), "warmup": np.array(50), "draws": np.array(30)}
    [found] = run_in_node(tmp_path / "model.onnx", tmp_path, feeds)
    for name, expected in called(program, **feeds).items():
        np.testing.assert_array_equal(found[name], expected, err_msg=name)


def loops_of(graph) -> list:
    """Return the bodies of all loops of a graph, those within others too."""
    found = []
    for node in graph.node:
        for body in (a.g for a in node.attribute if a.g.node):
            found += [body] * (node.op_type in ("Scan", "Loop")) + loops_of(body)
    return found


@pytest.mark.slow
def test_states_are_drawn_one_draw_after_another():
    """A loop over draws holds the filter and the draws of the states, and no steps of NUTS."""
    loops = loops_of(export_sampler(chain(), verify=False).proto.graph)
    assert 2 in [
        len(loops_of(x)) for x in loops if not {"Loop", "If"} & {y.op_type for y in x.node}
    ]


@pytest.mark.slow
def test_conjugate_variables_are_drawn_back_without_probabilities():
    y = np.array([1.0, 2.0, -1.0])
    with pm.Model() as model:
        x = pm.Normal("x", shape=3)
        pm.Normal("y", x, pm.HalfNormal("sigma"), observed=y)
    program = export_sampler(marginalize(model, ["x"]), probabilities=True, verify=False)
    drawn = called(program, seed=[1], warmup=200, draws=1000)
    assert "x_probabilities" not in drawn
    share = 1 / (1 + drawn["sigma"][0, :, None] ** 2)
    scaled = (drawn["x"][0] - share * y) / np.sqrt(1 - share)
    assert stats.kstest(scaled.ravel(), "norm").pvalue > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(("order", "shape"), [(2, (6,)), (1, (3, 4))], ids=["order 2", "batch"])
def test_chains_of_higher_order_and_several_chains_are_drawn(order, shape):
    """The emissions are nearly exact, so that the states are known."""
    states = RNG.integers(0, 2, shape)
    with pm.Model() as model:
        p = pm.Dirichlet("p", np.ones((2,) * (order + 1)))
        start = pm.Categorical.dist([0.5, 0.5])
        z = DiscreteMarkovChain("z", P=p, init_dist=start, n_lags=order, shape=shape)
        pm.Normal("y", z, 0.1, observed=states)
    drawn = called(
        export_sampler(model, probabilities=True, verify=False), seed=[1], warmup=50, draws=20
    )
    np.testing.assert_array_equal(drawn["z"], np.broadcast_to(states, (1, 20, *shape)))
    assert ("z_probabilities" in drawn) == (order == 1)


@pytest.mark.slow
def test_missing_values_have_rows_of_their_own():
    x, y = np.array([0, 1, 1, 0, 1]), np.array([-0.2, 1.1, 0.7, 0.4, 1.6])
    y_of_missing = np.array([0.1, 1.4])
    with pm.Model() as model:
        p, slope = pm.Beta("p", 1, 1), pm.Normal("slope")
        pm.Bernoulli("x", p, observed=x)
        missing = pm.Bernoulli("x_missing", p, shape=2)
        pm.Normal("y", slope * x, 0.5, observed=y)
        pm.Normal("y_missing", slope * missing, 0.5, observed=y_of_missing)
    drawn = called(
        export_sampler(model, probabilities=True, verify=False), seed=[1], warmup=100, draws=50
    )
    p, slope = drawn["p"][0, :, None], drawn["slope"][0, :, None]
    one = p * stats.norm(slope, 0.5).pdf(y_of_missing)
    zero = (1 - p) * stats.norm(0, 0.5).pdf(y_of_missing)
    found = drawn["x_missing_probabilities"][0, ..., 1]
    np.testing.assert_allclose(found, one / (one + zero), rtol=1e-9)


def test_initial_values_of_the_other_variables_stay():
    with pm.Model() as model:
        order = pm.distributions.transforms.ordered
        mu = pm.Normal("mu", 0, 3, shape=2, transform=order, initval=[-2.0, 2.0])
        z = pm.Bernoulli("z", 0.5, shape=5, initval=np.ones(5, int))
        pm.Normal("y", mu[z], 1, observed=Y)
    found = Marginalized.of(model).model.initial_point()
    np.testing.assert_allclose(found["mu_ordered__"], [-2.0, np.log(4.0)])
    assert model.rvs_to_initial_values[z] is not None, "the model itself is as it was"


def poisson() -> pm.Model:
    with pm.Model() as model:
        z = pm.Bernoulli("z", 0.5)
        pm.Normal("y", z + pm.Poisson("count", 2.0) + pm.Normal("mu"), 1, observed=1.0)
    return model


def sum_of_states() -> pm.Model:
    with pm.Model() as model:
        z = pm.Bernoulli("z", 0.5, shape=3)
        pm.Normal("y", z.sum() + pm.Normal("mu"), 1, observed=1.0)
    return model


def potential() -> pm.Model:
    with pm.Model() as model:
        z = pm.Bernoulli("z", 0.5)
        pm.Potential("near", -((z - pm.Normal("mu")) ** 2))
    return model


def missing_values() -> pm.Model:
    seen = np.ma.masked_equal([0, 1, 7], 7)
    with pm.Model() as model:
        with pytest.warns(pm.exceptions.ImputationWarning):
            x = pm.Bernoulli("x", 0.5, observed=seen)
        pm.Normal("y", pm.Normal("mu") * x, 1, observed=[0.0, 1.0, 2.0])
    return model


def only_discrete() -> pm.Model:
    with pm.Model() as model:
        pm.Normal("y", pm.Bernoulli("z", 0.5), 1, observed=1.0)
    return model


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (poisson, "count is Poisson, which pymc_extras.* cannot sum out.*a Categorical of as many"),
        (sum_of_states, r"z \(Use of known dimensions as reduced dimensions .*pymc.sample \("),
        (potential, r"z \(no random variable depends on it, but a potential does\)"),
        (missing_values, "x_unobserved.*give the rows with missing values variables of their own"),
        (only_discrete, "no continuous free variables to draw"),
    ],
)
def test_models_whose_variables_cannot_be_summed_out_say_why(build, message, capfd, caplog):
    with pytest.raises(ArgumentError, match=message):
        export_sampler(build())
    assert not caplog.records
    assert not capfd.readouterr().err


def test_other_samplers_name_the_way():
    for export in (nutpie_model, lambda model: nutpie_model(model, data="stored")):
        with pytest.raises(ArgumentError, match=r"marginalize\(model, \['z'\]\)"):
            export(mixture())


def test_without_pymc_extras_the_error_names_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pymc_extras.marginal", None)
    with pytest.raises(ArgumentError, match=r"z\. With pymc-extras.*pytensor-onnx\[discrete\]"):
        export_sampler(mixture())


QUIET = {"progressbar": False, "quiet": True, "random_seed": 1, "chains": 2, "cores": 1}


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["nutpie", "pytensor_onnx", None])
@pytest.mark.parametrize("is_summed", [False, True])
def test_sample_returns_the_drawn_components(sampler, is_summed, monkeypatch):
    if sampler == "nutpie":
        pytest.importorskip("nutpie")
    model = marginalize(mixture(), ["z"]) if is_summed else mixture()
    monkeypatch.setattr(model_sampling, "_by_pymc", None)
    few = {**QUIET, "draws": 400, "tune": 300, "compute_convergence_checks": False}
    tree = sample(model=model, nuts_sampler=sampler, **few, discard_tuned_samples=False)
    posterior = tree.posterior
    assert posterior["z"].dims == ("chain", "draw", "row")
    assert tree.warmup_posterior["z"].shape == (2, 300, 5)
    case = CASES["mixture"]
    draws = {name: posterior[name].to_numpy()[0] for name in ("w", "mu", "sigma")}
    expected = np.tensordot(case.weights({**draws, "z": None}), case.states.astype(float), 1)
    error = posterior["z"].to_numpy()[0] - expected
    assert (np.abs(error.mean(axis=0)) < 4.5 * error.std(axis=0) / np.sqrt(400)).all()
    again = sample(model=model, nuts_sampler=sampler, **few)
    np.testing.assert_array_equal(again.posterior["z"], posterior["z"])
    some = sample(model=model, nuts_sampler=sampler, **few, var_names=["z", "mu"])
    assert [*some.posterior.data_vars] == ["mu", "z"]
    alive = weakref.ref(model)
    del model
    gc.collect()
    assert alive() is None, "programs are kept as long as the model"


@pytest.mark.slow
def test_step_methods_of_pymc_sample_other_models():
    with poisson():
        few = {**QUIET, "draws": 20, "tune": 20, "compute_convergence_checks": False}
        tree = sample(**few)
    assert {"CompoundStep", "count"} & {*tree.posterior.data_vars}


@pytest.mark.slow
@pytest.mark.parametrize("export", [export_laplace, export_pathfinder, export_advi, export_smc])
def test_approximations_draw_components_back(export):
    model = with_data_of_mixture()
    drawn = called(export(model, verify=False), seed=[1, 2], draws=500)
    expected = chances(drawn["mu"], Y)
    assert drawn["z"].shape == expected.shape
    error = (drawn["z"] - expected).reshape(-1, 5)
    scale = np.sqrt((expected * (1 - expected)).mean(axis=(0, 1)) / len(error))
    assert (np.abs(error.mean(axis=0)) < 4.5 * scale + 1e-3).all()
    assert "mode_z" not in drawn


@pytest.mark.slow
def test_predictors_of_marginal_models_draw_new_components():
    model = marginalize(with_data_of_mixture(), ["z"])
    posterior = {"mu": np.broadcast_to([-3.0, 2.0], (1, 4000, 2))}
    program = export_predictor(model, posterior, outputs=["y"])
    (y,) = program(seed=1)
    assert y.shape == (4000, 5)
    reference = stats.norm([-3.0, 2.0], 0.8).cdf(0.5) @ [0.6, 0.4]
    assert abs((y < 0.5).mean() - reference) < 4.5 * np.sqrt(0.25 / y.size)
    tree = predict(model, posterior, random_seed=1)
    assert tree.predictions["y"].shape == (1, 4000, 5)


def with_data_of_mixture() -> pm.Model:
    with pm.Model() as model:
        mu = pm.Normal("mu", [-1, 1], 1)
        z = pm.Bernoulli("z", 0.4, shape=5)
        pm.Normal("y", mu[z], 0.8, observed=Y)
    return model


@pytest.mark.slow
def test_the_conditional_model_is_exported_as_a_classifier_of_new_rows():
    with pm.Model() as model:
        y = pm.Data("y_seen", Y, dims="row")
        mu = pm.Normal("mu", [-1, 1], 1)
        z = pm.Bernoulli("z", 0.4, dims="row")
        pm.Normal("y", mu[z], 0.8, observed=y, dims="row")
    posterior = {"mu": RNG.normal([-1.5, 1.0], 0.1, (1, 300, 2))}
    program = export_predictor(
        conditional(marginalize(model, ["z"])),
        posterior,
        outputs={"z": ["probabilities", "draws"]},
        categories={"z": [0, 1]},
        sample_vars=["z"],
    )
    new = np.array([-4.0, -0.5, 0.1, 3.0, 0.0, 0.2, -0.1])
    results = called(program, y_seen=new, seed=1)
    found, z = results["z_probabilities"], results["z"]
    expected = chances(posterior["mu"][0], new).mean(axis=0)
    np.testing.assert_allclose(found[:, 1], expected, rtol=1e-9)
    assert (np.abs(z.mean(axis=0) - expected) < 4.5 * np.sqrt(0.25 / 300)).all()


@pytest.mark.slow
def test_the_conditional_model_of_a_chain_is_exported_as_a_classifier_of_its_states():
    model, draws = chain(), 20
    posterior = {
        "p": RNG.dirichlet([2.0, 1.0, 1.0], (1, draws, 3)),
        "mu": RNG.normal([-1, 0, 1], 0.3, (1, draws, 3)),
    }
    program = export_predictor(
        conditional(marginalize(model, ["z"])),
        posterior,
        outputs={"z": "probabilities"},
        categories={"z": [2, 0, 7]},
        sample_vars=["z"],
    )
    found = called(program)["z_probabilities"]
    states = np.array(list(product(range(3), repeat=5)))
    expected = np.zeros((5, 3))
    for p, mu in zip(posterior["p"][0], posterior["mu"][0], strict=True):
        joint = of_chain(p, mu, states)
        weights = np.exp(joint - logsumexp(joint))
        expected += [[weights[states[:, t] == k].sum() for k in (2, 0, 7)] for t in range(5)]
    np.testing.assert_allclose(found, expected / draws, rtol=1e-7, atol=1e-12)


@pytest.mark.slow
def test_ranks_of_discrete_variables_are_uniform_in_a_calibration():
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 2)
        z = pm.Bernoulli("z", 0.5, shape=3)
        pm.Normal("y", mu + 1.5 * z, 0.5, observed=np.zeros(3))
    found = calibrate(model, simulations=200, draws=19, warmup=200)
    assert found.ranks["z"].shape == (200, 3)
    assert found.is_calibrated
