"""Roots and minima are those of PyTensor's calls of SciPy."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode
from pytensor.tensor.optimize import minimize, minimize_scalar, root, root_scalar

from pytensor_onnx import ONNXLinker, UnsupportedOpError, export_onnx
from pytensor_onnx.rewriting import ONNX_QUERY
from tests.conftest import compare_onnx_and_py

ROOTS = [
    ("brentq", {"bracket": [0.0, 9.0]}),
    ("brentq", {"bracket": [9.0, 0.0], "optimizer_kwargs": {"xtol": 1e-3, "rtol": 1e-2}}),
    ("bisect", {"bracket": [0.0, 9.0]}),
    ("secant", {}),
    ("secant", {"optimizer_kwargs": {"x1": 4.0}}),
    ("newton", {"jac": True}),
    ("halley", {"jac": True, "hess": True}),
]
MINIMA = [
    ("brent", {}),
    ("brent", {"bracket": [-3.0, 0.0, 4.0]}),
    ("golden", {"bracket": [5.0, 4.0]}),
    ("bounded", {"bounds": [2.5, 7.0], "optimizer_kwargs": {"options": {"xatol": 1e-8}}}),
]


def given(dtype="float64"):
    return pt.scalar("x", dtype=dtype), pt.scalar("a", dtype=dtype)


@pytest.mark.parametrize(("method", "options"), ROOTS)
def test_roots_of_numbers(method, options):
    x, a = given()
    solution, success = root_scalar(pt.exp(x) - a * pt.cos(x) - 3, x, method=method, **options)
    outputs = [solution, success, pt.grad(solution, a)]
    values = [np.float64(0.5), np.float64(2.0)]
    compare_onnx_and_py([x, a], outputs, values, rtol=1e-11)


@pytest.mark.parametrize(("method", "options"), MINIMA)
@pytest.mark.slow
def test_minima_of_numbers(method, options):
    x, a = given()
    value = (x - a) ** 4 + pt.sin(3 * x) + x**2
    solution, success = minimize_scalar(value, x, method=method, **options)
    # Functions are flat at a minimum: values that differ by rounding lead to points that differ by
    # its square root, where a golden section ends elsewhere than Brent's method too.
    rtol = 3e-8 if method != "golden" else 1e-7
    values = [np.float64(0.5), np.float64(2.0)]
    compare_onnx_and_py([x, a], [solution, success], values, rtol=rtol)
    compare_onnx_and_py([x, a], [pt.grad(solution, a)], values, rtol=1e-6)


@pytest.mark.parametrize(("dtype", "start"), [("float64", [9.0, -2.0]), ("float32", [1.0, 1.0])])
@pytest.mark.few(1)
def test_roots_of_vectors(dtype, start):
    x, b = pt.vector("x", dtype=dtype), pt.vector("b", dtype=dtype)
    equations = pt.stack([x[0] ** 2 + x[1] - b[0], x[0] - x[1] ** 3 + b[1]])
    solution, success = root(equations, x)
    values = [np.array(start, dtype), np.array([3.0, 2.0], dtype)]
    outputs = [solution, success]
    if dtype == "float64":
        outputs.append(pt.grad(solution.sum(), b))
    rtol = 1e-9 if dtype == "float64" else 1e-5
    compare_onnx_and_py([x, b], outputs, values, rtol=rtol)


@pytest.mark.slow
def test_roots_of_several_variables():
    x, y, a = pt.vector("x"), pt.scalar("y"), pt.scalar("a")
    equations = pt.concatenate([x**2 - a, [y + x.sum() - 1]])
    (first, second), success = root(equations, [x, y])
    values = [np.array([1.0, 2.0, 3.0]), np.float64(0.0), np.float64(2.0)]
    compare_onnx_and_py([x, y, a], [first, second, success], values, rtol=1e-9)


def test_a_start_without_a_root_nearby_is_no_success():
    x, a = given()
    point, success = root(x**2 + a, x)
    function = pytensor.function([x, a], [point, success], mode="ONNX")
    assert not function(1.0, 2.0)[1]
    assert function(1.0, -2.0)[1]


@pytest.mark.slow
def test_minima_of_vectors():
    """Of the two minima it is the one that SciPy finds from there."""
    x, a = pt.vector("x"), pt.scalar("a")
    value = pt.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (a - x[:-1]) ** 2)
    solution, success = minimize(value, x)
    values = [np.array([-1.2, 1.0, 0.3, 0.5]), np.float64(1.0)]
    outputs = [solution, success, pt.grad(solution.sum(), a)]
    compare_onnx_and_py([x, a], outputs, values, rtol=1e-5)  # of gradients of 1e-5


@pytest.mark.slow
def test_minima_in_float32():
    x, a = pt.vector("x", dtype="float32"), pt.scalar("a", dtype="float32")
    solution, success = minimize(pt.sum(pt.cosh(x - a)), x, method="L-BFGS-B")
    values = [np.float32([1.0, -0.5]), np.float32(0.25)]
    # The largest gradient of a minimum, 1e-5, leaves 4e-5 of it open.
    compare_onnx_and_py([x, a], [solution, success], values, rtol=1e-4)


@pytest.mark.slow
def test_searches_compute_in_float64_under_a_floatx_of_float32():
    x, a = pt.dvector("x"), pt.dscalar("a")
    with pytensor.config.change_flags(floatX="float32"):
        outputs = [minimize(pt.sum((x - a) ** 2), x)[0], root(x**2 - a, x)[0]]
        function = pytensor.function([x, a], outputs, mode="ONNX")
    least, zero = function([1.0, 1.5], 2.0)
    np.testing.assert_allclose(least, 2.0, rtol=1e-6)
    np.testing.assert_allclose(zero, np.sqrt(2.0), rtol=1e-9)


@pytest.mark.slow
def test_a_minimum_of_a_likelihood():
    """The regression of least squares is the minimum of the squares."""
    rng = np.random.default_rng(0)
    data, targets = rng.standard_normal((40, 3)), rng.standard_normal(40)
    x, y, b = pt.matrix("x"), pt.vector("y"), pt.vector("b")
    solution, success = minimize(pt.sum((y - x @ b) ** 2), b, optimizer_kwargs={"tol": 1e-10})
    function = pytensor.function([b, x, y], [solution, success], mode="ONNX")
    found, ok = function(np.zeros(3), data, targets)
    assert ok
    np.testing.assert_allclose(found, np.linalg.lstsq(data, targets)[0], rtol=1e-9)


@pytest.mark.slow
def test_a_number_counts_as_a_vector_of_one():
    x, a = given()
    least, done = minimize((x - a) ** 2 + pt.exp(x), x)
    zero, found = root(pt.exp(x) - a, x)
    values = [np.float64(0.5), np.float64(2.0)]
    # The largest gradient of a minimum, 1e-5, leaves 3e-6 of it open; both take the same steps.
    compare_onnx_and_py([x, a], [least, done, zero, found], values, rtol=1e-6)


def test_a_file_is_compared_with_the_same_search(tmp_path):
    x, a = given()
    least, success = minimize_scalar((x - a) ** 4 + x, x)
    program = export_onnx([x, a], [least, success], tmp_path / "least.onnx")
    found, converged = program(0.5, 2.0)
    assert converged
    # A minimum is known to the square root of the rounding error.
    np.testing.assert_allclose(found, 2 - 0.25 ** (1 / 3), rtol=1e-7)


def test_equal_signs_are_an_error():
    x, a = given()
    solution, _ = root_scalar(x**2 + a, x, method="brentq", bracket=[0.0, 1.0])
    function = pytensor.function([x, a], solution, mode="ONNX")
    with pytest.raises(ValueError, match="must have different signs"):
        function(0.0, 1.0)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.slow
def test_functions_that_are_not_finite_are_no_success(value):
    x, a = given()
    searches = [minimize((x - a) ** 2, x)[1], root(x - a, x)[1], root_scalar(x - a, x)[1]]
    function = pytensor.function([x, a], searches, mode="ONNX")
    assert not any(function(0.5, value))


@pytest.mark.slow
def test_a_search_that_has_lost_its_way_is_no_success():
    """Values that are not numbers have no sign, and flat functions no slope and no minimum."""
    x, a, v, b = *given(), pt.vector("v"), pt.vector("b")
    hole = pt.switch(pt.abs(x - 0.5) < 1, np.nan, x - a)
    searches = [
        *(
            root_scalar(hole, x, method=name, bracket=[-3.0, 5.0])[1]
            for name in ("brentq", "bisect")
        ),
        root_scalar(pt.sqrt(x) - a, x, method="brentq", bracket=[-1.0, 5.0])[1],
        root_scalar(pt.sqrt(x) - a, x, method="bisect", bracket=[-1.0, 5.0])[1],
        minimize_scalar(pt.sqrt(x - 3) + x, x)[1],
        minimize_scalar(x * (a - a), x)[1],
        minimize_scalar(pt.sqrt(x - 9) + x, x, method="bounded", bounds=[0.0, 4.0])[1],
        root(v * 0 + b, v)[1],
    ]
    values = [np.float64(0.5), np.float64(0.2), np.ones(2), np.ones(2)]
    program = compare_onnx_and_py([x, a, v, b], searches, values)
    assert not any(program(*values))


@pytest.mark.parametrize(
    ("search", "message"),
    [
        (lambda f, x: minimize(f, x, method="Nelder-Mead"), 'use "BFGS"'),
        (lambda f, x: minimize(f, x, optimizer_kwargs={"bounds": [(0, 1)]}), "'bounds'"),
        (lambda f, x: minimize(pt.betaincinv(x, f, 0.5), x, jac=False), "has no gradient"),
        (lambda f, x: root(f, x, method="krylov"), 'use "hybr"'),
        (lambda f, x: root_scalar(f, x, method="bisect"), "needs a bracket"),
        (lambda f, x: minimize_scalar(f, x, method="bounded"), "needs bounds"),
    ],
)
def test_what_has_no_counterpart_is_refused(search, message):
    x, a = given()
    solution, _ = search((x - a) ** 2, x)
    strict = Mode(ONNXLinker(python_fallback=False), ONNX_QUERY)
    with pytest.raises(UnsupportedOpError, match=message):
        pytensor.function([x, a], solution, mode=strict, on_unused_input="ignore")


def test_methods_without_a_counterpart_run_in_python():
    x, a = given()
    searches = [
        root_scalar(pt.exp(x) - a, x, method="toms748", bracket=[-3.0, 5.0]),
        minimize((x - a) ** 2, x, method="Nelder-Mead"),
    ]
    outputs = [result + 1 for search in searches for result in search]
    function = pytensor.function([x, a], outputs, mode="ONNX")
    expected = pytensor.function([x, a], outputs, mode="FAST_COMPILE")(0.5, 1.5)
    with pytest.warns(UserWarning, match='run in Python(.|\n)*use "BFGS"'):
        found = function(0.5, 1.5)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
