import mpmath as mp
import numpy as np
import pytensor.tensor as pt
import pytest
import scipy.special

from tests.conftest import compare_onnx_and_py
from tests.functions.special.accuracy import DTYPES, compile_definition

inf, nan = np.inf, np.nan


@pytest.mark.few(1)
@pytest.mark.parametrize("dtype", DTYPES)
def test_values_at_zeros_and_infinities_are_those_of_scipy(dtype):
    v, x = (
        grid.ravel().astype(dtype)
        for grid in np.meshgrid(
            [0, 1, 2, -1, -2, 0.5, -0.5, -1.5, -1e-20, 30, -30.5, -300.5, 1e6, nan],
            [0.0, -0.0, 1, 2.5, -1, inf, -inf, nan],
        )
    )
    tolerance = 1e-12 if dtype == "float64" else 1e-6
    found = compile_definition("Jv", dtype)(v, x)
    np.testing.assert_allclose(found, scipy.special.jv(v, x).astype(dtype), rtol=tolerance)


def test_orders_whose_squares_overflow_give_zero():
    orders, arguments = [1e150, 1e154, 1e155, 1e300, 1.7e308], [0.0, 1.0, -1.0, 5e-324, 1e5, 5e11]
    v, x = (grid.ravel() for grid in np.meshgrid([*orders, *np.negative(orders)], arguments))
    jv = compile_definition("Jv", "float64")
    np.testing.assert_array_equal(jv(v, x), np.zeros(len(v)))
    np.testing.assert_array_equal(jv(np.array([inf, -inf]), np.ones(2)), [0, 0])


def test_results_of_small_arguments_overflow_last():
    points = [(-34.492581512, 2.79e-8), (-20 - 1e-9, 1.4e-14), (-0.5, 5e-324), (-5e-324, 0.5)]
    v, x = np.transpose(points)
    expected = [float(mp.besselj(*map(mp.mpf, map(float, point)))) for point in points]
    assert np.isfinite(expected).all()
    found = compile_definition("Jv", "float64")(v, x)
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_what_needs_too_many_steps_is_nan():
    jv = compile_definition("Jv", "float64")
    v, x = np.array([4e7, -30000.5, 2e7, 3e4, 2.5]), np.array([4e7, 3.01e4, 1e12, 9e4, 3.0])
    found = jv(v, x)
    assert np.isnan(found).tolist() == [True, True, True, False, False]
    np.testing.assert_allclose(found[3:], scipy.special.jv(v, x)[3:], rtol=1e-8)


@pytest.mark.slow
def test_large_orders_that_nearly_equal_the_argument():
    # At the first two, orders of the recurrence are beyond 2**13 and have one bit less.
    v = np.array([8109.025485717156, 7955.353334731694, 5000.0, 15000.7, -12000.0])
    x = np.array([8158.083483533094, 8150.743397245504, 5100.0, 14950.0, 12010.0])
    points = [map(mp.mpf, map(float, point)) for point in zip(v, x, strict=True)]
    expected = [float(mp.besselj(*point, maxprec=200_000)) for point in points]
    found = compile_definition("Jv", "float64")(v, x)
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    # DLMF 10.19.8 at the order itself.
    order = np.array([1e5, 1e6, 3e7])
    root = np.cbrt(order)
    first, second = scipy.special.airy(0)[0] * np.cbrt(2), scipy.special.airy(0)[1] * np.cbrt(4)
    leading = first / root * (1 - 1 / (225 * order**2)) + second / (70 * root**5)
    found = compile_definition("Jv", "float64")(order, order)
    np.testing.assert_allclose(found, leading, rtol=1e-11)


def test_arguments_of_any_size_are_accurate_beside_the_amplitude():
    rng = np.random.default_rng(0)
    x = np.exp(rng.uniform(np.log(2.0**39), np.log(1e299), 100))
    v = rng.uniform(-100, 100, 100)
    found = compile_definition("Jv", "float64")(v, x)
    with mp.workprec(1200):
        # Hankel's expansion (DLMF 10.17.3), whose first three terms are exact to 1e-23.
        for point in zip(v, x, found, strict=True):
            order, argument, value = (mp.mpf(float(number)) for number in point)
            square, eight = 4 * order**2, 8 * argument
            even = 1 - (square - 1) * (square - 9) / (2 * eight**2)
            phase = argument - (2 * order + 1) * mp.pi / 4
            wave = mp.cos(phase) * even - mp.sin(phase) * (square - 1) / eight
            size = mp.sqrt(2 / (mp.pi * argument))
            assert abs(value / size - wave) < 1e-15


def test_orders_of_any_size_and_much_larger_arguments():
    rng = np.random.default_rng(0)
    v = np.exp(rng.uniform(np.log(2.0**30), np.log(1e70), 100))
    x = v * v / rng.uniform(0.1, 90, 100)
    found = compile_definition("Jv", "float64")(v, x)
    with mp.workprec(1000):
        # The first term of Debye's expansion (DLMF 10.19.6) is exact to 1e-17.
        for point in zip(v, x, found, strict=True):
            order, argument, value = (mp.mpf(float(number)) for number in point)
            w = mp.sqrt((argument - order) * (argument + order))
            wave = mp.cos(w - order * mp.acos(order / argument) - mp.pi / 4)
            assert abs(value * mp.sqrt(mp.pi * w / 2) - wave) < 1e-14


@pytest.mark.slow
def test_gradients_by_the_argument():
    v, x = pt.vectors("v", "x")
    points = [np.array([0.0, 1.0, 2.5, -1.5, 30.0]), np.array([0.5, 3.0, 7.0, 20.0, 25.0])]
    value = pt.jv(v, x)
    first = pt.grad(value.sum(), x)
    second = pt.grad(first.sum(), x)
    compare_onnx_and_py([v, x], [value, first, second], points, rtol=1e-10)


def test_shapes_and_dtypes():
    assert compile_definition("Jv", "float32")(*np.zeros((2, 0), "f4")).shape == (0,)
    v, x, s = pt.col("v", dtype="int64"), pt.row("x", dtype="float32"), pt.scalar("s")
    values = [np.array([[0], [3]]), np.ones((1, 2), "f4"), np.array(1.5)]
    compare_onnx_and_py([v, x, s], [pt.jv(v, x), pt.jv(s, s)], values, rtol=1e-6)
