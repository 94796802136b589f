"""Divisions by one are dropped where they change nothing."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from tests.conftest import compare_onnx_and_py, op_types


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_a_floor_division_by_one_rounds_floats(dtype):
    x, one = pt.vector("x", dtype=dtype), pt.constant(np.array([1], "uint8"))
    quotients = pytensor.function([x], [x // one, x // 1, x // pt.ones_like(x)], mode="ONNX")
    values = np.array([-0.5, 1.5, 2, np.inf, np.nan], dtype)
    with np.errstate(invalid="ignore"):
        expected = np.floor_divide(values, np.ones(1, dtype))
    for found in quotients(values):
        # PyTensor's own rewrites drop the division, so that it is no reference.
        np.testing.assert_array_equal(found, expected, strict=True)


def test_other_divisions_by_one_leave_no_node():
    x, n = pt.vector("x"), pt.lvector("n")
    program = compare_onnx_and_py([x, n], [-x / 1, abs(n) // 1], [np.ones(2), np.array([-3, 4])])
    assert sorted(op_types(program)) == ["Abs", "Neg"]
