import mpmath as mp
import numpy as np
import pytensor.tensor as pt
import pytest
import scipy.special

from pytensor_onnx import compile_onnx
from tests.conftest import compare_onnx_and_py
from tests.functions.special.accuracy import compile_definition

inf, nan = np.inf, np.nan


@pytest.mark.slow
def test_even_orders_next_to_points_halfway_between_poles_are_accurate_beside_two_terms():
    rng = np.random.default_rng(0)
    n, m = 2.0 * rng.integers(1, 6, 300), rng.integers(0, 30, 300)
    distance = np.exp(rng.uniform(-34, -5.2, 300)) * rng.choice([-1, 1], 300)
    x = -m - 0.5 + distance
    found = compile_definition("PolyGamma", "float64")(n, x)
    with mp.workprec(140):
        exact = [mp.psi(int(order), mp.mpf(float(v))) for order, v in zip(n, x, strict=True)]
    # The sum of all terms that no other one cancels, and the difference of the two largest.
    tail = scipy.special.factorial(n) * scipy.special.zeta(n + 1, 1 - x)
    largest = scipy.special.gamma(n + 2) * 2.0 ** (n + 3) * np.abs(x + m + 0.5)
    error = np.array([float(mp.mpf(float(f)) - t) for f, t in zip(found, exact, strict=True)])
    assert np.max(np.abs(error) / (tail + largest)) < 2e-15


def test_results_next_to_overflow_and_of_negative_numbers_of_large_orders_are_finite():
    n = np.array([170.0, 170.0, 100.0, 50.0, 140.0, 171.0])
    x = np.array([1.0, 0.999, 0.04, 1.8e-5, -20.4, 2.0])
    found = compile_definition("PolyGamma", "float64")(n, x)
    exact = [float(mp.psi(int(order), mp.mpf(v))) for order, v in zip(n[:-1], x, strict=False)]
    np.testing.assert_allclose(found[:-1], exact, rtol=2e-14)
    assert np.isfinite(exact).all()
    assert found[-1] == inf


def test_orders_out_of_range_leave_the_other_results_halfway_between_poles():
    found = compile_definition("PolyGamma", "float64")(
        np.array([-1e6, 2, 1e6]), np.full(3, -0.4999)
    )
    assert np.isnan(found[0])
    np.testing.assert_allclose(found[1], float(mp.psi(2, mp.mpf(-0.4999))), rtol=2e-15)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_values_at_poles_infinities_and_nan_are_those_of_scipy(dtype):
    n, x = pt.vector("n", dtype="int32"), pt.vector("x", dtype=dtype)
    points = np.array([0.0, -0.0, -1.0, -2.0, inf, -inf, nan], dtype)
    run = compile_onnx([n, x], pt.polygamma(n, x), verify=False)
    for order in (0, 1, 2, 3, -1):
        orders = np.full(len(points), order, "int32")
        with np.errstate(all="ignore"):
            expected = scipy.special.polygamma(orders, points)
        np.testing.assert_array_equal(run(orders, points), expected)


@pytest.mark.slow
def test_orders_and_numbers_broadcast_and_are_cast_as_by_pytensor():
    n, x = pt.col("n", dtype="int8"), pt.vector("x", dtype="float64")
    k, whole = pt.scalar("k", dtype="uint16"), pt.matrix("whole", dtype="int32")
    half = pt.vector("half", dtype="float16")
    values = [
        np.array([[0], [1], [2], [7]], "int8"),
        np.array([-2.5, 0.3, 11.0]),
        np.array(2, "uint16"),
        np.array([[1, 2], [3, 40]], "int32"),
        np.array([0.5, 2.0], "float16"),
    ]
    outputs = [pt.polygamma(a, b) for a, b in [(n, x), (k, whole), (k, half), (n, whole[0])]]
    compare_onnx_and_py([n, x, k, whole, half], outputs, values)


@pytest.mark.slow
def test_empty_arrays_and_scalars():
    n, x = pt.vector("n", dtype="int64"), pt.vector("x")
    k, y = pt.scalar("k", dtype="int64"), pt.scalar("y")
    values = [np.zeros(0, "int64"), np.zeros(0), np.array(3), np.array(1.5)]
    compare_onnx_and_py([n, x, k, y], [pt.polygamma(n, x), pt.polygamma(k, y)], values)


@pytest.mark.slow
def test_third_and_fourth_derivatives_of_gammaln():
    x = pt.vector("x")
    result = pt.gammaln(x)
    outputs = []
    for _ in range(4):
        result = pt.grad(result.sum(), x)
        outputs.append(result)
    compare_onnx_and_py([x], outputs, [np.array([-1.3, 0.2, 1.0, 4.0, 30.0])])
