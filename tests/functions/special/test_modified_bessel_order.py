from dataclasses import replace
from fractions import Fraction
from functools import cache

import mpmath as mp
import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.special
from pytensor.scalar import math as psm

from pytensor_onnx.ops.special.special_ops import Kv, TimesIv
from tests.conftest import compare_onnx_and_py
from tests.functions.special.accuracy import DTYPES, compile_definition
from tests.operations.regions import BOTH, FLOAT64, Accuracy, Region

inf, nan = np.inf, np.nan
# In ulp: 1e-13 relative.
BOUND = 450.0


@cache
def debye_polynomials() -> list[list[Fraction]]:
    """Coefficients in ``p`` of the polynomials of DLMF 10.41.9."""
    found = [[Fraction(1)]]
    for _ in range(12):
        last, following = found[-1], [Fraction(0)] * (len(found[-1]) + 3)
        for power, c in enumerate(last):
            following[power + 1] += c * power / 2 + c / (8 * (power + 1))
            following[power + 3] -= c * power / 2 + 5 * c / (8 * (power + 3))
        found.append(following)
    return found


def expansion(v: mp.mpf, x: mp.mpf, sign: int) -> mp.mpf:
    """Debye's expansion, which 13 terms give to 1e-24 for large orders or arguments."""
    w = mp.sqrt(v * v + x * x)
    p, exponent = v / w, v * (v / (w + x) - mp.asinh(v / x))
    total = mp.mpf(0)
    for k, u in enumerate(debye_polynomials()):
        terms = [mp.mpf(c.numerator) / c.denominator * p ** (i - k) for i, c in enumerate(u) if c]
        total += mp.fsum(terms) * (sign / w) ** k
    factor = 1 / (2 * mp.pi) if sign > 0 else mp.pi / 2
    return mp.exp(sign * exponent) * mp.sqrt(factor / w) * total


def exact_ive(v: mp.mpf, x: mp.mpf) -> mp.mpf:
    if v > 0 and mp.hypot(v, x) > 200:
        return expansion(v, x, 1)
    return mp.besseli(v, x) * mp.exp(-abs(x))


def exact_kve(v: mp.mpf, x: mp.mpf) -> mp.mpf:
    v = abs(v)
    if mp.hypot(v, x) > 200:
        return expansion(v, x, -1)
    return mp.besselk(v, x) * mp.exp(x)


def box(last: float, dtypes: tuple[str, ...] = FLOAT64, *, sign: float = 1.0) -> Region:
    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        return [sign * rng.uniform(0, last, size), rng.uniform(0.1, last, size)]

    start = "0" if sign > 0 else f"-{last:g}"
    return Region(
        f"{start} ≤ v ≤ {last if sign > 0 else 0:g}, 0.1 ≤ x ≤ {last:g}", draw, dtypes, BOUND
    )


def integers() -> Region:
    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        return [rng.integers(0, 12, size).astype("f8"), np.exp(rng.uniform(-4, 4, size))]

    return Region("v = 0 … 11, 0.02 ≤ x ≤ 55", draw, BOTH, BOUND)


def small_arguments() -> Region:
    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        return [rng.uniform(0, 3, size), np.exp(rng.uniform(np.log(1e-9), 0, size))]

    return Region("0 ≤ v ≤ 3, 1e-9 ≤ x ≤ 1", draw, BOTH, BOUND)


def small_orders() -> Region:
    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        return [np.exp(rng.uniform(np.log(1e-9), 0, size)), np.exp(rng.uniform(-4, 4, size))]

    return Region("1e-9 ≤ v ≤ 1, 0.02 ≤ x ≤ 55", draw, BOTH, BOUND)


def large() -> Region:
    """Large orders and arguments, and results that neither overflow nor underflow."""

    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        v = np.exp(rng.uniform(np.log(1e3), np.log(1e8), size))
        return [v, v * v / np.exp(rng.uniform(0, np.log(1400), size))]

    return Region("1e3 ≤ v ≤ 1e8, v² / 1400 ≤ x ≤ v²", draw, FLOAT64, BOUND)


def large_orders() -> Region:
    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        return [rng.uniform(0, 500, size), rng.uniform(200, 700, size)]

    return Region("0 ≤ v ≤ 500, 200 ≤ x ≤ 700", draw, FLOAT64, BOUND)


def decaying() -> Region:
    """Results that are exponentials of hundreds, for arguments above and below the order."""

    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        half_angle, exponent = rng.uniform(0.05, 8, size), rng.uniform(200, 700, size)
        v = exponent / (2 * half_angle - np.tanh(half_angle))
        return [v, v / np.sinh(2 * half_angle)]

    return Region("results exp(±200) … exp(±700)", draw, FLOAT64, BOUND)


def quadrature_of_large_orders() -> Region:
    """Arguments and orders for which the step of a quadrature of ``K`` must be smallest."""

    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        x = rng.uniform(1, 4, size)
        return [np.sqrt(rng.uniform(33.5, 36, size) ** 2 - x * x), x]

    return Region("33.5 ≤ √(v² + x²) ≤ 36, 1 ≤ x ≤ 4", draw, FLOAT64, BOUND / 3)


def overflowing_exponentials(last: float) -> Region:
    """Return a region of finite results whose exponential or scaled function is not finite."""

    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        return [rng.uniform(200, 300, size), rng.uniform(600, last, size)]

    return Region(f"200 ≤ v ≤ 300, 600 ≤ x ≤ {last}", draw, FLOAT64, BOUND)


def with_factors(region: Region) -> Region:
    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        return [rng.uniform(-2, 2, size), *region.draw(rng, size, dtype)]

    return replace(region, label=f"{region.label}, times -2 … 2", draw=draw)


REGIONS = [
    *(box(8, BOTH), box(20), integers()),
    *(small_arguments(), small_orders(), large_orders(), large(), decaying()),
    quadrature_of_large_orders(),
]
IN_RANGE = [box(8, BOTH), box(20), small_arguments(), small_orders(), decaying()]
CASES = [
    Accuracy(psm.Ive, exact_ive, [*REGIONS, box(20, sign=-1)], scipy.special.ive, 50),
    Accuracy(psm.Kve, exact_kve, REGIONS, scipy.special.kve, 50),
    Accuracy(
        TimesIv,
        lambda factor, v, x: factor * exact_ive(v, x) * mp.exp(x),
        [with_factors(region) for region in (*IN_RANGE, overflowing_exponentials(730))],
        lambda factor, v, x: factor * scipy.special.iv(v, x),
        50,
    ),
    Accuracy(
        Kv,
        lambda v, x: exact_kve(v, x) * mp.exp(-x),
        [*IN_RANGE, overflowing_exponentials(700)],
        scipy.special.kv,
        50,
    ),
]


@pytest.mark.parametrize(("name", "exact"), [("Ive", exact_ive), ("Kve", exact_kve)])
def test_orders_and_arguments_of_any_size(name, exact):
    points = [(1, 1.7e308), (0.5, 1e308), (1e150, 1e300), (668, 1e-292), (1e6, 5e-324), (1e305, 1)]
    v, x = np.transpose(points)
    expected = [float(exact(*map(mp.mpf, map(float, point)))) for point in points]
    found = compile_definition(name, "float64")(v, x)
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_reflected_orders_whose_second_kind_overflows():
    points = [(985.5, 600.2), (991.1, 398.0), (824.9, 383.0), (1200.3, 700.7)]
    # Growth or damping alone overflow or underflow.
    points += [(1477.73, 834.02), (1749.45, 773.66), (1414.71, 488.19), (2434.39, 1105.97)]
    v, x = np.transpose(points)
    expected = []
    with mp.workprec(200):
        for point in points:
            order, argument = (mp.mpf(float(number)) for number in point)
            second = 2 / mp.pi * mp.sinpi(order) * expansion(order, argument, -1)
            expected.append(float(expansion(order, argument, 1) + second * mp.exp(-2 * argument)))
    np.testing.assert_allclose(compile_definition("Ive", "float64")(-v, x), expected, rtol=1e-13)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["Ive", "Kve"])
def test_values_at_zeros_and_infinities_are_those_of_scipy(name, dtype):
    v, x = (
        grid.ravel().astype(dtype)
        for grid in np.meshgrid(
            [0, 1, 2, -1, -2, 0.5, -0.5, -1.5, 30, inf], [0.0, -0.0, 1, 2.5, -1, inf, -inf, nan]
        )
    )
    kept = ~(np.isinf(v) & (x == 0))
    expected = getattr(scipy.special, name.lower())(v, x)
    found = compile_definition(name, dtype)(v, x)
    tolerance = 1e-12 if dtype == "float64" else 1e-6
    np.testing.assert_allclose(found[kept], expected[kept], rtol=tolerance)


@pytest.mark.slow
def test_gradients_by_the_argument():
    v, x = pt.vectors("v", "x")
    results = [pt.ive(v, x), pt.kve(v, x), pt.iv(v, x), pt.kv(v, x)]
    first = [pt.grad(y.sum(), x) for y in results]
    second = [pt.grad(y.sum(), x) for y in first[:2]]
    points = [np.array([0.0, 1.0, 2.5, 30.0]), np.array([0.5, 3.0, 7.0, 20.0])]
    compare_onnx_and_py([v, x], [*results, *first, *second], points, rtol=1e-10)


def test_gradients_of_orders_zero_and_one():
    x = pt.vector("x")
    first = pt.grad(pt.i0(x).sum(), x)
    second = pt.grad(first.sum(), x)
    compare_onnx_and_py([x], [first, second], [np.array([-3.0, 0.5, 2.0, 30.0])], rtol=1e-11)


@pytest.mark.slow
def test_shapes_and_dtypes():
    v, x = pt.col("v", dtype="int64"), pt.row("x", dtype="float32")
    s, e = pt.scalar("s"), pt.matrix("e")
    outputs = [f(*pair) for f in (pt.ive, pt.kve) for pair in ((v, x), (s, e))]
    values = [np.array([[0], [3]]), np.ones((1, 2), "f4"), np.array(1.5), np.ones((0, 2))]
    compare_onnx_and_py([v, x, s, e], outputs, values, rtol=1e-6)


def slope(function, v, x):
    """Derivative of a modified Bessel function by its argument (DLMF 10.29.1)."""
    sign = -1 if function is exact_kv else 1
    return sign * (function(v - 1, x) + function(v + 1, x)) / 2


def exact_iv(v: mp.mpf, x: mp.mpf) -> mp.mpf:
    return mp.besseli(v, x).real


def exact_kv(v: mp.mpf, x: mp.mpf) -> mp.mpf:
    return exact_kve(v, x) * mp.exp(-x)


def numbers(function, *points):
    """Return the finite values of a function in high precision, rounded."""
    with mp.workdps(60):
        return [
            float(function(*map(mp.mpf, map(float, point)))) for point in zip(*points, strict=True)
        ]


FIRST = [
    *((0, 713), (2, 712), (2, 713.95), (0.5, 713), (100, 720), (-2.5, 712), (-3, -712), (3, -712)),
    *((1200, 750), (1000, 750), (400, 400), (20, 30), (0, 33.9), (0, 34.1), (-20.5, 33), (2, 1e-5)),
]
SECOND = [
    (1000, 700),
    (1200, 900),
    (2, 700),
    (0.5, 3),
    (2.5, 0.2),
    (-3, 30),
    (300, 100),
    (0, 1e-300),
]


@pytest.mark.parametrize(
    ("function", "exact", "points"),
    [(pt.iv, exact_iv, FIRST), (pt.kv, exact_kv, SECOND)],
)
def test_functions_are_finite_where_their_exponential_is_not(function, exact, points):
    v, x = pt.vectors("vx")
    value = function(v, x)
    results = [value, pt.grad(value.sum(), x)]
    orders, arguments = np.transpose(points)
    found = pytensor.function([v, x], results, mode="ONNX")(orders, arguments)
    expected = [numbers(exact, orders, arguments)]
    expected.append(numbers(lambda *p: slope(exact, *p), orders, arguments))
    np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.parametrize(("dtype", "rtol"), [("float32", 2e-7), ("float64", 1e-13)])
def test_derivatives_are_finite_up_to_the_largest_numbers(dtype, rtol):
    x = pt.vector("x", dtype=dtype)
    value = np.array([1, 90, 91.8, -91.8] if dtype == "float32" else [709.5, 713.9, -713.9], dtype)
    results = [pt.iv(2, x), pt.i1(x), pt.i0(x)]
    results += [pt.grad(y.sum(), x) for y in results]
    found = pytensor.function([x], results, mode="ONNX")(value)
    expected = [numbers(lambda a, n=n: exact_iv(n, a), value) for n in (2, 1, 0)]
    expected += [numbers(lambda a, n=n: slope(exact_iv, n, a), value) for n in (2, 1, 0)]
    assert all(y.dtype == dtype for y in found)
    np.testing.assert_allclose(found, expected, rtol=rtol)


def test_products_with_exponentials_of_other_numbers_stay():
    x, y = pt.vectors("xy")
    results = [pt.ive(1, x) * pt.exp(abs(y)), pt.kve(1, x) * pt.exp(-y), pt.ive(1, x) * pt.exp(-x)]
    results += [pt.iv(1, x[:, None]) * y, pt.iv(1, x) ** 2, pt.iv(1, x) * pt.kv(1, x)]
    compare_onnx_and_py([x, y], results, [np.array([0.5, 3.0]), np.array([1.0, -2.0])], rtol=1e-12)


def test_sums_of_scaled_functions_keep_their_exponential():
    v, x = pt.matrix("v", shape=(None, 1)), pt.vector("x")
    results = [reduce(pt.ive(v, x), axis=1) * pt.exp(abs(x)) for reduce in (pt.sum, pt.prod)]
    compare_onnx_and_py([v, x], results, [np.array([[0.5], [1.5]]), np.array([1.0, 2.0])])


def test_products_in_loops():
    x = pt.vector("x")
    values = pytensor.scan(lambda x: pt.iv(2, x), [x], return_updates=False)
    found = pytensor.function([x], values, mode="ONNX")([1.0, 712.0])
    np.testing.assert_allclose(found, numbers(lambda a: exact_iv(2, a), [1, 712]), rtol=1e-13)
