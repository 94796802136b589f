"""Invalid parameters have the density zero wherever their check stands, and raise no error."""

from collections.abc import Callable

import numpy as np
import pytensor
import pytest

pm = pytest.importorskip("pymc")

import pytensor.tensor as pt  # noqa: E402
from pytensor.compile.builders import OpFromGraph  # noqa: E402
from pytensor.conditional.op import ifelse  # noqa: E402
from pytensor.scan import scan  # noqa: E402

from pytensor_onnx.errors import RunError  # noqa: E402
from pytensor_onnx.pymc import export_logp, export_sampler  # noqa: E402
from pytensor_onnx.pymc.random_variables import replace_checks  # noqa: E402
from tests.pymc.measuring import REFERENCE  # noqa: E402

STEPS = np.array([0.1, 0.2, 0.0, -0.1, 0.3])


def normal(y: pt.TensorVariable, sigma: pt.TensorVariable) -> pt.TensorVariable:
    return pm.logp(pm.Normal.dist(0.5, sigma), y)


def summed(
    density: Callable[..., pt.TensorVariable], sigma: pt.TensorVariable
) -> pt.TensorVariable:
    """Sum the densities of steps that depend on each other."""
    return scan(
        lambda y, before, s: before + density(y + 0.1 * pt.exp(before), s),
        sequences=[pt.constant(STEPS)],
        outputs_info=[pt.zeros(())],
        non_sequences=[sigma],
        return_updates=False,
    )[-1]


def function(y: pt.TensorVariable, sigma: pt.TensorVariable) -> pt.TensorVariable:
    inputs = [y.type(), sigma.type()]
    return OpFromGraph(inputs, [normal(*inputs)])(y, sigma)


def branch(y: pt.TensorVariable, sigma: pt.TensorVariable) -> pt.TensorVariable:
    return ifelse(y < 100.0, normal(y, sigma), pt.zeros(()))


NESTED = {
    "loop": lambda s: summed(normal, s),
    "function": lambda s: function(pt.constant(0.5), s),
    "branch": lambda s: branch(pt.constant(0.5), s),
    "loop of functions": lambda s: summed(function, s),
    "loop of branches": lambda s: summed(branch, s),
    "loop of loops": lambda s: summed(lambda y, s: summed(normal, s) + y, s),
}


@pytest.mark.parametrize("name", NESTED)
def test_a_failed_check_in_an_inner_graph_gives_minus_infinity(name: str) -> None:
    sigma = pt.dscalar("sigma")
    logp = NESTED[name](sigma)
    (replaced,) = replace_checks([logp])
    assert float(replaced.eval({sigma: -1.0}, mode=REFERENCE)) == -np.inf
    expected = logp.eval({sigma: 2.0}, mode=REFERENCE)
    np.testing.assert_allclose(replaced.eval({sigma: 2.0}, mode=REFERENCE), expected, rtol=1e-14)


def time_series() -> pm.Model:
    """Return a model whose density is a loop of normal distributions."""

    def dist(sigma: pt.TensorVariable, size: pt.TensorVariable) -> pt.TensorVariable:
        def step(
            before: pt.TensorVariable, sigma: pt.TensorVariable, rng: pt.TensorVariable
        ) -> tuple:
            after, draw = pm.Normal.dist(0.5 * before, sigma, rng=rng).owner.outputs
            return draw, {rng: after}

        rng = pytensor.shared(np.random.default_rng(1))
        return scan(
            step,
            outputs_info=[pt.zeros(())],
            non_sequences=[sigma, rng],
            n_steps=len(STEPS),
            return_updates=True,
        )[0]

    with pm.Model() as model:
        pm.CustomDist("y", pm.HalfNormal("sigma"), dist=dist, observed=STEPS)
        pm.Potential("loop", NESTED["loop of functions"](model["sigma"]))
    return model


def test_files_and_samplers_do_not_stop_for_invalid_parameters() -> None:
    model = time_series()
    outputs = ["logp", "dlogp", "d2logp", "pointwise", "logp_loop"]
    logp, dlogp, hessian, _, loop = export_logp(model, outputs=outputs)([-800.0])
    assert np.isneginf(logp)
    assert np.isneginf(loop)
    assert np.isnan(dlogp).all()
    assert np.isnan(hessian).all()
    sampler = export_sampler(model, start=True, verify=False)
    with pytest.raises(RunError, match=r"where chains start: 0\. model\.debug\(\) tells"):
        sampler(seed=[1, 2], warmup=3, draws=2, start=[[-800.0], [0.0]])


@pytest.mark.slow
@pytest.mark.parametrize("check_bounds", [True, False])
def test_checks_do_not_depend_on_an_option_of_the_model(check_bounds: bool) -> None:
    with pm.Model(check_bounds=check_bounds) as model:
        scale = pm.Data("scale", np.array(1.0))
        pm.Normal("y", pm.Normal("mu"), scale, observed=[1.0])
    program = export_logp(model)
    logp, dlogp = program([0.5], 2.0)
    model.set_data("scale", np.array(2.0))
    np.testing.assert_allclose(logp, model.compile_logp(mode=REFERENCE)({"mu": 0.5}), rtol=1e-14)
    logp, dlogp = program([0.5], -1.0)
    model.set_data("scale", np.array(-1.0))
    assert np.isneginf(logp)
    np.testing.assert_allclose(dlogp, model.compile_dlogp(mode=REFERENCE)({"mu": 0.5}), rtol=1e-14)
