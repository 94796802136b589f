"""The log-density of a file is that of PyMC's compiled function at extreme points."""

from collections.abc import Callable

import numpy as np
import pytest

pm = pytest.importorskip("pymc")

from pytensor_onnx.pymc import export_logp  # noqa: E402
from tests.pymc.measuring import REFERENCE  # noqa: E402

MODELS: dict[str, Callable[[], object]] = {
    "beta of one element": lambda: pm.Beta("x", 0.5, 2.0, shape=(1,)),
    "scale": lambda: pm.Normal("y", 0, pm.HalfNormal("x", 2.0), observed=[0.1, -2]),
    "mixture": lambda: pm.NormalMixture(
        "y", [0.25, 0.75], pm.Normal("x", 0, 100, shape=2), [1.0, 2.0], observed=[0.1, 3]
    ),
    "softmax": lambda: pm.Categorical(
        "y", p=pm.math.softmax(pm.Normal("x", 0, 100, shape=3)), observed=[0, 1, 2]
    ),
    "one probability": lambda: pm.Bernoulli(
        "y", p=pm.math.sigmoid(pm.Normal("x", 0, 100, shape=1)), observed=[0, 1]
    ),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.few(2)
def test_a_density_has_the_tails_of_pymc_s_beside_its_gradient(name: str) -> None:
    with pm.Model() as model:
        MODELS[name]()
    (value,) = model.value_vars
    logp = model.compile_logp(mode=REFERENCE)
    build = model.compile_logp(mode="ONNX")
    outputs = ["logp", "dlogp", "pointwise"] if model.observed_RVs else ["logp", "dlogp", "logp_x"]
    program = export_logp(model, outputs=outputs, verify=False)
    shape = model.initial_point()[value.name].shape
    for x in (0.5, 40.0, -40.0, 700.0, -700.0, 800.0, -800.0, 1e5, -1e5):
        point = np.resize([x, -x, 0.5 * x], shape)
        with np.errstate(all="ignore"):
            expected = logp({value.name: point})
        found, _, *_ = program(point.ravel())
        np.testing.assert_allclose(found, expected, rtol=1e-12, err_msg=f"at {x}")
        np.testing.assert_allclose(build({value.name: point}), expected, rtol=1e-12)
