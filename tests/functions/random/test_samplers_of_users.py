"""The sampler that the documentation writes draws its distribution, in files and in models."""

from doctest import DocTestParser
from pathlib import Path
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.tensor.random.op import RandomVariable
from scipy import stats
from scipy.special import gammaln

from pytensor_onnx import UnsupportedOpError, compile_onnx, define
from tests.functions.random.goodness import pvalue

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "add-an-op.md"


@pytest.fixture(scope="module")
def documented() -> dict[str, Any]:
    """Return the names that the section on samplers defines."""
    text = PAGE.read_text(encoding="utf-8")
    section = text.partition("### A sampler")[2].partition("It draws from a generator")[0]
    names = {"__name__": __name__, "np": np, "pt": pt, "pytensor": pytensor, "define": define}
    for example in DocTestParser().get_examples(section):
        exec(example.source, names)
    return names


def probabilities(n: int, theta: float, lam: float) -> np.ndarray:
    """Return the exact probabilities of 0 to n - 1."""
    k = np.arange(n)
    rate = theta + lam * k
    inside = rate > 0
    rate = np.where(inside, rate, 1)
    return np.exp(np.log(theta) + (k - 1) * np.log(rate) - rate - gammaln(k + 1)) * inside


@pytest.mark.slow
@pytest.mark.parametrize(("theta", "lam"), [(3.0, 0.5), (4.0, 0.0), (4.0, -0.5), (900.0, 0.1)])
def test_draws_have_the_exact_probabilities(
    documented: dict[str, Any], theta: float, lam: float
) -> None:
    rng, t, la = pt.random.rng("rng"), pt.scalar("theta"), pt.scalar("lam")
    draws = documented["GeneralizedPoissonRV"]().make_node(rng, (4000,), t, la).outputs[1]
    file = compile_onnx([rng, t, la], draws, verify=False)
    exact = probabilities(2000, theta, lam)
    distribution = stats.rv_discrete(values=(np.arange(2000), exact / exact.sum()))
    assert pvalue(file(np.random.default_rng(3), theta, lam), distribution) > 1e-3


@pytest.mark.slow
@pytensor.config.change_flags(cxx="", mode="FAST_COMPILE")
def test_a_custom_distribution_of_a_python_function_takes_a_sampler(
    documented: dict[str, Any],
) -> None:
    pm = pytest.importorskip("pymc")
    from pytensor_onnx.pymc import export_predictor

    def draw(theta: Any, lam: Any, rng: Any = None, size: Any = None) -> np.ndarray:
        return rng.poisson(theta, size=size)

    with pm.Model() as model:
        rate, lam = pm.math.exp(pm.Normal("log_rate")), 0.25
        pm.CustomDist("y", rate, lam, random=draw, observed=np.array([1, 2]), dtype="int64")
    posterior = {"log_rate": np.full((1, 1000), np.log(3.0))}
    with pytest.raises(
        UnsupportedOpError, match=r"define\(CustomDist_y\), as https://.*/how-to/add-an-op.html"
    ):
        export_predictor(model, posterior)
    op_type = type(model["y"].owner.op)
    assert issubclass(op_type, RandomVariable)
    define(op_type)(documented["generalized_poisson"])
    mean, sd, y = export_predictor(model, posterior, verify=False)(seed=1)
    assert y.shape == (1000, 2)
    np.testing.assert_allclose(mean, 4, atol=0.3)
    np.testing.assert_allclose(sd**2, 3 / 0.75**3, rtol=0.2)
