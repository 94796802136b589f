"""Arguments of float64 tanh are halved before the loop where a step need not halve them."""

import numpy as np
import pytensor.tensor as pt
import pytest

from tests.conftest import compare_onnx_and_py
from tests.dispatch.loop_cases import lstm, lstm_values, scan
from tests.rewriting.loops.test_products import operators_in_loop

RTOL = 1e-11
HALVED = ["Tanh", "Mul", "Add", "Div"]


def states(step, *others):
    """Return the inputs, the states and the other results of a recurrence with weights."""
    x, u, h = pt.matrix("x"), pt.matrix("u"), pt.vector("h")
    a = pt.scalar("a")
    return [x, u, h, a], scan(step, [x], [h, *others], [u, a])


def arrays(length=5, number=None):
    rng = np.random.default_rng(length)
    x, u, h = (rng.normal(size=shape) for shape in ((length, 3), (3, 3), (3,)))
    if number is not None:
        x[length // 2, 1] = number
    return [x, u, h, np.array(0.75)]


STEPS = {
    "recurrent network": lambda e, h, u, a: pt.tanh(e + h @ u),
    "products with columns": lambda e, h, u, a: pt.tanh(e + u @ h),
    "a difference": lambda e, h, u, a: pt.tanh(a * h - e),
    "a leaky state": lambda e, h, u, a: h * pt.exp(-e) + a * pt.tanh(h @ u + e),
    "a value from outside": lambda e, h, u, a: pt.exp(-h * e) + pt.tanh(h @ u + a),
}
OTHERS = {
    "a product of two results": lambda e, h, u, a: pt.tanh(pt.exp(-h) * pt.cos(h * e)),
    "a function": lambda e, h, u, a: pt.tanh(pt.sin(h + e)),
    "an argument with another use": lambda e, h, u, a: pt.tanh(h @ u + e) + pt.exp(-(h @ u + e)),
}


@pytest.mark.parametrize("length", [0, 1, 5])
@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_arguments_are_halved_before_the_loop(step, length):
    inputs, h = states(step)
    program = compare_onnx_and_py(inputs, [h, h[-1:]], arrays(length), rtol=RTOL)
    assert "Tanh_float64" not in operators_in_loop(program)
    assert not program.model.functions


@pytest.mark.parametrize("step", OTHERS.values(), ids=OTHERS)
def test_other_arguments_are_halved_in_the_step(step):
    inputs, h = states(step)
    program = compare_onnx_and_py(inputs, h, arrays(), rtol=RTOL)
    assert "Tanh_float64" in operators_in_loop(program)


@pytest.mark.parametrize("number", [np.nan, -np.inf, 1e308, 1e-308])
@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_extreme_numbers(step, number):
    inputs, h = states(step)
    compare_onnx_and_py(inputs, h, arrays(number=number), rtol=RTOL)


@pytest.mark.parametrize("length", [0, 1, 6])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_an_lstm_of_few_steps(batch, length):
    inputs, (h, c) = lstm("float64", len(batch))
    given = lstm_values("float64", length, *batch)
    compare_onnx_and_py(inputs, [h, c, c[-1:]], given, rtol=RTOL)


@pytest.mark.parametrize("number", [np.nan, np.inf, 1e300])
@pytest.mark.parametrize("position", range(6))
def test_an_lstm_of_extreme_numbers(position, number):
    inputs, outputs = lstm("float64")
    given = lstm_values("float64", 4)
    given[position].flat[1] = number
    compare_onnx_and_py(inputs, outputs, given, rtol=RTOL)


def test_gradients_of_an_lstm():
    inputs, (h, c) = lstm("float64")
    gradients = pt.grad((h**2).sum() + c[-1].sum(), inputs)
    compare_onnx_and_py(inputs, gradients, lstm_values("float64", 5), rtol=1e-9)


def test_sums_of_states_that_are_arguments_themselves():
    def step(e, p, q):
        return p + q, pt.tanh(p + q - e)

    x, p0, q0 = pt.vector("x"), pt.scalar("p0"), pt.scalar("q0")
    outputs = scan(step, [x], [p0, q0])
    compare_onnx_and_py([x, p0, q0], outputs, [[1.0, -2.0, 0.5], 0.3, -0.2], rtol=RTOL)


def test_states_of_two_arguments_one_of_which_is_halved_in_the_step():
    def step(e, d, p, q):
        return p + pt.tanh(p + e), q + pt.tanh(q + d) + pt.exp(-q)

    x, y, p0, q0 = pt.vector("x"), pt.vector("y"), pt.scalar("p0"), pt.scalar("q0")
    arrays = [np.array([1.0, -2.0, 0.5]), np.ones(3), np.array(0.3), np.array(-0.2)]
    outputs = scan(step, [x, y], [p0, q0])
    program = compare_onnx_and_py([x, y, p0, q0], outputs, arrays, rtol=RTOL)
    operators = operators_in_loop(program)
    assert operators.count("Tanh_float64") == 1
    assert operators.count("Tanh") == 1


def test_results_are_those_of_the_definition():
    """Halving is exact, so that a step computes the numbers of the operation by itself."""
    x, start = pt.vector("x"), pt.scalar("start")
    numbers = np.random.default_rng(0).normal(scale=3, size=1000)
    rows = scan(lambda e, y: pt.tanh(e + 0 * y), [x], [start])
    compare_onnx_and_py([x, start], [rows, pt.tanh(x)], [numbers, 0.0], rtol=1e-15)
