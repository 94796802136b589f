"""Transposes that reverse three axes: a Transpose of a matrix and a Gather of its rows."""

import numpy as np
import pytensor.tensor as pt
import pytest

from tests.conftest import compare_onnx_and_py, op_types

REVERSED = {
    "filters to the runtime's order": ((3, 3, 16, 32), (3, 2, 0, 1)),
    "filters from the runtime's order": ((32, 16, 3, 3), (2, 3, 1, 0)),
    "three axes": ((7, 9, 17), (2, 1, 0)),
    "axes of size one": ((1, 20, 1, 9, 8), (4, 2, 3, 0, 1)),
    "few long rows": ((2, 3, 400), (2, 1, 0)),
}
OTHERS = {
    "one axis moves": ((32, 16, 9), (1, 2, 0)),
    "a matrix": ((64, 64), (1, 0)),
    "few elements": ((3, 3, 4, 16), (3, 2, 0, 1)),
    "short rows": ((8, 40, 8), (2, 1, 0)),
    "four axes": ((4, 8, 16, 32), (3, 2, 1, 0)),
    "unknown size": ((None, 9, 32), (2, 1, 0)),
    "nothing": ((64, 0, 64), (2, 1, 0)),
}


def transposed(shape, perm, dtype="float32"):
    """Return the program that transposes, after a comparison with NumPy's result, bit by bit."""
    x = pt.tensor("x", shape=shape, dtype=dtype)
    array = np.random.default_rng(0).normal(size=[size or 0 for size in shape]).astype(dtype)
    array[array > 2] = np.nan
    array[array < -2] = -np.inf
    array[abs(array) < 0.1] = -0.0
    program = compare_onnx_and_py([x], x.transpose(perm), [array], rtol=0, atol=0)
    (found,) = program(array)
    assert found.tobytes() == np.ascontiguousarray(array.transpose(perm)).tobytes()
    return program


@pytest.mark.parametrize("case", REVERSED)
def test_three_axes_are_reversed_by_a_matrix_and_its_rows(case):
    operators = op_types(transposed(*REVERSED[case]))
    assert sorted(set(operators) - {"Reshape"}) == ["Gather", "Transpose"]


@pytest.mark.parametrize("case", OTHERS)
def test_others_stay(case):
    assert "Gather" not in op_types(transposed(*OTHERS[case]))


def test_other_dtypes_stay():
    assert "Gather" not in op_types(transposed((7, 9, 17), (2, 1, 0), "float64"))


def test_constants_are_transposed_at_export():
    filters = pt.constant(np.ones((3, 3, 16, 32), "float32"))
    x = pt.tensor("x", shape=(32, 16, 3, 3), dtype="float32")
    program = compare_onnx_and_py(
        [x], x + filters.transpose((3, 2, 0, 1)), [np.ones((32, 16, 3, 3), "float32")]
    )
    assert op_types(program) == ["Add"]
