"""Equal sums are one variable, however their signs are written."""

import numpy as np
import pytensor.tensor as pt
import pytest

from tests.conftest import compare_onnx_and_py, op_types

X, Y = np.array([0.5, 2.0]), np.array([3.0, -1.0])
DIFFERENCES = {
    "difference": lambda x, y: x - y,
    "negative added": lambda x, y: x + (-y),
    "negative first": lambda x, y: -y + x,
    "product with -1": lambda x, y: x + (-1) * y,
    "product with -1 last": lambda x, y: x + y * pt.constant(np.array([-1], x.dtype)),
    "negative difference": lambda x, y: -(y - x),
    "nested": lambda x, y: (x - (y - 1)) - 1,
}


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
@pytest.mark.parametrize("difference", DIFFERENCES.values(), ids=DIFFERENCES)
def test_equal_differences_cancel(difference, dtype):
    x, y = pt.vector("x", dtype=dtype), pt.vector("y", dtype=dtype)
    total = (x - y) + x * y - difference(x, y)
    program = compare_onnx_and_py([x, y], total, [X.astype(dtype), Y.astype(dtype)])
    assert set(op_types(program)) == {"Mul"}


@pytest.mark.parametrize("name", [n for n in DIFFERENCES if n != "negative difference"])
def test_quotients_of_equal_differences_cancel(name):
    x, y = pt.vectors("x", "y")
    program = compare_onnx_and_py([x, y], pt.exp(x) * (x - y) / DIFFERENCES[name](x, y), [X, Y])
    assert op_types(program) == ["Exp"]


@pytest.mark.parametrize("dtype", ["uint8", "int8", "bool"])
def test_products_with_minus_one_of_another_dtype_keep_it(dtype):
    x, y = pt.vector("x", dtype=dtype), pt.vector("y", dtype="int8")
    minus_one = pt.constant(np.array([-1], "int16"))
    values = [np.array([1, 0, 200 % 128], dtype), np.array([-128, 127, 5], "int8")]
    compare_onnx_and_py([x, y], [y + minus_one * x, y + minus_one * y], values)


def test_minus_one_keeps_the_shape_of_its_product():
    x, y = pt.vector("x", shape=(1,)), pt.vector("y")
    total = y + pt.constant(np.full(2, -1.0)) * x
    compare_onnx_and_py([x, y], [total, pt.constant(np.full(2, -1.0)) * x - 1], [X[:1], Y])
