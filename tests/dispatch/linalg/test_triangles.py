"""Triangles of matrices."""

import numpy as np
import pytensor.tensor as pt
import pytest

from pytensor_onnx.ops.linalg.matrix_parts import Triangle
from tests.conftest import compare_onnx_and_py


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_triangles_are_numpys_and_read_no_other_element(dtype):
    x = pt.tensor("x", dtype=dtype, shape=(None, None, None))
    kinds = [(lower, diagonal) for lower in (True, False) for diagonal in (-1, 0, 1)]
    results = [Triangle(lower=lower, diagonal=diagonal)(x) for lower, diagonal in kinds]
    value = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(dtype)
    value[0, 2, 0] = value[1, 0, 3] = np.nan
    program = compare_onnx_and_py([x], results, [value])
    for (lower, diagonal), found in zip(kinds, program(value), strict=True):
        np.testing.assert_array_equal(found, (np.tril if lower else np.triu)(value, diagonal))
    assert {node.op_type for node in program.model.graph} == {"Trilu"}
    assert [y.shape for y in program(np.zeros((0, 3, 0), dtype))] == [(0, 3, 0)] * 6
