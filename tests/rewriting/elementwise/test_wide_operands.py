"""Operands have the dtype of the result before they can wrap around or be rounded."""

import numpy as np
import pytensor.tensor as pt
import pytest

from tests.conftest import compare_onnx_and_py, op_types


@pytest.mark.each_value
@pytest.mark.parametrize("exponent", [2, 3, 4])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "bool"])
def test_powers_wider_than_their_base_do_not_wrap_around(dtype, exponent):
    x = pt.vector("x", dtype=dtype)
    power = x**exponent
    assert power.dtype != dtype
    largest = 1 if dtype == "bool" else np.iinfo(dtype).max
    compare_onnx_and_py([x], power, [np.array([0, 1, largest], dtype)])


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int64", "float32"])
@pytest.mark.parametrize("exponent", [2.0, 0.5, np.float64(2), np.float64(3)])
def test_float_powers_are_computed_in_the_dtype_of_the_result(dtype, exponent):
    x = pt.vector("x", dtype=dtype)
    compare_onnx_and_py([x], x**exponent, [np.array([0.1, 7, 100], dtype)])


@pytest.mark.parametrize("one", [np.int64(1), np.float64(1)])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "int32", "float32"])
def test_one_over_a_number_has_the_precision_of_the_quotient(dtype, one):
    x = pt.vector("x", dtype=dtype)
    quotient = pt.constant(np.array([one])) / x
    compare_onnx_and_py([x], quotient, [np.array([3, 7, 0, 1], dtype)], rtol=1e-15)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "uint32", "int8"])
@pytest.mark.parametrize("zero", [np.float64(0), np.int64(0)])
def test_a_negative_number_has_the_dtype_of_the_difference(zero, dtype):
    x = pt.vector("x", dtype=dtype)
    values = np.array([0, 1, 7, 100], dtype)
    zero = pt.constant(zero)
    results = [zero - x, pt.sum(zero - x), pt.exp(zero - x), -(x + zero)]
    compare_onnx_and_py([x], results, [values])


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "float32"])
def test_logs_near_one_have_the_precision_of_the_sum(dtype):
    x, one = pt.vector("x", dtype=dtype), pt.constant(np.float64(1))
    values = np.array([0, 1, 3, 100], dtype)
    compare_onnx_and_py([x], [pt.log(one + x), pt.log(one - x / 128)], [values])


def test_an_operand_of_a_sum_is_cast_once():
    x = pt.vector("x", dtype="uint8")
    program = compare_onnx_and_py([x], np.float64(0.5) - x, [np.array([1, 255], "uint8")])
    assert sorted(op_types(program)) == ["Cast", "Sub"]


@pytest.mark.parametrize("function", [pt.reciprocal, pt.sqrt, pt.log, pt.exp])
def test_a_function_of_integers_gets_the_wrapped_value(function):
    x = pt.vector("x", dtype="int8")
    compare_onnx_and_py([x], [function(x * 2), function(x**2)], [np.array([3, 16, 100], "int8")])
