import mpmath as mp
import numpy as np
import pytensor.tensor as pt
import pytest
import scipy.special
from pytensor.scalar import math as psm

from tests.conftest import compare_onnx_and_py
from tests.functions.special.accuracy import DTYPES, compile_definition
from tests.functions.special.test_modified_bessel_order import debye_polynomials
from tests.operations.regions import BOTH, FLOAT64, Accuracy, Region, Sampler

inf, nan = np.inf, np.nan
# In ulp: 1e-13 of the amplitude. Elsewhere errors are some units of numbers that cancel a little.
LOOSE, TIGHT = 450.0, 100.0


def amplitude(v: mp.mpf, x: mp.mpf) -> mp.mpf:
    """Size of the oscillation, and zero where there is none."""
    v, x = abs(v), abs(x)
    if x <= v:
        return mp.mpf(0)
    return mp.sqrt(2 / (mp.pi * max(mp.sqrt((x - v) * (x + v)), mp.cbrt(v * v))))


def exact_jv(v: mp.mpf, x: mp.mpf) -> mp.mpf:
    """Value by mpmath, and by Debye's expansion (DLMF 10.19.6) where that is exact to 1e-22."""
    if x < 1e5 or x < 2 * abs(v):
        return mp.besselj(v, x)
    w = mp.sqrt((x - v) * (x + v))
    total = mp.mpc(0)
    for k, u in enumerate(debye_polynomials()):
        terms = [
            mp.mpf(c.numerator) / c.denominator * (1j * v / w) ** i for i, c in enumerate(u) if c
        ]
        total += mp.fsum(terms) / v**k
    phase = w - v * mp.acos(v / x) - mp.pi / 4
    return mp.sqrt(2 / (mp.pi * w)) * (total * mp.expj(-phase)).real


def region(
    label: str, draw: Sampler, dtypes: tuple[str, ...] = BOTH, bound: float = TIGHT
) -> Region:
    return Region(label, draw, dtypes, bound, scale=amplitude)


def box(low: float, high: float, first: float, last: float, bound: float = TIGHT) -> Region:
    """Orders and arguments between bounds, by the logarithm for wide arguments."""
    wide = last > 100 * first > 0

    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        ends = np.log([first, last]) if wide else (first, last)
        x = rng.uniform(*ends, size)
        return [rng.uniform(low, high, size), np.exp(x) if wide else x]

    dtypes = BOTH if high <= 20 else FLOAT64
    return region(f"v {low:g} … {high:g}, x {first:g} … {last:g}", draw, dtypes, bound)


def integers(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
    return [rng.integers(-20, 21, size).astype("f8"), rng.uniform(-60, 60, size)]


def next_to_negative_integers(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
    distances = rng.choice([-1, 1], size) * np.exp(rng.uniform(np.log(1e-12), np.log(1e-3), size))
    return [distances - rng.integers(0, 9, size), rng.uniform(0.01, 12, size)]


def below_the_order(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
    v = rng.uniform(100, 500, size)
    # The smallest results are 1e-300.
    return [v, v * rng.uniform(0.2, 0.95, size)]


def tiny_results(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
    """Orders whose exponents are sums of larger numbers, and results from 1e-300 to 1e-100."""
    v = np.exp(rng.uniform(np.log(500), np.log(5000), size))
    exponent = rng.uniform(230, 680, size)
    angle = np.cbrt(3 * exponent / v)
    for _ in range(50):
        angle -= (angle - np.tanh(angle) - exponent / v) / np.tanh(angle) ** 2
    return [v, v / np.cosh(angle)]


def by_hankel(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
    x = rng.uniform(21, 60, size)
    return [np.sqrt(2 * x) * rng.uniform(0, 1, size), x]


def next_to_the_order(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
    v = np.exp(rng.uniform(np.log(20), np.log(5000), size))
    return [v, v + np.cbrt(v) * rng.uniform(-5, 5, size)]


def below_two(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
    v, x = (np.exp(rng.uniform(*np.log(ends), size)) for ends in [(0.1, 20), (1e-8, 2)])
    return [-v, x]


CASES = [
    Accuracy(
        psm.Jv,
        exact_jv,
        [
            *(box(0, 20, 0.01, 30), box(-20, 0, 1, 30)),
            *(box(-2, 2, 1e-9, 2.5), box(-20, 20, 60, 1e8), box(-100, 100, 0.1, 200, LOOSE)),
            *(box(-500, 500, 500, 2000, LOOSE), box(500, 1e5, 2e5, 1e9, 60 * LOOSE)),
            region("integers v -20 … 20, x -60 … 60", integers),
            region("v -20 … -0.1, x 1e-8 … 2", below_two, FLOAT64),
            region("next to v = 0, -1 … -8, x 0.01 … 12", next_to_negative_integers),
            region("v 100 … 500, x/v 0.2 … 0.95", below_the_order, FLOAT64, LOOSE),
            region("v 500 … 5000, results 1e-300 … 1e-100", tiny_results, FLOAT64, LOOSE),
            region("v 0 … √(2x), x 21 … 60", by_hankel, FLOAT64, 4.0),
            region("v 20 … 5000, (x - v)/∛v -5 … 5", next_to_the_order, FLOAT64, 2.5 * LOOSE),
        ],
        scipy.special.jv,
        25,
    )
]


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
