"""The gamma function, its logarithm, and the derivatives of that."""

import math

import mpmath as mp
import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.special

from pytensor_onnx import compile_onnx
from pytensor_onnx.functions.special import gamma, psi
from tests.conftest import called, compare_onnx_and_py
from tests.functions.special.accuracy import (
    DTYPES,
    assert_values,
    cases,
    compile_definition,
)
from tests.operations.gamma import exact_gammaln

inf, nan = np.inf, np.nan


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_at_zeros_poles_infinities_and_nan(dtype):
    for name, values in {
        "GammaLn": {0.0: inf, -1.0: inf, -7.0: inf, inf: inf, -inf: -inf, nan: nan},
        "Psi": {0.0: -inf, -1.0: nan, -7.0: nan, inf: inf, -inf: nan, nan: nan},
        "Gamma": {0.0: inf, -1.0: nan, -7.0: nan, inf: inf, -inf: nan, nan: nan},
        "TriGamma": {0.0: inf, -1.0: inf, -7.0: inf, inf: 0.0, -inf: inf, nan: nan},
    }.items():
        points = np.array([*values], dtype)
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(cases()[name].scipy(points), [*values.values()])
        assert_values(name, dtype, values)
        # Without negative numbers other nodes run.
        assert_values(name, dtype, {x: y for x, y in values.items() if not x < 0})
    for name, value in {"GammaLn": inf, "Psi": inf, "Gamma": -inf, "TriGamma": inf}.items():
        assert_values(name, dtype, {-0.0: value})


@pytest.mark.parametrize("name", ["GammaLn", "Gamma"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_they_overflow_where_their_values_do(name, dtype):
    last, beyond = {
        ("GammaLn", "float64"): (2.5e305, 2.6e305),
        ("GammaLn", "float32"): (4e36, 4.1e36),
        ("Gamma", "float64"): (171.62, 171.63),
        ("Gamma", "float32"): (35.04, 35.05),
    }[name, dtype]
    finite, infinite = compile_definition(name, dtype)(np.array([last, beyond], dtype))
    assert np.isfinite(finite)
    assert infinite == inf


def test_values_at_the_ends_of_float64():
    largest, smallest = np.finfo("float64").max, np.finfo("float64").smallest_subnormal
    with np.errstate(all="ignore"):
        poles = scipy.special.gammaln(-largest), scipy.special.psi(-smallest)
    assert poles == (inf, inf)
    assert_values("GammaLn", "float64", {-largest: inf, largest: inf})
    assert_values("Psi", "float64", {-smallest: inf, smallest: -inf, -1e-309: inf, -1e-20: 1e20})
    # SciPy's logarithm is infinite here.
    found = compile_definition("GammaLn", "float64")(np.array([-smallest, smallest]))
    np.testing.assert_allclose(found, np.full(2, -np.log(smallest)), rtol=1e-15)


def test_gamma_of_integers_is_exact():
    x = np.arange(1.0, 18.0)
    exact = [float(math.factorial(int(n) - 1)) for n in x]
    np.testing.assert_array_equal(compile_definition("Gamma", "float64")(x), exact)
    assert_values("GammaLn", "float64", {1.0: 0.0, 2.0: 0.0})


def test_gamma_next_to_zero_is_the_reciprocal_of_subnormal_numbers_too():
    x = np.array([-5.7e-309, -1.1e-308, 5.7e-309, 1.1e-308]) * (1 + np.arange(1, 41)[:, None] / 97)
    np.testing.assert_array_max_ulp(
        compile_definition("Gamma", "float64")(x.ravel()), 1 / x.ravel(), 2
    )


def test_gamma_fades_through_the_subnormal_numbers_to_zero():
    x = -np.array([170.5, 174.5, 175.5, 190.5, 191.5, 1e6 + 0.5])
    found = compile_definition("Gamma", "float64")(x)
    with mp.workprec(100):
        exact = [float(mp.gamma(mp.mpf(v))) for v in x]
    np.testing.assert_allclose(found, exact, rtol=9e-16, atol=1e-323)


def next_to_roots(name: str) -> np.ndarray:
    """Return numbers around negative roots, the closer the closer the root is to a pole."""
    exact = cases()[name].exact
    found = []
    rng = np.random.default_rng(0)
    for pole in range(-13, -2):
        for left, right in ((pole + 1e-10, pole + 0.5), (pole + 0.5, pole + 1 - 1e-10)):
            if exact(mp.mpf(left)) * exact(mp.mpf(right)) < 0:
                root = float(mp.findroot(exact, (left, right), solver="anderson", tol=1e-20))
                width = 0.01 * abs(root - round(root))
                found.append(root + width * rng.uniform(-1, 1, 20))
    return np.concatenate(found)


@pytest.mark.parametrize(("name", "share"), [("GammaLn", 0.7), ("Psi", 0.7)])
def test_errors_next_to_negative_roots_are_smaller_than_those_of_scipy(name, share):
    x = next_to_roots(name)
    with mp.workprec(140):
        exact = [cases()[name].exact(mp.mpf(v)) for v in x]
        ours, theirs = (
            [float(abs(mp.mpf(float(v)) - t)) for v, t in zip(run(x), exact, strict=True)]
            for run in (compile_definition(name, "float64"), cases()[name].scipy)
        )
    assert np.mean(ours) <= share * np.mean(theirs)
    assert max(ours) <= share * max(theirs)


@pytest.mark.parametrize("around", [-2.457, -2.7477, -3.1436, -3.9553])
def test_errors_of_gammaln_next_to_each_root_are_smaller_than_those_of_scipy(around):
    root = float(mp.findroot(exact_gammaln, around))
    x = root + 1e-3 * np.random.default_rng(0).uniform(-1, 1, 300)
    with mp.workprec(140):
        exact = [exact_gammaln(mp.mpf(v)) for v in x]
        ours, theirs = (
            max(float(abs(mp.mpf(float(v)) - t)) for v, t in zip(run(x), exact, strict=True))
            for run in (compile_definition("GammaLn", "float64"), scipy.special.gammaln)
        )
    assert ours < theirs


@pytest.mark.parametrize(("name", "module"), [("GammaLn", gamma), ("Psi", psi)])
def test_fitted_functions_meet_at_their_seams_exactly(name, module):
    seam, value = module._SEAM
    assert_values(name, "float64", {seam: value})


FUNCTIONS = (pt.gammaln, pt.psi, pt.gamma, pt.tri_gamma)


@pytest.mark.slow
def test_integers_are_cast_as_by_pytensor():
    x, small = pt.vector("x", dtype="int64"), pt.vector("small", dtype="int8")
    values = [np.array([0, 1, 2, 5, 30]), np.array([1, 3, 5], "int8")]
    outputs = [f(v) for f in FUNCTIONS for v in (x, small)]
    compare_onnx_and_py([x, small], outputs, values, rtol=1e-3)


@pytest.mark.slow
def test_gradients_run_in_functions_and_loops():
    x = pt.vector("x")
    value = np.array([-1.3, 0.2, 1.0, 1.5, 4.0, 30.0])
    gradients = [pt.grad(f(x).sum(), x) for f in FUNCTIONS[:3]]
    second = pt.grad(gradients[0].sum(), x)
    inner = called(lambda v: pt.gammaln(v) * pt.psi(v), x)
    steps = pytensor.scan(
        lambda v: pt.gammaln(pt.abs(v)), outputs_info=[x], n_steps=2, return_updates=False
    )
    compare_onnx_and_py([x], [*gradients, second, inner, steps], [value])


def test_negative_numbers_alone_pay_for_reflection():
    x = pt.vector("x", shape=(3,))
    run = compile_onnx([x], pt.gammaln(x), verify=False)
    [function] = run.model.functions.values()
    [choice] = [node for node in function if node.op_type == "If"]
    inside = [n.op_type for n in choice.attributes["then_branch"].as_graph()]
    assert "Gather" in inside
    assert "Gather" not in [node.op_type for node in function]
