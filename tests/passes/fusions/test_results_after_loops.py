"""States that are recorded need no copy in each step where they are simple arithmetic."""

import numpy as np
import pytensor.tensor as pt
import pytest

from tests.conftest import compare_onnx_and_py
from tests.dispatch.loop_cases import scan
from tests.rewriting.loops.test_products import operators_in_loop

STEPS = {
    "two results": lambda e, h, a: pt.exp(-h) * pt.cos(h * e),
    "an element of a sequence": lambda e, h, a: e - pt.exp(-h),
    "a value from around the loop": lambda e, h, a: pt.exp(-h * e) / a,
    "a square": lambda e, h, a: pt.sqr(pt.tanh(h + e)),
}


@pytest.mark.parametrize("size", [None, 3], ids=["numbers", "vectors"])
@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_no_copy_of_arithmetic_on_results_of_the_step(step, size):
    shape = () if size is None else (size,)
    x, h0 = pt.tensor("x", shape=(None, *shape)), pt.tensor("h0", shape=shape)
    a = pt.scalar("a")
    h = scan(step, [x], [h0], [a])
    rng = np.random.default_rng(0)
    for length in (0, 1, 5):
        arrays = [rng.normal(size=(length, *shape)), rng.normal(size=shape), 1.5]
        program = compare_onnx_and_py([x, h0, a], [h, h.sum(axis=0), h0], arrays)
        assert "Identity" not in operators_in_loop(program)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite(number):
    x, h0 = pt.vector("x"), pt.scalar("h0")
    h = scan(lambda e, h: e * pt.tanh(h), [x], [h0])
    compare_onnx_and_py([x, h0], [h, h[-1]], [[1.0, number, 0.0, 2.0], 0.5])


def test_results_that_share_operands_and_states_of_each_other():
    x, p0, q0 = pt.vector("x"), pt.scalar("p0"), pt.scalar("q0")

    def step(e, p, q):
        exp, cos = pt.exp(-p * q), pt.cos(q)
        return exp + cos, exp * cos, exp, (exp + cos) - e

    outputs = scan(step, [x], [p0, q0, None, None])
    compare_onnx_and_py([x, p0, q0], [*outputs, outputs[0][-1]], [[1.0, 2.0, 3.0], 0.5, 0.2])


def test_sums_with_the_state_before_are_copied():
    h0 = pt.scalar("h0")
    h = scan(lambda h: h - pt.exp(-h), [], [h0], n_steps=20)
    program = compare_onnx_and_py([h0], h, [0.5])
    assert operators_in_loop(program).count("Identity") == 1


def test_large_results_are_copied():
    x, h0 = pt.tensor("x", shape=(None, 2000)), pt.tensor("h0", shape=(2000,))
    h = scan(lambda e, h: e * pt.tanh(h), [x], [h0])
    program = compare_onnx_and_py([x, h0], h, [np.ones((3, 2000)), np.ones(2000)])
    assert operators_in_loop(program).count("Identity") == 1
