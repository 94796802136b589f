import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.scalar import basic as ps
from pytensor.tensor.elemwise import Elemwise

from tests.conftest import compare_onnx_and_py


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


@pytest.mark.slow
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
