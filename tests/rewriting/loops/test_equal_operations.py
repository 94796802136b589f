"""Gradients of a step compute each of its operations once."""

import numpy as np
import pytensor.tensor as pt
import pytest

from tests.conftest import compare_onnx_and_py
from tests.dispatch.loops.loop_cases import lstm, lstm_values, scan
from tests.rewriting.loops.test_early_products import operators_in_loop


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("batch", [(), (2,)])
@pytest.mark.slow
def test_the_gates_of_a_gradient_are_computed_once(dtype, batch):
    inputs, (h, _) = lstm(dtype, len(batch))
    gradients = pt.grad((h**2).sum(), inputs)
    rtol = 1e-4 if dtype == "float32" else 1e-9
    program = compare_onnx_and_py(inputs, gradients, lstm_values(dtype, 5, *batch), rtol=rtol)
    # Three in the loop, and three in that of the gradient.
    operators = operators_in_loop(program)
    assert sum(name.startswith("Sigmoid") for name in operators) == 6


def test_equal_results_are_separate_outputs():
    x, start = pt.vector("x"), pt.scalar("start")
    both = scan(lambda e, h: (pt.tanh(e * h), pt.tanh(e * h)), [x], [start, None])
    arrays = [np.array([1.0, -2.0, 0.5]), 0.3]
    program = compare_onnx_and_py([x, start], both, arrays)
    assert operators_in_loop(program).count("Mul") <= 2


@pytest.mark.slow
def test_gradients_of_second_order():
    x, start = pt.vector("x"), pt.scalar("start")
    h = scan(lambda e, h: pt.tanh(e * h) + pt.tanh(e * h) ** 2, [x], [start])
    first = pt.grad(h[-1], x)
    outputs = [first, pt.grad((first**2).sum(), [x, start])[0]]
    compare_onnx_and_py([x, start], outputs, [np.array([1.0, -2.0, 0.5]), 0.3], rtol=1e-9)
