"""Noise of random draws as inputs of a model."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import stats

from pytensor_onnx import export_onnx
from pytensor_onnx.errors import ArgumentError, PyTensorONNXError


def test_draws_are_functions_of_their_noise():
    rng, n = pt.random.shared_rng(seed=1, name="rng"), pt.lscalar("n")
    loc, scale = pt.dvector("loc"), pt.dscalar("scale")
    following, x = rng.normal(loc, scale)
    following, y = following.exponential(pt.abs(x), size=(n, loc.shape[0]))
    following, z = following.wald(scale, 2.0)
    total = pytensor.shared(0.0, name="total")
    updates = {rng: following, total: total + y.sum()}
    # Sampled sizes and shapes of noise do not fit each other.
    options = {"updates": updates, "rng": "inputs", "verify": False}
    program = export_onnx([loc, scale, n], [x, y, z], **options)
    names = [value.name for value in program.model.graph.inputs]
    assert names[3:7] == ["normal_normal", "exponential_uniform", "wald_normal", "wald_uniform"]
    assert list(program.state) == ["total"]
    normal, uniform = np.array([0.5, -2.0]), np.array([[0.1, 0.9]] * 3)
    found = program([1.0, 2.0], 3.0, 3, normal, uniform, 0.3, 0.2)
    expected = np.array([1.0, 2.0]) + 3 * normal
    np.testing.assert_allclose(found[0], expected, rtol=1e-14)
    np.testing.assert_allclose(found[1], stats.expon.isf(uniform) * np.abs(expected), rtol=1e-14)
    np.testing.assert_allclose(program.state["total"], found[1].sum(), rtol=1e-14)
    with pytest.raises(ValueError, match=r"exponential_uniform must have the shape|size"):
        program([1.0, 2.0], 3.0, 3, normal, uniform[:2], 0.3, 0.2)


def test_distributions_of_pymc_that_are_functions_have_noise_too():
    program = export_onnx([], pm.Kumaraswamy.dist(2.0, 4.0, size=4), rng="inputs")
    u = np.array([0.1, 0.5, 0.7, 0.99])
    np.testing.assert_allclose(program(u), (1 - (1 - u) ** (1 / 4)) ** (1 / 2), rtol=1e-12)


def test_what_has_no_fixed_noise_is_refused():
    rng = pt.random.rng("rng")
    with pytest.raises(PyTensorONNXError, match="gamma is drawn by rejection") as raised:
        export_onnx([rng], rng.gamma(2.0, scale=1.0)[1], rng="inputs")
    assert "rng='state'" in str(raised.value)
    walk, _ = pytensor.scan(
        lambda x, rng: [x + (drawn := rng.normal())[1], drawn[0]],
        outputs_info=[pt.zeros(()), rng],
        n_steps=5,
        return_updates=False,
    )
    with pytest.raises(PyTensorONNXError, match="a loop"):
        export_onnx([rng], walk, rng="inputs")
    with pytest.raises(ArgumentError, match="'state' or 'inputs'"):
        export_onnx([rng], rng.normal()[1], rng="outside")
