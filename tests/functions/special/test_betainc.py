"""The regularized incomplete beta function."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.special

from pytensor_onnx.functions.special import betainc
from tests.conftest import called, compare_onnx_and_py
from tests.functions.special.accuracy import DTYPES, compile_definition

inf, nan = np.inf, np.nan


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_at_the_ends_of_the_domain_are_those_of_scipy(dtype):
    ends = [0.0, -0.0, -1.0, 0.5, 3.0, inf, -inf, nan]
    points = [0.0, -0.0, 1.0, -0.5, 1.5, 0.3, inf, nan]
    a, b, x = (v.ravel().astype(dtype) for v in np.meshgrid(ends, ends, points))
    with np.errstate(all="ignore"):
        expected = scipy.special.betainc(a, b, x)
    found = compile_definition("BetaInc", dtype)(a, b, x)
    np.testing.assert_allclose(found, expected, rtol=1e-6 if dtype == "float32" else 1e-14)


def test_extreme_numbers_give_what_scipy_gives():
    sizes = [1e-8, 0.7, 30.0, 1e8, 1e30, 1e300, 8e307]
    points = [1e-300, 1e-30, 1e-9, 0.3, 1 - 1e-9, 1 - 2**-53]
    a, b, x = (v.ravel() for v in np.meshgrid(sizes, sizes, points))
    expected = scipy.special.betainc(a, b, x)
    # The limit is the incomplete gamma function of 30 and b x = 1, where SciPy is NaN.
    expected[np.isnan(expected)] = scipy.special.gammainc(30, 1)
    found = compile_definition("BetaInc", "float64")(a, b, x)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_tiny_parameters_leave_all_weight_at_the_ends():
    a, b = (v.ravel() for v in np.meshgrid([1e-300, 1e-100, 1e-20], [1e-300, 1e-100, 1e-20]))
    found = compile_definition("BetaInc", "float64")(a, b, np.full(9, 0.4))
    np.testing.assert_allclose(found, b / (a + b), rtol=1e-15)


@pytest.mark.slow
def test_elements_for_which_the_quadrature_finds_no_interval_are_nan(monkeypatch):
    monkeypatch.setattr(betainc, "_widest", lambda d, mass, last: pt.ones_like(d) * 0.9)
    run = compile_definition.__wrapped__("BetaInc", "float64")
    assert np.isnan(run(np.array([1e4]), np.array([1e4]), np.array([0.5]))).all()


@pytest.mark.slow
def test_arguments_broadcast_and_are_cast_as_by_pytensor():
    a, b = pt.col("a", dtype="float32"), pt.vector("b", dtype="int8")
    x, half = pt.scalar("x"), pt.vector("half", dtype="float16")
    k, empty = pt.scalar("k", dtype="int64"), pt.matrix("empty")
    values = [
        np.array([[0.3], [2.0], [40.0]], "float32"),
        np.array([1, 4], "int8"),
        np.array(0.4),
        np.array([0.5, 0.25], "float16"),
        np.array(3),
        np.ones((0, 2)),
    ]
    arguments = [(a, b, x), (k, k, x), (k, b, half), (a, k, half), (2, empty, x)]
    outputs = [pt.betainc(*v) for v in arguments]
    compare_onnx_and_py([a, b, x, half, k, empty], outputs, values)


@pytest.mark.slow
def test_betainc_runs_in_functions_and_loops():
    a, b, x = pt.vectors("a", "b", "x")
    values = [np.array([0.5, 2.0, 300.0]), np.array([0.3, 5.0, 29.0]), np.array([0.1, 0.5, 0.9])]
    inner = called(pt.betainc, a, b, x)
    steps = pytensor.scan(
        pt.betainc, sequences=[a], non_sequences=[b, x], outputs_info=[None], return_updates=False
    )
    compare_onnx_and_py([a, b, x], [inner, steps], values)


def test_tiny_parameters_beside_large_ones_overflow_nowhere():
    a, b, x = np.array([[1e-300, 1e10, 5e-324], [1e-300, 1e10, 0.5], [5e-324, 1.0, 0.5]]).T
    np.testing.assert_array_equal(compile_definition("BetaInc", "float64")(a, b, x), np.ones(3))


@pytest.mark.slow
def test_the_tiniest_numbers_have_results():
    """Rounding errors of their logarithms have no floats."""
    a, b, x = pt.dvectors("a", "b", "x")
    f = pytensor.function([a, b, x], pt.betainc(a, b, x), mode="ONNX")
    results = f([0.5, 170.0, 0.5], [1e-20, 5e-324, 2.3e-308], [5e-324, 0.3, 5e-324])
    np.testing.assert_allclose(results, [4.445517498970155e-182, 0, 0], rtol=1e-13)
