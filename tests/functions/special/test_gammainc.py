"""The regularized incomplete gamma functions."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.special

from pytensor_onnx.functions.special import gammainc
from tests.conftest import called, compare_onnx_and_py
from tests.functions.special.accuracy import DTYPES, compile_definition

inf, nan = np.inf, np.nan


NAMES = {"GammaInc": pt.gammainc, "GammaIncC": pt.gammaincc}


@pytest.mark.few(1)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_values_at_the_ends_of_the_domain_are_those_of_scipy(name, dtype):
    ends = [0.0, -0.0, -1.0, 1.0, 30.0, inf, -inf, nan]
    a, x = (v.ravel().astype(dtype) for v in np.meshgrid(ends, ends))
    expected = getattr(scipy.special, name.lower())(a, x)
    found = compile_definition(name, dtype)(a, x)
    np.testing.assert_allclose(found, expected, rtol=1e-6 if dtype == "float32" else 1e-14)


@pytest.mark.parametrize("name", NAMES)
def test_extreme_numbers_give_what_scipy_gives(name):
    ends = [1e-300, 1e-30, 1.0, 1e30, 1e300]
    a, x = (v.ravel() for v in np.meshgrid(ends, ends))
    expected = getattr(scipy.special, name.lower())(a, x)
    found = compile_definition(name, "float64")(a, x)
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_the_functions_add_up_to_one():
    rng = np.random.default_rng(0)
    a, x = np.exp(rng.uniform(-5, 8, (2, 2000)))
    lower, upper = (compile_definition(name, "float64")(a, x) for name in NAMES)
    np.testing.assert_allclose(lower + upper, 1, rtol=0, atol=5e-15)


def test_probabilities_of_tiny_parameters_are_at_most_one():
    rng = np.random.default_rng(0)
    a, x = 10 ** rng.uniform(-20, -10, 1000), 10 ** rng.uniform(-20, 2, 1000)
    assert compile_definition("GammaInc", "float64")(a, x).max() == 1


@pytest.mark.parametrize("name", NAMES)
def test_elements_that_do_not_converge_are_nan(name, monkeypatch):
    monkeypatch.setattr(gammainc, "_ROUNDS", 2)
    run = compile_definition.__wrapped__(name, "float64")
    found = run(np.array([9.0, 9.0, 50.0]), np.array([0.001, 9.5, 50.0]))
    assert np.isnan(found).tolist() == [False, True, False]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.slow
def test_arguments_broadcast_and_are_cast_as_by_pytensor(name):
    a, x = pt.col("a", dtype="float32"), pt.vector("x", dtype="float64")
    k, half = pt.scalar("k", dtype="int64"), pt.vector("half", dtype="float16")
    small = pt.vector("small", dtype="int8")
    values = [
        np.array([[0.3], [2.0], [40.0]], "float32"),
        np.array([0.0, 0.2, 3.0, 41.0]),
        np.array(3),
        np.array([0.5, 2.5], "float16"),
        np.array([1, 4], "int8"),
    ]
    outputs = [NAMES[name](u, v) for u, v in [(a, x), (k, x), (k, half), (small, half), (2, x)]]
    compare_onnx_and_py([a, x, k, half, small], outputs, values)


@pytest.mark.slow
def test_empty_arrays_and_scalars():
    a, x = pt.matrix("a"), pt.matrix("x")
    k, y = pt.scalar("k"), pt.scalar("y")
    values = [np.ones((0, 2)), np.ones((0, 2)), np.array(3.0), np.array(2.0)]
    outputs = [f(*v) for f in NAMES.values() for v in ((a, x), (k, y))]
    compare_onnx_and_py([a, x, k, y], outputs, values)


@pytest.mark.slow
def test_gradients_and_the_unregularized_functions():
    a, x = pt.vector("a"), pt.vector("x")
    values = [np.array([0.5, 2.0, 30.0, 7.0]), np.array([0.3, 5.0, 29.0, 1.0])]
    outputs = [pt.gammau(a, x), pt.gammal(a, x)]
    for function in NAMES.values():
        first = pt.grad(function(a, x).sum(), [a, x])
        outputs += [*first, pt.grad(first[1].sum(), x)]
    compare_onnx_and_py([a, x], outputs, values, rtol=1e-10)


@pytest.mark.slow
def test_they_run_in_functions_and_loops():
    a, x = pt.vector("a"), pt.vector("x")
    values = [np.array([0.5, 2.0, 30.0]), np.array([0.3, 5.0, 29.0])]
    inner = called(lambda u, v: pt.gammainc(u, v) + pt.gammaincc(v, u), a, x)
    steps = pytensor.scan(
        pt.gammainc, sequences=[a], non_sequences=[x], outputs_info=[None], return_updates=False
    )
    compare_onnx_and_py([a, x], [inner, steps], values)
