"""Densities without constants differ from PyMC's by one number, and have its gradients."""

from collections.abc import Callable

import numpy as np
import pytensor
import pytest
from scipy.special import gammaln

pm = pytest.importorskip("pymc")

import pytensor.tensor as pt  # noqa: E402
from pytensor.graph.basic import Constant  # noqa: E402
from pytensor.graph.traversal import toposort  # noqa: E402

from pytensor_onnx.pymc import ModelGraph, export_logp  # noqa: E402
from pytensor_onnx.pymc.model_graphs import drop_constants  # noqa: E402

RNG = np.random.default_rng(3)
COUNTS, VALUES = RNG.poisson(3.0, 5), RNG.normal(size=(5, 2))


def counts() -> None:
    rate = pm.Gamma("rate", 2.0, 3.0)
    pm.Poisson("y", rate * np.arange(1.0, 6.0), observed=COUNTS)
    pm.Binomial("k", 9, pm.Beta("p", 2.0, 3.0), observed=COUNTS)
    pm.Potential("known", pt.constant(2.5) + rate - 4.0)


def shared_scale() -> None:
    # The constant is a vector, and all that is left is a number to count five times.
    scale = pm.HalfNormal("scale", 2.0)
    pm.Normal("y", pm.Data("mean", np.arange(5.0)), scale, observed=VALUES[:, 0])


def bounded() -> None:
    top = pm.Pareto("top", 2.0, 1.0)
    pm.TruncatedNormal("below", 0.0, 1.0, upper=top)
    pm.Uniform("y", 0.0, top, observed=[0.5])
    pm.Beta("z", 2.0, top, observed=[0.25, 0.5])


def multivariate() -> None:
    mean = pm.MvNormal("mean", np.zeros(2), np.eye(2))
    weights = pm.Dirichlet("weights", np.ones(3))
    pm.MvNormal("y", mean, [[2.0, 0.3], [0.3, 1.0]], observed=VALUES)
    pm.Multinomial("k", 5, weights, observed=[1, 2, 2])


def mixtures() -> None:
    w, mean = pm.Dirichlet("w", np.ones(2)), pm.Normal("mean", shape=2)
    pm.NormalMixture("y", w, mean, 0.5, observed=VALUES[:, 0])
    pm.ZeroInflatedPoisson("k", 0.3, pt.exp(mean[0]), observed=COUNTS)
    pm.Normal("part", mean.sum(), 1.0, observed=VALUES[:, 1], total_size=20)


@pytest.fixture(autouse=True)
def without_compiler() -> None:
    with pytensor.config.change_flags(cxx="", mode="FAST_COMPILE"):
        yield


@pytest.mark.parametrize("make", [counts, shared_scale, bounded, multivariate, mixtures])
@pytest.mark.few(1)
def test_a_constant_and_no_gradient_is_dropped(make: Callable[[], None]) -> None:
    with pm.Model() as model:
        make()
    program = export_logp(model, propto=True, data="stored")
    graph = ModelGraph(model)
    outputs = [model.logp(), model.dlogp()]
    full = model.compile_fn(outputs, inputs=model.value_vars, on_unused_input="ignore")
    differences = []
    for _ in range(3):
        point = RNG.normal(size=graph.start.size)
        parts = np.split(point, np.cumsum([v.start.size for v in graph.continuous])[:-1])
        pairs = zip(graph.continuous, parts, strict=True)
        values = {value.name: part.reshape(value.start.shape) for value, part in pairs}
        logp, dlogp = program(point)
        wanted, gradient = full(values)
        np.testing.assert_allclose(dlogp, gradient, rtol=1e-10)
        differences.append(wanted - logp)
    np.testing.assert_allclose(differences, differences[0], rtol=1e-11)
    assert abs(differences[0]) > 0.1


def test_what_is_left_of_known_densities() -> None:
    with pm.Model() as model:
        rate, mean = pm.HalfFlat("rate"), pm.Normal("mean", 1.0, 2.0)
        pm.Normal("y", mean, 0.5, observed=pm.Data("x", [0.5, 2.0]))
        pm.Gamma("z", rate, np.float64(2.0), observed=pm.Data("v", [0.5, 2.0]))
        pm.Exponential("w", pm.Data("k", [1.0]), observed=[2.0])
        pm.MvNormal("m", pt.stack([mean, rate]), np.eye(2) * 4, observed=VALUES)
    program = export_logp(model, outputs=["logp"], propto=True)
    x, v = np.array([0.25, 1.5, 7.0]), np.array([0.3, 0.4])
    logp = program([np.log(1.5), 0.75], x, v, [3.0])[0]
    left = np.log(1.5) - 0.5 * ((0.75 - 1) / 2) ** 2 - 0.5 * (((x - 0.75) / 0.5) ** 2).sum()
    left += (1.5 * np.log(2.0) - gammaln(1.5) + 0.5 * np.log(v)).sum()
    left += -0.125 * ((VALUES - [0.75, 1.5]) ** 2).sum()
    np.testing.assert_allclose(logp, left, rtol=1e-14)


def test_data_without_a_density_still_have_none() -> None:
    with pm.Model() as model:
        scale, k = pm.Data("scale", 1.0), pm.Data("k", np.array([1, 2]))
        pm.Normal("known", 0.0, scale, observed=[1.0, 2.0])
        pm.Poisson("y", 3.0, observed=k)
        pm.Normal("mean")
    program = export_logp(model, outputs=["logp"], propto=True)
    assert program([0.5], 1.0, [1, 2]) == [-0.125]
    assert program([0.5], -1.0, [1, 2]) == [-np.inf]
    assert program([0.5], 1.0, [1, -2]) == [-np.inf]


def test_constants_that_parameters_choose_between_stay() -> None:
    x = pt.scalar("x")
    chosen = pt.switch(x < 0, np.log(0.3), np.log(0.7))
    (left,) = drop_constants([chosen + x * x + 5.0], [x])
    for value, p in ((-1.0, 0.3), (2.0, 0.7)):
        np.testing.assert_allclose(left.eval({x: value}), np.log(p) + value**2)


def test_a_square_has_no_summands() -> None:
    x = pt.scalar("x")
    shifted = x + 2.0
    (left,) = drop_constants([shifted * shifted + 1.0], [x])
    np.testing.assert_allclose(left.eval({x: 1.0}), 9.0)


@pytest.mark.slow
def test_many_summands() -> None:
    x = pt.scalar("x")
    total = x
    for i in range(3000):
        total = total + (x if i % 1000 == 0 else float(i))
    (left,) = drop_constants([total], [x])
    sums = [node for node in toposort([left]) if node.op == pt.add]
    data = [v.data for node in sums for v in node.inputs if isinstance(v, Constant)]
    assert len(sums) == 3000
    assert not data
