"""Block-diagonal matrices are those of SciPy."""

import numpy as np
import pytensor.tensor as pt
import pytest
import scipy.linalg

from pytensor_onnx import compile_onnx
from tests.conftest import compare_onnx_and_py

RNG = np.random.default_rng(5)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8"])
def test_blocks_of_any_sizes_stand_along_the_diagonal(dtype):
    x, y, z = (
        pt.matrix(name, dtype=kind)
        for name, kind in zip("xyz", (dtype, "float32", dtype), strict=True)
    )
    result = pt.linalg.block_diag(x, y, z)
    for shapes in ([(2, 3), (1, 1), (3, 2)], [(0, 2), (2, 2), (1, 0)], [(0, 0), (0, 0), (0, 0)]):
        values = [
            RNG.integers(-9, 9, size=shape).astype(v.dtype)
            for v, shape in zip((x, y, z), shapes, strict=True)
        ]
        compare_onnx_and_py([x, y, z], [result], values)
        found = compile_onnx([x, y, z], result)(*values)
        np.testing.assert_array_equal(found, scipy.linalg.block_diag(*values))


def test_nan_of_a_block_stays_in_it():
    x = pt.matrix("x")
    result = pt.linalg.block_diag(x, 2 * x)
    compare_onnx_and_py([x], [result], [np.array([[np.nan, np.inf]])])


def test_gradients_are_those_of_the_blocks():
    x, y = pt.matrices("x", "y")
    cost = (pt.linalg.block_diag(x, y) ** 3).sum()
    values = [RNG.standard_normal((2, 3)), RNG.standard_normal((1, 2))]
    compare_onnx_and_py([x, y], pt.grad(cost, [x, y]), values)
