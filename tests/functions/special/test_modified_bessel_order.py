import mpmath as mp
import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.special

from tests.conftest import compare_onnx_and_py
from tests.functions.special.accuracy import DTYPES, compile_definition
from tests.operations.modified_bessel_order import exact_ive, exact_kve, expansion

inf, nan = np.inf, np.nan


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


@pytest.mark.few(3)
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_products_with_exponentials_of_other_numbers_stay():
    x, y = pt.vectors("xy")
    results = [pt.ive(1, x) * pt.exp(abs(y)), pt.kve(1, x) * pt.exp(-y), pt.ive(1, x) * pt.exp(-x)]
    results += [pt.iv(1, x[:, None]) * y, pt.iv(1, x) ** 2, pt.iv(1, x) * pt.kv(1, x)]
    compare_onnx_and_py([x, y], results, [np.array([0.5, 3.0]), np.array([1.0, -2.0])], rtol=1e-12)


@pytest.mark.slow
def test_sums_of_scaled_functions_keep_their_exponential():
    v, x = pt.matrix("v", shape=(None, 1)), pt.vector("x")
    results = [reduce(pt.ive(v, x), axis=1) * pt.exp(abs(x)) for reduce in (pt.sum, pt.prod)]
    compare_onnx_and_py([v, x], results, [np.array([[0.5], [1.5]]), np.array([1.0, 2.0])])


def test_products_in_loops():
    x = pt.vector("x")
    values = pytensor.scan(lambda x: pt.iv(2, x), [x], return_updates=False)
    found = pytensor.function([x], values, mode="ONNX")([1.0, 712.0])
    np.testing.assert_allclose(found, numbers(lambda a: exact_iv(2, a), [1, 712]), rtol=1e-13)
