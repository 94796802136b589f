"""Arithmetic gives the results of the graph as written: divisions, magnitudes, logarithms."""

import warnings

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx import export_onnx
from tests.conftest import compare_onnx_and_py, op_types


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_a_floor_division_by_one_rounds_floats(dtype):
    x, one = pt.vector("x", dtype=dtype), pt.constant(np.array([1], "uint8"))
    values = np.array([-0.5, 1.5, 2, np.inf, np.nan], dtype)
    compare_onnx_and_py([x], [x // one, x // 1, x // pt.ones_like(x)], [values])


def test_other_divisions_by_one_leave_no_node():
    x, n = pt.vector("x"), pt.lvector("n")
    program = compare_onnx_and_py([x, n], [-x / 1, abs(n) // 1], [np.ones(2), np.array([-3, 4])])
    assert sorted(op_types(program)) == ["Abs", "Neg"]


@pytest.mark.parametrize("dtype", ["float64", "int64"])
def test_a_known_quotient_is_the_one_of_its_operands(dtype):
    x, k = (pt.constant(np.array(numbers, dtype)) for numbers in ([0, 0], [0, 2]))
    compare_onnx_and_py([], [x / x, x / k, k / k, k / x], [])


@pytest.mark.parametrize("dtype", ["float16", "int64", "uint8"])
def test_zero_over_zero_is_nan_unless_it_is_an_integer(dtype):
    x = pt.vector("x", dtype=dtype)
    zero = pt.constant(np.zeros(1, dtype))
    compare_onnx_and_py([x], [zero / x, zero // x], [np.array([0, 1, 2], dtype)])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_quotient_written_with_a_zero_is_nan_for_zero_and_nan(dtype):
    x, n = pt.matrix("x", dtype=dtype), pt.vector("n", dtype="int64")
    zeros = np.zeros(2, dtype)
    quotients = [0 / x, zeros / x, 0 / x[0], 0.0 / n, pt.exp(0 / x), (0 / x) * n]
    values = np.array([[0, 2], [np.nan, -3], [np.inf, 1]], dtype)
    compare_onnx_and_py([x, n], quotients, [values, np.array([0, 5])])


X, Y = pt.matrix("X"), pt.vector("y")
OVERWRITTEN = {
    "standard deviation": pt.std(X, axis=1)[::-1].set(Y) * np.array([1.1, -0.8]),
    "norm": pt.sqrt((X**2).sum(axis=1))[:].set(Y) ** 2,
    "logarithm": pt.log(X[:, 0])[::-1].set(Y),
    "masked": pt.switch(X > 0, pt.sqrt(X), 2.0 * Y),
    "masked power": pt.switch(X > 0, abs(X) ** Y, 0.0),
    "of no weight": pt.zeros_like(X) * pt.log(X),
}


@pytest.mark.parametrize("name", OVERWRITTEN)
def test_an_infinite_derivative_of_an_overwritten_value_is_zero(name):
    """As in mode NUMBA, where 0 / x is zero; the graph as written has 0 / 0."""
    gradient = pt.grad(OVERWRITTEN[name].sum(), X)
    program = export_onnx([X, Y], gradient)
    function = pytensor.function([X, Y], gradient, mode="ONNX", on_unused_input="ignore")
    for run in (program, function):
        np.testing.assert_array_equal(run(np.zeros((2, 2)), np.array([0.5, 0.25])), 0)


def test_the_sign_of_a_quotient_by_zero_is_that_of_infinity():
    x = pt.vector("x")
    values = np.array([0.0, -0.0, 2, -3, np.inf, np.nan])
    compare_onnx_and_py([x], [pt.sign(1 / x), pt.sign(pt.exp(x) / x)], [values])


def test_magnitudes_and_signs_are_those_of_integers_that_wrapped_around():
    x, n = pt.vector("x", dtype="int8"), pt.vector("n", dtype="int64")
    results = [abs(2 * x), abs(x * x), pt.sign(x * x), pt.sign(pt.prod(n))]
    values = [np.array([100, -100, 12, -128], "int8"), np.array([2**40, 2**40, -3])]
    compare_onnx_and_py([x, n], results, values)


def test_the_log_of_a_sum_with_nearly_one_is_not_the_one_with_one():
    x = pt.vector("x", dtype="float32")
    near = pt.constant(np.nextafter(np.float32(1), np.float32(2)))
    one = pt.constant(np.float32(1))
    values = np.array([0, 1e-9, -1e-9], "float32")
    program = compare_onnx_and_py([x], pt.log(near + x), [values])
    assert op_types(program) == ["Add", "Log"]
    compare_onnx_and_py([x], [pt.log(one + x), pt.log(one - x)], [values[:1]])


def test_numbers_without_a_sign_are_negated_in_silence(capfd):
    x, y = pt.vector("x", dtype="uint8"), pt.vector("y", dtype="float16")
    values = [np.array([1, 255], "uint8"), np.array([2, 4], "float16")]
    compare_onnx_and_py([x, y], [-x, 1 / y], values)
    pytensor.function([x, y], [-x, pt.reciprocal(y)], mode="ONNX")
    assert "Rewrite failure" not in capfd.readouterr().err


@pytest.mark.parametrize(("dtype", "tiny"), [("float32", 1e-42), ("float64", 1e-310)])
def test_a_quotient_by_a_tiny_number_is_no_product_with_infinity(dtype, tiny):
    x, y = pt.vector("x", dtype=dtype), pt.vector("y", dtype=dtype)
    divisor = pt.constant(np.array(tiny, dtype))
    values = [np.array([0, tiny, 3 * tiny], dtype), np.array([1, 2, 0.5], dtype)]
    compare_onnx_and_py([x, y], [x / divisor, y * (x / divisor), 2 * x / divisor], values)


def test_a_matrix_product_with_zeros_is_zeros():
    x = pt.matrix("x", shape=(None, 3))
    zeros = [
        np.zeros((3, 2)),
        pt.zeros((3, 2)),
        pt.zeros_like(x).T[:, :2] * 2,
        pt.zeros(3)[:, None],
    ]
    results = [x @ zero for zero in zeros]
    program = compare_onnx_and_py([x], results, [np.ones((2, 3))])
    assert not {"MatMul", "Gemm"} & set(op_types(program))


@pytest.mark.few(1)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "uint8", "int64"])
def test_constants_that_divide_by_zero_or_overflow_are_folded_quietly(dtype):
    x, one, is_float = pt.vector("x", dtype=dtype), np.ones((), dtype), dtype.startswith("float")
    largest = np.array((np.finfo if is_float else np.iinfo)(dtype).max, dtype)
    numbers = [one * 0, one * 2, largest, *([one * np.inf, one * np.nan] if is_float else [])]
    outputs = [
        y
        for a in map(pt.constant, numbers)
        for b in map(pt.constant, numbers)
        for y in (
            x * a * b,
            x * a / b,
            x * pt.reciprocal(a) * b,
            a / (x * b),
            x + a - b,
            -x * a - b,
        )
    ]
    with (
        warnings.catch_warnings(action="error", category=RuntimeWarning),
        pytensor.config.change_flags(on_opt_error="raise"),
    ):
        pytensor.function([x], outputs, mode="ONNX")


def test_products_with_the_reciprocal_of_zero_are_infinite():
    x, zero = pt.vector("x"), pt.constant(0.0)
    outputs = [x * pt.reciprocal(zero) * 2.0, x / zero / 2.0, 2.0 / (x * zero), x * -2.0 / zero]
    compare_onnx_and_py([x], outputs, [np.array([1.0, 3.0, -7.0])])


def test_powers_with_an_infinite_exponent_are_rewritten():
    x = pt.vector("x")
    with pytensor.config.change_flags(on_opt_error="raise"):
        compare_onnx_and_py([x], [x**np.inf, x**-np.inf, x**np.nan], [np.array([0.5, 2.0])])
