"""Exponentials that all runtimes compute alike."""

import mpmath as mp
import numpy as np
import pytensor.tensor as pt
import pytest

from pytensor_onnx import compile_onnx
from pytensor_onnx.functions.special.exponential import exp, exponential, times_exponential
from pytensor_onnx.ops.special.portable import half_power_of_two
from tests.conftest import compare_onnx_and_py
from tests.functions.special.accuracy import DTYPES, compile_as_written, errors_in_ulp

inf, nan = np.inf, np.nan
# The exponents of the smallest and the largest results, and bounds that are beyond.
ENDS = {"float64": (-745.2, 709.7), "float32": (-104.0, 88.7)}


@pytest.mark.parametrize("dtype", DTYPES)
def test_exponentials_of_sums_are_accurate(dtype):
    x, rest = pt.vector("x", dtype=dtype), pt.vector("rest", dtype=dtype)
    rng = np.random.default_rng(1)
    points = rng.uniform(*ENDS[dtype], 500).astype(dtype)
    parts = (np.spacing(points) * rng.uniform(-2, 2, 500)).astype(dtype)
    with mp.workprec(140):
        exact = [
            mp.exp(mp.mpf(float(a)) + mp.mpf(float(b))) for a, b in zip(points, parts, strict=True)
        ]
    run = compile_as_written([x, rest], exp(x, rest))
    assert errors_in_ulp(run(points, parts), exact).max() < 1


@pytest.mark.parametrize("dtype", DTYPES)
def test_products_neither_overflow_nor_underflow_before_their_value_does(dtype):
    factor, x = pt.vector("factor", dtype=dtype), pt.vector("x", dtype=dtype)
    run = compile_as_written([factor, x], times_exponential(factor, x))
    first, last = ENDS[dtype]
    factors = np.array([0.9, 1e3, 0.1, 0.9], dtype)
    points = np.array([last + 0.1, first + 2, first + 2, first], dtype)
    with mp.workprec(140):
        pairs = zip(factors, points, strict=True)
        exact = [mp.mpf(float(a)) * mp.exp(mp.mpf(float(b))) for a, b in pairs]
    assert errors_in_ulp(run(factors, points), exact).max() < 1.5


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_exponential_has_its_limits(dtype):
    x = pt.vector("x", dtype=dtype)
    ends = np.array([-inf, -1e30, -0.0, 0.0, 1e30, inf, nan], dtype)
    found = compile_as_written([x], exp(x))(ends)
    np.testing.assert_array_equal(found, [0, 0, 1, 1, inf, inf, nan])


def test_the_excess_is_the_result_around_zero():
    x = pt.vector("x")
    excess, half = exponential(x)
    points = np.linspace(-0.34, 0.34, 501)
    run = compile_as_written([x], excess)
    with mp.workprec(140):
        exact = [mp.expm1(mp.mpf(point)) for point in points]
    assert errors_in_ulp(run(points), exact).max() < 1
    np.testing.assert_array_equal(compile_as_written([x], half)(points), 0.5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_powers_of_two_are_exact_and_nan_reads_no_power(dtype):
    info = np.finfo(dtype)
    k = pt.matrix("k", dtype=dtype)
    first = info.minexp - info.nmant
    exponents = np.append(np.arange(first - 3, info.maxexp + 3), nan).astype(dtype).reshape(1, -1)
    with np.errstate(over="ignore"):
        expected = np.ldexp(np.ones(1, dtype), np.arange(first - 3, info.maxexp + 3) - 1)
    with np.errstate(over="ignore"):
        compare_onnx_and_py([k], half_power_of_two(k), [exponents[:, :-1]])
    run = compile_onnx([k], half_power_of_two(k), verify=False)
    np.testing.assert_array_equal(run(exponents)[0, :-1], expected)
    assert run(exponents[:, :0]).shape == (1, 0)
    assert run(exponents[:0]).shape[0] == 0
    assert compile_onnx([k], half_power_of_two(k[0, 0]), verify=False)(exponents) == 0
