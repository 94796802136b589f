"""Ops of elements keep values that no other expression of PyTensor has."""

import numpy as np
import pytensor.tensor as pt
import pytest

from pytensor_onnx.ops.elementwise import BitsAs
from tests.conftest import compare_onnx_and_py

NUMBERS = np.array([[0.0, -0.0, 1.5, -2.25], [np.inf, -np.inf, np.nan, 5e-7]])


@pytest.mark.parametrize(
    ("dtype", "result"),
    [("float32", "int32"), ("float64", "int64"), ("float16", "int16"), ("float32", "uint32")],
)
@pytest.mark.parametrize("shape", [(2, 4), (0, 4), ()])
def test_bits_are_those_of_numbers_and_give_them_back(dtype, result, shape):
    x = pt.tensor("x", dtype=dtype, shape=(None,) * len(shape))
    values = NUMBERS.astype(dtype)[: shape[0]] if shape else NUMBERS.astype(dtype)[0, 2]
    bits = BitsAs(result)(x)
    outputs = [bits, BitsAs(dtype)(bits)]
    compare_onnx_and_py([x], outputs, [np.asarray(values)], opset_version=26, signed_zeros=True)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "int64", "uint64"])
def test_signs_of_integers_are_their_first_bits(dtype):
    info = np.iinfo(dtype)
    x = pt.vector("x", dtype=dtype)
    other = f"u{dtype}" if info.min else dtype[1:]
    compare_onnx_and_py([x], [BitsAs(other)(x)], [np.array([info.min, info.max, 1], dtype)])


def test_dtypes_of_other_widths_are_refused():
    with pytest.raises(TypeError, match="numbers of float32 have not as many bits as int64"):
        BitsAs("int64")(pt.vector("x", dtype="float32"))
