"""Arithmetic between casts from and to float32 has the same bits in float32."""

import numpy as np
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis.extra.numpy import arrays
from hypothesis.strategies import floats

from tests.conftest import compare_onnx_and_py, op_types

SPECIAL = np.array([0, -0.0, 1e-45, -1e-38, 3, 1e38, -3.4e38, np.inf, np.nan], "float32")
OPERATIONS = [pt.add, pt.sub, pt.mul, pt.true_div]


def rounded(operation, x, y):
    return operation(x.astype("float64"), y.astype("float64")).astype("float32")


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_one_operation_is_done_in_float32(operation):
    x, y = pt.fvectors("x", "y")
    values = [a.ravel() for a in np.meshgrid(SPECIAL, SPECIAL)]
    program = compare_onnx_and_py([x, y], rounded(operation, x, y), values, rtol=0)
    assert len(op_types(program)) == 1


@pytest.mark.slow
@given(*[arrays("float32", 8, elements=floats(width=32))] * 2)
def test_numpy_rounds_once_and_twice_to_the_same_bits(x, y):
    with np.errstate(all="ignore"):
        for operation in (np.add, np.subtract, np.multiply, np.divide):
            twice = operation(x.astype("float64"), y.astype("float64")).astype("float32")
            np.testing.assert_array_equal(operation(x, y), twice)


def test_numbers_that_float32_does_not_have_stay():
    x = pt.fvector("x")
    half, third = pt.constant(np.array([0.5])), pt.constant(np.array([1 / 3]))
    program = compare_onnx_and_py([x], (half * x).astype("float32"), [SPECIAL], rtol=0)
    assert op_types(program) == ["Mul"]
    huge = pt.constant(np.array([1e300]))
    for number in (third, huge):
        program = compare_onnx_and_py([x], (number * x).astype("float32"), [SPECIAL], rtol=0)
        assert op_types(program) == ["Cast", "Mul", "Cast"]


def test_quotients_of_numbers_that_would_become_products_stay():
    x = pt.fvector("x")
    quotient = rounded(pt.true_div, x, pt.constant(np.float32(255)))
    values = [np.arange(256, dtype="float32")]
    program = compare_onnx_and_py([x], quotient, values, rtol=0)
    np.testing.assert_array_equal(program(*values)[0], values[0] / np.float32(255))


def test_results_that_are_used_in_float64_stay():
    x, y = pt.fvectors("x", "y")
    wide = x.astype("float64") * y.astype("float64")
    values = [np.array([1.1, 3e30], "float32")] * 2
    program = compare_onnx_and_py([x, y], [wide, wide.astype("float32")], values, rtol=0)
    assert op_types(program).count("Mul") == 1
