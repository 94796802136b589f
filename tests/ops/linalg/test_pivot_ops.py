"""Pivots and the rows that are exchanged for them."""

import numpy as np
import pytensor.tensor as pt
import pytest

from pytensor_onnx.ops.linalg.matrix_parts import NextPivot
from tests.conftest import compare_onnx_and_py


@pytest.mark.parametrize("candidates", [[2], [4, 1, 3], [0, 1, 2, 3, 4], [3, 4, 0]])
def test_first_candidate_takes_the_place_of_the_pivot(candidates):
    column, rows = pt.vector("column"), pt.lvector("rows")
    value = np.array([1.0, -3.0, 0.0, 3.0, -2.0])
    compare_onnx_and_py([column, rows], NextPivot()(column, rows), [value, np.array(candidates)])
