"""Models as people write them with PyMC, small, on data drawn here."""

from collections.abc import Callable

import numpy as np
import pymc as pm
import pymc.dims as pmd
import pytensor.tensor as pt
from pymc.distributions.transforms import ordered
from pytensor.scan.basic import scan

MODELS: dict[str, Callable[[], pm.Model]] = {}
_EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
_ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def model(define: Callable[[np.random.Generator], None]) -> Callable[[], pm.Model]:
    """Make a definition, which receives a generator for its data, into what builds the model."""

    def build() -> pm.Model:
        with pm.Model() as built:
            define(np.random.default_rng(7))
        return built

    MODELS[define.__name__] = build
    return build


def _regressors(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    x = rng.normal(size=(40, 3))
    return x, x @ [1.0, -0.5, 0.25] + rng.normal(size=40)


@model
def eight_schools(rng: np.random.Generator) -> None:
    mu, tau = pm.Normal("mu", 0, 5), pm.HalfCauchy("tau", 5)
    theta = pm.Deterministic("theta", mu + tau * pm.Normal("z", shape=8))
    pm.Normal("effect", theta, _ERRORS, observed=_EFFECTS)


@model
def eight_schools_with_named_dims(rng: np.random.Generator) -> None:
    pm.modelcontext(None).add_coords({"school": range(8)})
    effects, errors = (
        pmd.Data("effects", _EFFECTS, dims="school"),
        pmd.Data("errors", _ERRORS, dims="school"),
    )
    mu, tau = pmd.Normal("mu", 0, 5), pmd.HalfCauchy("tau", 5)
    theta = pmd.Deterministic("theta", mu + tau * pmd.Normal("z", dims="school"))
    pmd.Normal("effect", theta, errors, observed=effects)


@model
def linear_regression(rng: np.random.Generator) -> None:
    x, y = _regressors(rng)
    mean = pm.Flat("intercept") + pt.dot(x, pm.Normal("slopes", 0, 10, shape=3))
    pm.Normal("y", mean, pm.Exponential("sigma", 1), observed=y)


@model
def radon(rng: np.random.Generator) -> None:
    pm.modelcontext(None).add_coords({"county": range(9), "house": range(60)})
    county = pm.Data("county_of", rng.integers(0, 9, size=60), dims="house")
    floor = pm.Data("floor", rng.integers(0, 2, size=60).astype("float64"), dims="house")
    intercepts = pm.Normal("a", pm.Normal("mu_a"), pm.HalfNormal("sigma_a"), dims="county")
    slopes = pm.Normal("b", pm.Normal("mu_b"), pm.HalfNormal("sigma_b"), dims="county")
    mean = pm.Deterministic("mean", intercepts[county] + slopes[county] * floor, dims="house")
    pm.Normal("y", mean, pm.HalfNormal("sigma"), observed=rng.normal(size=60), dims="house")


@model
def logistic_regression(rng: np.random.Generator) -> None:
    x, y = _regressors(rng)
    logits = pt.dot(x, pm.Normal("slopes", 0, 2, shape=3))
    pm.Deterministic("odds", pt.exp(logits))
    pm.Bernoulli("y", logit_p=logits, observed=(y > 0).astype(int))


@model
def probit_regression(rng: np.random.Generator) -> None:
    x, y = _regressors(rng)
    p = pm.math.invprobit(pt.dot(x, pm.Normal("slopes", 0, 1, shape=3)))
    pm.Bernoulli("y", p=p, observed=(y > 0).astype(int))


@model
def softmax_regression(rng: np.random.Generator) -> None:
    x, _ = _regressors(rng)
    logits = pt.dot(x, pm.Normal("slopes", shape=(3, 4)))
    pm.Categorical("y", logit_p=logits, observed=rng.integers(0, 4, size=40))


@model
def ordered_logistic_regression(rng: np.random.Generator) -> None:
    cuts = pm.Normal("cuts", [-1, 0, 1], shape=3, transform=ordered, initval=[-1, 0, 1])
    scores = rng.integers(0, 4, size=30)
    pm.OrderedLogistic("y", eta=pm.Normal("eta"), cutpoints=cuts, observed=scores)


@model
def poisson_regression(rng: np.random.Generator) -> None:
    x, y = _regressors(rng)
    rate = pt.exp(pm.Normal("a") + pt.dot(x, pm.Normal("b", shape=3)))
    pm.Poisson("y", rate, observed=rng.poisson(np.exp(y / 2)))


@model
def zero_inflated_counts(rng: np.random.Generator) -> None:
    counts = rng.poisson(2, size=20) * rng.integers(0, 2, size=20)
    pm.ZeroInflatedPoisson(
        "y", psi=pm.Beta("psi", 2, 2), mu=pm.HalfNormal("mu", 3), observed=counts
    )


@model
def binomial_rates(rng: np.random.Generator) -> None:
    pm.Binomial("y", n=10, p=pm.Beta("p", 1, 1, shape=5), observed=[1, 3, 5, 7, 9])


@model
def multinomial_rates(rng: np.random.Generator) -> None:
    rates = pm.Dirichlet("p", np.ones(3))
    pm.Multinomial("y", n=10, p=rates, observed=rng.multinomial(10, [0.2, 0.3, 0.5], size=4))


@model
def coal_mining_disasters(rng: np.random.Generator) -> None:
    counts = np.r_[rng.poisson(3, 30), rng.poisson(1, 30)]
    switch = pm.DiscreteUniform("switch", 0, 59)
    rate = pt.switch(switch >= np.arange(60), pm.Exponential("early", 1), pm.Exponential("late", 1))
    pm.Poisson("y", rate, observed=counts)


@model
def mixture_of_normals(rng: np.random.Generator) -> None:
    y = np.r_[rng.normal(-2, 1, 30), rng.normal(2, 0.5, 20)]
    means = pm.Normal("means", [-1, 1], 2, shape=2, transform=ordered, initval=[-1, 1])
    pm.NormalMixture(
        "y", pm.Dirichlet("w", np.ones(2)), means, pm.HalfNormal("sigmas", shape=2), observed=y
    )


@model
def mixture_by_logsumexp(rng: np.random.Generator) -> None:
    y = np.r_[rng.normal(-2, 1, 30), rng.normal(2, 0.5, 20)]
    weights = pt.special.log_softmax(pt.stack([pm.Normal("logit"), 0.0]), axis=-1)
    parts = pm.Normal.dist(pm.Normal("means", shape=2), pm.HalfNormal("sigmas", shape=2))
    pm.Potential("y", pm.math.logsumexp(pm.logp(parts, y[:, None]) + weights, axis=-1).sum())


@model
def random_walk(rng: np.random.Generator) -> None:
    path = pm.GaussianRandomWalk(
        "path", sigma=pm.HalfNormal("sigma"), init_dist=pm.Normal.dist(), steps=19
    )
    pm.Normal("y", path, 0.5, observed=rng.normal(size=20))


@model
def autoregression(rng: np.random.Generator) -> None:
    pm.AR(
        "y",
        rho=pm.Normal("rho", 0, 0.5, shape=2),
        sigma=pm.HalfNormal("sigma"),
        init_dist=pm.Normal.dist(0, 10, shape=2),
        observed=np.cumsum(rng.normal(size=30)) * 0.3,
    )


@model
def filter_by_scan(rng: np.random.Generator) -> None:
    y = np.cumsum(rng.normal(size=30)) * 0.3
    states = scan(
        lambda new, state, rho: rho * state + (1 - rho) * new,
        sequences=[pt.as_tensor(y)],
        outputs_info=[pm.Normal("start")],
        non_sequences=[pm.Uniform("rho")],
        return_updates=False,
    )
    pm.Deterministic("states", states)
    pm.Normal("y", states, pm.HalfNormal("sigma"), observed=y)


@model
def garch(rng: np.random.Generator) -> None:
    pm.GARCH11(
        "y",
        omega=pm.HalfNormal("omega"),
        alpha_1=pm.Uniform("alpha", 0, 0.5),
        beta_1=pm.Uniform("beta", 0, 0.5),
        initial_vol=1.0,
        observed=rng.normal(size=20),
    )


@model
def approximate_gaussian_process(rng: np.random.Generator) -> None:
    kernel = pm.HalfNormal("scale") ** 2 * pm.gp.cov.ExpQuad(1, pm.HalfNormal("length"))
    process = pm.gp.HSGP(m=[6], c=1.5, cov_func=kernel)
    values = process.prior("f", np.linspace(0, 1, 20)[:, None])
    pm.Normal("y", values, 0.3, observed=rng.normal(size=20))


@model
def neural_network(rng: np.random.Generator) -> None:
    x, y = _regressors(rng)
    hidden = pt.tanh(pt.dot(x, pm.Normal("w1", shape=(3, 5))))
    p = pm.math.sigmoid(pt.dot(hidden, pm.Normal("w2", shape=5)))
    pm.Bernoulli("y", p, observed=(y > 0).astype(int))


@model
def effects_that_sum_to_zero(rng: np.random.Generator) -> None:
    pm.Normal("y", pm.ZeroSumNormal("z", shape=4), 1, observed=rng.normal(size=(6, 4)))


@model
def heavy_and_skewed_errors(rng: np.random.Generator) -> None:
    m, s, y = pm.Normal("m"), pm.HalfNormal("s"), rng.normal(size=12)
    pm.Laplace("laplace", m, s, observed=y)
    pm.Cauchy("cauchy", m, s, observed=y)
    pm.Logistic("logistic", m, s, observed=y)
    pm.Gumbel("gumbel", m, s, observed=y)
    pm.SkewNormal("skew", mu=m, sigma=s, alpha=2.0, observed=y)
    pm.AsymmetricLaplace("asymmetric", kappa=s, mu=m, b=1.0, observed=y)
    pm.Moyal("moyal", m, s, observed=y)


@model
def positive_data(rng: np.random.Generator) -> None:
    m, s, y = pm.Normal("m"), pm.HalfNormal("s"), np.exp(rng.normal(size=12))
    pm.LogNormal("lognormal", m, s, observed=y)
    pm.Weibull("weibull", alpha=s, beta=pm.HalfNormal("b"), observed=y)
    pm.Exponential("exponential", s, observed=y)
    pm.Pareto("pareto", alpha=s, m=0.01, observed=y)
    pm.HalfCauchy("half_cauchy", s, observed=y)
    pm.Wald("wald", mu=s, lam=1.0, observed=y)
    pm.Kumaraswamy("kumaraswamy", s, 2.0, observed=y / 50)
    pm.Triangular("triangular", 0.0, 100.0, 0.3, observed=y)


@model
def counts_with_overdispersion(rng: np.random.Generator) -> None:
    pm.NegativeBinomial(
        "y",
        mu=pm.HalfNormal("m", 5),
        alpha=pm.Exponential("alpha", 1),
        observed=rng.poisson(3, size=40),
    )


@model
def robust_regression(rng: np.random.Generator) -> None:
    x, y = _regressors(rng)
    mean = pt.dot(x, pm.Normal("slopes", shape=3))
    pm.StudentT("y", nu=pm.Gamma("nu", 2, 0.1), mu=mean, sigma=pm.HalfNormal("s"), observed=y)


@model
def truncated_data(rng: np.random.Generator) -> None:
    y = np.abs(rng.normal(size=20))
    pm.TruncatedNormal("y", mu=pm.Normal("m"), sigma=pm.HalfNormal("s"), lower=0, observed=y)


@model
def censored_data(rng: np.random.Generator) -> None:
    errors = pm.Normal.dist(pm.Normal("m"), pm.HalfNormal("s"))
    y = np.minimum(rng.normal(size=20), 1.0)
    pm.Censored("y", errors, lower=None, upper=1.0, observed=y)


@model
def directions(rng: np.random.Generator) -> None:
    pm.VonMises("y", 0, pm.HalfNormal("k"), observed=rng.uniform(-3, 3, size=9))


@model
def correlated_effects(rng: np.random.Generator) -> None:
    factor, _, _ = pm.LKJCholeskyCov("L", n=2, eta=2, sd_dist=pm.Exponential.dist(1))
    pm.MvNormal("y", np.zeros(2), chol=factor, observed=rng.normal(size=(10, 2)))


@model
def gaussian_process(rng: np.random.Generator) -> None:
    kernel = pm.HalfNormal("scale") ** 2 * pm.gp.cov.ExpQuad(1, pm.HalfNormal("length"))
    x, y = np.linspace(0, 1, 8)[:, None], rng.normal(size=8)
    process = pm.gp.Marginal(cov_func=kernel)
    process.marginal_likelihood("y", x, y, sigma=pm.HalfNormal("sigma"))


@model
def interpolated_prior(rng: np.random.Generator) -> None:
    points = np.linspace(-3, 3, 20)
    pm.Interpolated("x", points, np.exp(-(points**2)))


TELLING = (
    *("eight_schools", "softmax_regression", "ordered_logistic_regression", "mixture_of_normals"),
    *("coal_mining_disasters", "filter_by_scan", "garch", "gaussian_process", "positive_data"),
    *("heavy_and_skewed_errors", "directions"),
)
"""Models of each kind of distribution, loop and factorization."""
