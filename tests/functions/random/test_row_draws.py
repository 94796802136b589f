"""Numbers of rows are those that the reference draws from the words of each row."""

import numpy as np
import pytensor.tensor as pt
import pytest

from pytensor_onnx.ops.random import draw_reference as reference
from pytensor_onnx.ops.random.draws import (
    DrawsOfRows,
    NormalPairs,
    OpenUniform,
    RandomBits,
    StandardNormal,
    StandardUniform,
)
from tests.conftest import compare_onnx_and_py


@pytest.mark.parametrize("rows", [4, 0])
def test_draws_of_rows_are_those_of_the_reference(rows):
    ops = [RandomBits(), OpenUniform("float32"), StandardUniform("float64")]
    ops += [op(dtype) for op in (StandardNormal, NormalPairs) for dtype in ("float64", "float32")]
    words = {op: pt.matrix(dtype="uint64", shape=(None, op.words(3))) for op in ops}
    bits = [
        reference.bits(np.array([5, 7, i], "uint64"), rows * op.words(3))[1].reshape(
            rows, op.words(3)
        )
        for i, op in enumerate(ops)
    ]
    # Logarithms and sines of NumPy and of the runtime differ in the last bits.
    numbers = [DrawsOfRows(op, 3)(matrix) for op, matrix in words.items()]
    compare_onnx_and_py(list(words.values()), numbers, bits, rtol=1e-6)
