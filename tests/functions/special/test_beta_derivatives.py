"""Derivatives of the regularized incomplete beta function."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.stats

from pytensor_onnx import export_onnx
from tests.conftest import compare_onnx_and_py
from tests.functions.special.accuracy import compile_definition

inf, nan = np.inf, np.nan


NAMES = ["BetaIncByFirst", "BetaIncBySecond"]


@pytest.mark.few(1)
@pytest.mark.parametrize("name", NAMES)
def test_values_at_the_ends_of_x_are_zero_and_outside_of_the_domain_nan(name):
    a, b, x = np.array(
        [
            [2.0, 3.0, 0.0],
            [2.0, 3.0, 1.0],
            [0.0, 3.0, 0.5],
            [2.0, 0.0, 0.5],
            [-1.0, 3.0, 0.5],
            [2.0, inf, 0.5],
            [nan, 3.0, 0.5],
            [2.0, 3.0, -0.1],
            [2.0, 3.0, 1.1],
        ]
    ).T
    found = compile_definition(name, "float64")(a, b, x)
    np.testing.assert_array_equal(found, [0, 0, *[nan] * 7])


def test_a_derivative_by_one_parameter_mirrors_the_one_by_the_other():
    rng = np.random.default_rng(0)
    a, b = 10 ** rng.uniform(-3, 7, (2, 500))
    # Both are exact.
    x = rng.integers(1, 2**20, 500) / 2**20
    first, second = (compile_definition(name, "float64") for name in NAMES)
    np.testing.assert_allclose(first(a, b, x), -second(b, a, 1 - x), rtol=2e-9, atol=1e-300)


def test_the_density_is_that_of_scipy_at_the_ends_of_x():
    a, b, x = np.array(
        [[1.0, 3.0, 0.0], [0.5, 3.0, 0.0], [2.0, 3.0, 0.0], [2.0, 1.0, 1.0], [2.0, 0.5, 1.0]]
    ).T
    found = compile_definition("BetaIncByThird", "float64")(a, b, x)
    np.testing.assert_array_equal(found, scipy.stats.beta.pdf(x, a, b))
    outside = compile_definition("BetaIncByThird", "float64")(a, b - 3, x - 1)
    assert np.isnan(outside).all()


@pytest.mark.slow
def test_gradients_of_pytensor_have_no_loop():
    a, b, x = pt.vector("a", dtype="float32"), *pt.vectors("b", "x")
    gradients = pt.grad(pt.betainc(a, b, x).sum(), [a, b, x])
    values = [np.array([0.7, 4.0, 30.0]), np.array([2.5, 0.3, 9.0]), np.array([0.2, 0.9, 0.7])]
    values[0] = values[0].astype("float32")
    # PyTensor computes the digamma function of float32 parameters in float32.
    program = compare_onnx_and_py([a, b, x], gradients, values, rtol=1e-5)
    calls = {f"BetaIncBy{n}_float64_in_blocks" for n in ("First", "Second", "Third")}
    operators = {node.op_type for node in program.model.graph}
    assert calls <= operators
    assert "Loop" not in operators


@pytest.mark.slow
def test_another_loop_stays():
    a, x = pt.vectors("a", "x")
    gradient = pt.grad(pt.gammainc(a, x).sum(), a)
    program = export_onnx([a, x], gradient, verify=False)
    assert not any("BetaInc" in f.name for f in program.model.functions.values())


@pytest.mark.slow
def test_derivatives_are_recognised_under_each_floatx():
    a, b, x = arguments = pt.dscalars("abx")
    wanted = [f"BetaIncBy{which}_float64" for which in ("First", "Second", "Third")]
    for float_x in ("float64", "float32", "float64"):
        with pytensor.config.change_flags(floatX=float_x):
            gradients = pt.grad(pt.betainc(a, b, x), arguments)
            program = export_onnx(arguments, gradients, verify=False)
        assert sorted(node.op_type for node in program.model.graph) == wanted, float_x
