"""Numbers that a loop draws are drawn before it, equal in every bit."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.scan.utils import until

from pytensor_onnx import export_onnx
from pytensor_onnx.ops.random import draw_reference as reference
from pytensor_onnx.ops.random.draws import (
    DrawsOfSteps,
    NormalPairs,
    OpenUniform,
    RandomBits,
    StandardNormal,
    StandardUniform,
)
from pytensor_onnx.random import state_of
from pytensor_onnx.rewriting.loops import early_parts
from tests.conftest import compare_onnx_and_py, op_types

FLOATS = ("float64", "float32")
NORMALS = (StandardNormal, NormalPairs)


def walk(x, rng):
    """Return a step that draws four times from one generator."""
    rng, z = rng.normal()
    rng, u = rng.uniform(size=3, dtype="float32")
    rng, k = rng.integers(0, 10)
    rng, w = rng.exponential(size=2)
    return [x * 0.9 + z + u.sum() + k + w.sum(), rng]


def loops():
    """Return inputs, and the trace and the last state of a loop with two generators."""
    first, second, n_steps = pt.random.rng("first"), pt.random.rng("second"), pt.lscalar("n")

    def step(x, rng, other):
        x, rng = walk(x, rng)
        other, y = other.normal(size=2, dtype="float32")
        return [x + y.sum(), rng, other]

    start = [pt.zeros(()), first, second]
    results = pytensor.scan(step, [], start, n_steps=n_steps, return_updates=False)
    return [first, second, n_steps], list(results)


@pytest.mark.slow
def test_a_loop_draws_the_same_before_and_in_it(monkeypatch):
    before = export_onnx(*loops(), verify=False)
    monkeypatch.setattr(early_parts, "MOST_WORDS", 0)
    within = export_onnx(*loops(), verify=False)
    assert sum(name.startswith("DrawsOfSteps") for name in op_types(before)) == 5
    assert not any(name.startswith("DrawsOfSteps") for name in op_types(within))
    # Steps of seven words begin at either word of a block, and the counter wraps around.
    near_the_end = np.array([1, 2, 2**64 - 24], "uint64")
    for n_steps in (7, 1, 0):
        results = [f(near_the_end, state_of(2), n_steps) for f in (before, within)]
        for found, expected in zip(*results, strict=True):
            np.testing.assert_array_equal(found, expected)


def test_draws_of_steps_are_those_of_the_reference():
    words, steps = pt.vector("words", dtype="uint64"), pt.lscalar("steps")
    given = [reference.bits(np.array([5, 7, 9], "uint64"), 28)[1], 4]
    ops = [op(dtype) for op in (OpenUniform, StandardUniform) for dtype in FLOATS]
    numbers = [DrawsOfSteps(op, 3, 7, 2)(words, steps) for op in (RandomBits(), *ops)]
    compare_onnx_and_py([words, steps], numbers, given, rtol=0)
    ops = [op(dtype) for op in NORMALS for dtype in FLOATS]
    normals = [DrawsOfSteps(op, 3, 7, 2)(words, steps) for op in ops]
    compare_onnx_and_py([words, steps], normals, given, rtol=1e-6)


def test_a_recurrence_of_draws_is_no_loop(monkeypatch):
    rng, n_steps, scale = pt.random.rng("rng"), pt.lscalar("n"), pt.dscalar("scale")

    def step(x, y, rng, scale):
        rng, z = rng.normal(1.0, scale, size=3)
        rng, w = rng.exponential(2.0)
        return [pt.tanh(x) + z.sum() * w, y * 0.9 + w, rng]

    start = [pt.zeros(()), pt.ones(()), rng]
    results = pytensor.scan(step, [], start, [scale], n_steps, return_updates=False)
    inputs = [rng, n_steps, scale]
    before = export_onnx(inputs, results, verify=False)
    recurrence = export_onnx(inputs, results[1:], verify=False)
    assert not {"Scan", "Loop"} & set(op_types(recurrence))
    monkeypatch.setattr(early_parts, "MOST_WORDS", 0)
    within = export_onnx(inputs, results, verify=False)
    for n in (5, 1, 0):
        for value in (0.7, 0, np.nan, np.inf):
            x, y, after = within(state_of(1), n, value)
            for program, expected in ((before, (x, y, after)), (recurrence, (y, after))):
                for found, numbers in zip(program(state_of(1), n, value), expected, strict=True):
                    np.testing.assert_allclose(found, numbers, rtol=1e-14)


@pytest.mark.parametrize("n", [40, None])
def test_long_draws_stay_in_the_loop(n):
    rng, size = pt.random.rng("rng"), pt.lscalar("size")

    def step(rng, size):
        rng, x = rng.normal(size=size if n is None else n)
        return [rng, x.sum()]

    results = pytensor.scan(step, [], [rng, None], [size], 5, return_updates=False)
    names = op_types(export_onnx([rng, size], results, verify=False))
    assert not any(name.startswith("DrawsOfSteps") for name in names)


@pytest.mark.slow
def test_loops_with_a_condition_draw_no_further():
    rng = pt.random.rng("rng")

    def step(x, rng):
        x, rng = walk(x, rng)
        return [x, rng], until(x > 20)

    _, after = pytensor.scan(step, [], [pt.zeros(()), rng], n_steps=100, return_updates=False)
    program = export_onnx([rng], after, verify=False)
    assert not any(name.startswith("DrawsOfSteps") for name in op_types(program))
    assert program(state_of(1))[2] < 100
