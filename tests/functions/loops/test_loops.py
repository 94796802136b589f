"""Loops whose last values alone are used."""

from typing import Any, NamedTuple

import numpy as np
import pytensor.tensor as pt
import pytest
from pytensor.scan.op import Scan
from pytensor.scan.utils import until
from pytensor.tensor.basic import AllocEmpty

from pytensor_onnx.functions.loops import iterate
from tests.conftest import compare_onnx_and_py


@pytest.mark.parametrize("shape", [(), (3,), (0,), (2, 1, 3)])
def test_states_are_repeated_for_a_fixed_number_of_steps(shape):
    x, y = (pt.tensor(name, shape=(None,) * len(shape)) for name in "xy")
    states = iterate(lambda a, b, y: [b, a * y], [x, pt.ones_like(x)], [y], n_steps=3)
    values = [np.random.default_rng(seed).normal(size=shape) for seed in (0, 1)]
    compare_onnx_and_py([x, y], states, values)


def test_a_condition_ends_the_loop_after_the_step_that_it_holds_in():
    x, n = pt.vector("x"), pt.scalar("n", dtype="int64")

    def double(count, x):
        return (count + 1, x * 2), until(pt.all(x * 2 > 10))

    count, last = iterate(double, [pt.constant(0), x], n_steps=n)
    compare_onnx_and_py([x, n], [count, last], [np.array([3.0, 6.0]), 20])
    run = compare_onnx_and_py([x, n], [count, last], [np.array([3.0, -6.0]), 4])
    assert run([3.0, 6.0], 20)[0] == 2
    assert run([3.0, -6.0], 4)[0] == 4


def test_sequences_give_one_row_to_each_step():
    x, rows = pt.vector("x"), pt.matrix("rows")
    [total] = iterate(
        lambda row, k, total, x: [total + row * x**k],
        [pt.zeros_like(x)],
        [x],
        sequences=[rows, pt.constant(np.arange(4.0))],
        n_steps=4,
    )
    values = [np.array([2.0, -1.0]), np.arange(8.0).reshape(4, 2)]
    program = compare_onnx_and_py([x, rows], [total], values)
    expected = sum(row * values[0] ** k for k, row in enumerate(values[1]))
    np.testing.assert_array_equal(program(*values)[0], expected)


class Motion(NamedTuple):
    place: Any
    speed: Any


class Pair(NamedTuple):
    motion: Motion
    count: Any


def test_a_step_receives_and_returns_named_tuples_as_they_are_given():
    x, y, rows = pt.vector("x"), pt.vector("y"), pt.matrix("rows")

    def step(row, pair, shift):
        place, speed = pair.motion
        speed = speed + row.speed - row.place - shift.speed
        moved = Motion(place + speed + shift.place, speed)
        return [Pair(moved, pair.count + 1), Motion(speed * 2, place)]

    start = Pair(Motion(x, y), pt.zeros(()))
    pair, *traces = iterate(
        step, [start], [Motion(y, x)], sequences=[Motion(rows, 2 * rows)], n_steps=rows.shape[0]
    )
    assert isinstance(pair, Pair)
    assert isinstance(pair.motion, Motion)
    rng = np.random.default_rng(0)
    values = [rng.normal(size=shape) for shape in [(3,), (3,), (2, 3)]]
    place, speed, places, speeds = values[0], values[1], [], []
    for row in values[2]:
        speed = speed + row - values[0]
        places.append(place)
        speeds.append(2 * speed)
        place = place + speed + values[1]
    outputs = [*pair.motion, pair.count, *traces]
    program = compare_onnx_and_py([x, y, rows], outputs, values)
    expected = [place, speed, 2.0, np.array(speeds), np.array(places)]
    for found, value in zip(program(*values), expected, strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-14)


def test_no_trace_is_allocated():
    x = pt.vector("x")
    [y] = iterate(lambda y: [y / 2], [x * 3], n_steps=5)
    assert isinstance(y.owner.op, Scan)
    assert not any(isinstance(v.owner.op, AllocEmpty) for v in y.owner.inputs if v.owner)


def test_without_a_step_the_results_are_the_first_values():
    x, n = pt.vector("x"), pt.scalar("n", dtype="int64")
    [y] = iterate(lambda y, x: [y * x], [x + 1], [x], n_steps=n)
    program = compare_onnx_and_py([x, n], [y], [np.array([2.0, 3.0]), 2])
    np.testing.assert_array_equal(program([2.0, 3.0], 0)[0], [3, 4])
