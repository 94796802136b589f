"""Elementary functions of regions are within 2 ulp."""

import mpmath
import numpy as np
import pytest
from onnx import TensorProto, helper

from pytensor_onnx.kernels import regions
from tests.kernels.conftest import model_of, open_session


def logistic(x):
    return 1 / (1 + mpmath.exp(-x))


def softplus(x):
    return mpmath.log1p(mpmath.exp(x))


FUNCTIONS = {
    "Exp": mpmath.exp,
    "Log": mpmath.log,
    "Tanh": mpmath.tanh,
    "Log1p_float64": mpmath.log1p,
    "Expm1_float64": mpmath.expm1,
    "Sigmoid_float64": logistic,
    "Softplus_float64": softplus,
}


def run_in_region(name, x):
    domain = "pytensor" if "_" in name else ""
    node = helper.make_node(name, ["a"], ["out"], domain=domain)
    model = model_of([node], {"a": x}, {"out": TensorProto.DOUBLE})
    if domain:
        # The region takes the place of the body, which has only to be valid.
        body = [helper.make_node("Identity", ["x"], ["y"])]
        opsets = [helper.make_opsetid("", 21)]
        model.functions.append(helper.make_function(domain, name, ["x"], ["y"], body, opsets))
        model.opset_import.append(helper.make_opsetid(domain, 1))
    fused = regions.fuse(model.SerializeToString()).model
    assert fused is not None
    [found] = open_session(fused, with_library=True).run(None, {"a": x})
    return found


@pytest.fixture(autouse=True)
def regions_of_one_node(monkeypatch):
    monkeypatch.setattr(regions, "FEWEST_NODES", 1)


def arguments(name):
    rng = np.random.default_rng(0)
    parts = [rng.uniform(-1, 1, 300), rng.normal(scale=8, size=300), rng.uniform(-700, 700, 100)]
    parts += [rng.choice([-1, 1], 300) * 10.0 ** rng.uniform(-300, 0, 300)]
    x = np.concatenate([*parts, 10.0 ** rng.uniform(-300, 300, 100)])
    if name in ("Log", "Log1p_float64"):
        x = np.abs(x) - (name != "Log") * (np.arange(len(x)) % 2) * np.minimum(1, np.abs(x)) * 1.5
        x = x[x > (0 if name == "Log" else -1)]
        return np.concatenate([x, 1 + rng.normal(scale=1e-4, size=100)])
    return x[x < 700]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors_are_below_2_ulp(name):
    x = arguments(name)
    found = run_in_region(name, x)
    with mpmath.workprec(1200):
        exact = [FUNCTIONS[name](mpmath.mpf(float(v))) for v in x]
        error = [float(abs(e - float(f))) for e, f in zip(exact, found, strict=True)]
    assert np.max(error / np.spacing(np.abs(found))) < 2
