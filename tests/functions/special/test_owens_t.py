import numpy as np
import pytensor.tensor as pt
import pytest
import scipy.special

from pytensor_onnx import compile_onnx
from tests.conftest import compare_onnx_and_py
from tests.functions.special.accuracy import DTYPES, compile_definition

inf, nan = np.inf, np.nan


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_at_zeros_infinities_and_nan(dtype):
    h = np.array([0.0, 1.0, -1.0, 50.0, inf, -inf, nan, 1e-30, 1e30], dtype)
    a = np.array([0.0, -0.0, 1.0, -2.0, inf, -inf, nan, 1e30], dtype)
    h, a = (grid.ravel() for grid in np.meshgrid(h, a))
    expected = scipy.special.owens_t(h.astype(dtype), a)
    found = compile_definition("Owens_t", dtype)(h.astype(dtype), a)
    np.testing.assert_allclose(found, expected, rtol=3e-7 if dtype == "float32" else 1e-14)


@pytest.mark.parametrize("dtype", DTYPES)
def test_two_numbers_have_the_value_of_arrays_of_them(dtype):
    h, a = (pt.scalar(dtype=dtype) for _ in range(2))
    single = compile_onnx([h, a], pt.owens_t(h, a), verify=False)
    heights = np.array([0.0, -0.3, 1.2, 6.0, 45.0, inf, nan], dtype)
    slopes = np.array([0.0, -0.0, 1e-9, 0.4, -1.0, 30.0, inf, -inf, nan], dtype)
    h, a = (grid.ravel() for grid in np.meshgrid(heights, slopes))
    expected = compile_definition("Owens_t", dtype)(h, a)
    found = [single(*pair) for pair in zip(h, a, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-14 if dtype == "float64" else 1e-7)


@pytest.mark.slow
def test_numbers_and_arrays_broadcast():
    h, a, b = pt.scalar("h"), pt.vector("a"), pt.col("b")
    values = [np.array(0.5), np.array([0.2, -3.0]), np.array([[1.5], [0.0]])]
    compare_onnx_and_py([h, a, b], [pt.owens_t(h, a), pt.owens_t(a, b)], values, rtol=1e-13)
