"""Powers have the dtype of the result before they can wrap around or be rounded."""

import numpy as np
import pytensor.tensor as pt
import pytest

from tests.conftest import compare_onnx_and_py


@pytest.mark.parametrize("exponent", [2, 3, 4])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "bool"])
def test_powers_wider_than_their_base_do_not_wrap_around(dtype, exponent):
    x = pt.vector("x", dtype=dtype)
    power = x**exponent
    assert power.dtype != dtype
    largest = 1 if dtype == "bool" else np.iinfo(dtype).max
    compare_onnx_and_py([x], power, [np.array([0, 1, largest], dtype)])


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int64", "float32"])
@pytest.mark.parametrize("exponent", [2.0, 0.5, np.float64(2), np.float64(3)])
def test_float_powers_are_computed_in_the_dtype_of_the_result(dtype, exponent):
    x = pt.vector("x", dtype=dtype)
    compare_onnx_and_py([x], x**exponent, [np.array([0.1, 7, 100], dtype)])
