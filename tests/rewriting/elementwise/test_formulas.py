"""Equal sums are one variable, however their signs are written."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.scalar import basic as ps
from pytensor.tensor.elemwise import Elemwise

from tests.conftest import compare_onnx_and_py, op_types


def lengths(inputs, outputs, scalar_op):
    """Return how many operands each sum (or product) has that mode ONNX computes."""
    return sorted(
        len(node.inputs)
        for node in pytensor.function(inputs, outputs, mode="ONNX").maker.fgraph.toposort()
        if isinstance(node.op, Elemwise) and isinstance(node.op.scalar_op, scalar_op)
    )


@pytest.mark.parametrize("swapped", [False, True], ids=["h+f(h)", "f(h)+h"])
@pytest.mark.parametrize("n_layers", [2, 8])
def test_each_residual_layer_adds_two_terms(n_layers, swapped):
    x = h = pt.vector("x")
    for _ in range(n_layers):
        new = pt.exp(-h)
        h = new + h if swapped else h + new
    compare_onnx_and_py([x], [h], [np.array([0.5, -1.0, 2.0])])
    assert lengths([x], [h], ps.Add) == [2] * n_layers


def test_each_layer_of_a_gradient_adds_at_most_three_terms():
    x = h = pt.vector("x")
    for _ in range(6):
        h = h + pt.exp(-h)
    gradient = pt.grad(h.sum(), x)
    compare_onnx_and_py([x], [gradient], [np.array([0.5, -1.0, 2.0])])
    assert max(lengths([x], [gradient], ps.Add)) <= 3


def test_shorter_result_is_used_wherever_it_stands_among_the_outputs():
    a, b, c = inputs = pt.vectors("a", "b", "c")
    outputs = [a * b * c, b * c, c * a]
    values = [np.array([1.0, 2.0]), np.array([3.0, -4.0]), np.array([0.5, 8.0])]
    compare_onnx_and_py(inputs, outputs, values)
    assert lengths(inputs, outputs, ps.Mul) == [2, 2, 2]


def test_sum_in_a_narrower_dtype_is_not_shared():
    a, b = pt.vector("a", dtype="int8"), pt.vector("b", dtype="int8")
    c = pt.vector("c", dtype="int64")
    assert lengths([a, b, c], [a + b, pt.add(a, b, c)], ps.Add) == [2, 3]


def test_sums_without_common_terms_stay_as_they_are():
    a, b, c, d = inputs = [pt.vector(name) for name in "abcd"]
    assert lengths(inputs, [a + b, c + d + a], ps.Add) == [2, 3]


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
