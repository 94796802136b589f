"""Elements and windows of arrays, and the exchange of rows for pivots."""

import numpy as np
import pytensor.tensor as pt
import pytest

from pytensor_onnx.ops.linalg.matrix_parts import Elements, NextPivot, Window
from tests.conftest import compare_onnx_and_py


@pytest.mark.parametrize("places", [[], [2, 0, 2, -1]])
def test_elements_are_those_of_an_index_array(places):
    x, indices = pt.vector("x"), pt.lvector("indices")
    values = [np.arange(3.0), np.array(places, "int64")]
    compare_onnx_and_py([x, indices], Elements()(x, indices), values)


@pytest.mark.parametrize(("start", "end"), [([0, 1], [2, 3]), ([1, 0], [3, 0]), ([2, 1], [9, 9])])
def test_window_ends_where_the_matrix_ends(start, end):
    x, first, last = pt.matrix("x"), pt.lvector("first"), pt.lvector("last")
    values = [np.arange(12.0).reshape(3, 4), np.array(start), np.array(end)]
    compare_onnx_and_py([x, first, last], Window()(x, first, last), values)


def test_first_candidate_takes_the_place_of_the_pivot():
    column, rows = pt.vector("column"), pt.lvector("rows")
    value = np.array([1.0, -3.0, 0.0, 3.0, -2.0])
    first, *others = (
        [value, np.array(candidates)] for candidates in [[2], [4, 1, 3], [0, 1, 2, 3, 4], [3, 4, 0]]
    )
    compare_onnx_and_py([column, rows], NextPivot()(column, rows), first, also=others)
