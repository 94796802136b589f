"""Densities whose parameters are Python numbers are those of SciPy in double precision."""

import numpy as np
import pytest
from scipy import special, stats

pm = pytest.importorskip("pymc")

from pytensor_onnx.pymc import export_logp  # noqa: E402

CONTINUOUS = {
    "AsymmetricLaplace": ({"b": 1.5, "kappa": 3, "mu": 2}, stats.laplace_asymmetric(3, 2, 1 / 1.5)),
    "Beta": ({"alpha": 1.5, "beta": 7}, stats.beta(1.5, 7)),
    "Cauchy": ({"alpha": 2, "beta": 1.5}, stats.cauchy(2, 1.5)),
    "ChiSquared": ({"nu": 7}, stats.chi2(7)),
    "ExGaussian": ({"mu": 0, "sigma": 1.5, "nu": 2.5}, stats.exponnorm(2.5 / 1.5, 0, 1.5)),
    "Exponential": ({"lam": 1.5}, stats.expon(0, 1 / 1.5)),
    "Gamma": ({"alpha": 2, "beta": 1.5}, stats.gamma(2, 0, 1 / 1.5)),
    "Gumbel": ({"mu": 2, "beta": 1.5}, stats.gumbel_r(2, 1.5)),
    "HalfCauchy": ({"beta": 7}, stats.halfcauchy(0, 7)),
    "HalfNormal": ({"tau": 7}, stats.halfnorm(0, 7**-0.5)),
    "InverseGamma": ({"alpha": 7, "beta": 1.5}, stats.invgamma(7, 0, 1.5)),
    "Laplace": ({"mu": 0, "b": 7}, stats.laplace(0, 7)),
    "LogNormal": ({"mu": 1.5, "tau": 3}, stats.lognorm(3**-0.5, 0, np.exp(1.5))),
    "Logistic": ({"mu": 1.5, "s": 3}, stats.logistic(1.5, 3)),
    "Moyal": ({"mu": 1.5, "sigma": 3}, stats.moyal(1.5, 3)),
    "Normal": ({"mu": 3, "tau": 7}, stats.norm(3, 7**-0.5)),
    "Pareto": ({"alpha": 3, "m": 0.25}, stats.pareto(3, 0, 0.25)),
    "SkewNormal": ({"mu": 0, "tau": 3, "alpha": 2.5}, stats.skewnorm(2.5, 0, 3**-0.5)),
    "StudentT": ({"nu": 3, "mu": 1.5, "lam": 7}, stats.t(3, 1.5, 7**-0.5)),
    "Triangular": ({"lower": 0, "c": 1.5, "upper": 7}, stats.triang(1.5 / 7, 0, 7)),
    "TruncatedNormal": (
        {"mu": 0, "sigma": 3, "lower": -1.5, "upper": 7},
        stats.truncnorm(-0.5, 7 / 3, 0, 3),
    ),
    "Uniform": ({"lower": 0, "upper": 7}, stats.uniform(0, 7)),
    "VonMises": ({"mu": 1.5, "kappa": 3}, stats.vonmises(3, 1.5)),
    "Wald": ({"mu": 1.5, "lam": 7}, stats.invgauss(1.5 / 7, 0, 7)),
    "Weibull": ({"alpha": 1.5, "beta": 3}, stats.weibull_min(1.5, 0, 3)),
}
DISCRETE = {
    "Bernoulli": ({"p": 0.375}, stats.bernoulli(0.375)),
    "BetaBinomial": ({"alpha": 1.5, "beta": 7, "n": 5}, stats.betabinom(5, 1.5, 7)),
    "Binomial": ({"n": 5, "p": 0.375}, stats.binom(5, 0.375)),
    "DiscreteUniform": ({"lower": 0, "upper": 6}, stats.randint(0, 7)),
    "Geometric": ({"p": 0.375}, stats.geom(0.375)),
    "HyperGeometric": ({"N": 15, "k": 7, "n": 5}, stats.hypergeom(15, 7, 5)),
    "NegativeBinomial": ({"mu": 3, "alpha": 2.5}, stats.nbinom(2.5, 2.5 / 5.5)),
    "Poisson": ({"mu": 7}, stats.poisson(7)),
}


X, K = 0.3125, 1


def model() -> pm.Model:
    with pm.Model() as model:
        for name, (parameters, _) in (CONTINUOUS | DISCRETE).items():
            getattr(pm, name)(name, **parameters)
        pm.Kumaraswamy("Kumaraswamy", 1.5, 7)
        pm.LogitNormal("LogitNormal", 0, tau=3)
        pm.ZeroInflatedPoisson("ZeroInflatedPoisson", 0.375, 7)
        pm.Normal("condition", pm.math.switch(model["Bernoulli"], 1.5, 7) / 3, 7)
    return model


def expected(x: float, k: int) -> dict[str, float]:
    laws = {name: law.logpdf(x) for name, (_, law) in CONTINUOUS.items()}
    laws |= {name: law.logpmf(k) for name, (_, law) in DISCRETE.items()}
    return laws | {
        "Kumaraswamy": np.log(1.5 * 7) + 0.5 * np.log(x) + 6 * np.log1p(-(x**1.5)),
        "LogitNormal": stats.norm(0, 3**-0.5).logpdf(special.logit(x)) - np.log(x * (1 - x)),
        "ZeroInflatedPoisson": np.log(0.375) + stats.poisson(7).logpmf(k),
        "condition": stats.norm((1.5 if k else 7) / 3, 7).logpdf(x),
    }


@pytest.fixture(scope="module")
def plain() -> pm.Model:
    return pm.model.transform.conditioning.remove_value_transforms(model())


def values(plain: pm.Model) -> dict[str, float]:
    return {v.name: K if v.type.dtype.startswith("int") else X for v in plain.value_vars}


@pytest.mark.slow
def test_mode_onnx_computes_with_numbers_in_the_precision_of_the_density(plain: pm.Model) -> None:
    found = plain.compile_logp(sum=False, mode="ONNX")(values(plain))
    wanted = expected(X, K)
    for rv, value in zip(plain.basic_RVs, found, strict=True):
        # PyTensor's type of some results is float32.
        rtol = 1e-13 if value.dtype == "float64" else 1e-7
        np.testing.assert_allclose(value, wanted[rv.name], rtol=rtol, err_msg=rv.name)


@pytest.mark.slow
def test_files_compute_with_numbers_in_the_precision_of_the_density(plain: pm.Model) -> None:
    program = export_logp(plain, inputs="named", outputs=["logp"])
    np.testing.assert_allclose(program(**values(plain)), [sum(expected(X, K).values())], rtol=1e-14)


@pytest.mark.parametrize("compiled", [True, False])
def test_gradients_compute_with_numbers_in_float64(compiled: bool) -> None:
    with pm.Model() as model:
        pm.Gamma("x", 2, 7, default_transform=None)
        pm.Normal("y", 0, tau=3)
    x, y = 0.3125, 1.5
    if compiled:
        found = model.compile_dlogp(mode="ONNX")({"x": x, "y": y})
    else:
        (found,) = export_logp(model, outputs=["dlogp"])([x, y])
    np.testing.assert_allclose(found, [1 / x - 7, -3 * y], rtol=1e-14)
