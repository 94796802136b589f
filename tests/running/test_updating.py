"""Functions of many updates write over old arrays, and never over arrays that others hold."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.raise_op import Assert

from pytensor_onnx.running.updating import FEWEST_UPDATED, _UpdatingRun

VALUES = [np.zeros((0, 3)), np.array(np.nan), np.array([[np.inf]]), np.array([1.0, -0.0, 2.0])]
VALUES += [np.full(100 + i, float(i)) for i in range(FEWEST_UPDATED)]


@pytest.fixture
def overwriting(monkeypatch):
    """Record for each call whether it wrote over old arrays."""
    done, overwrite = [], _UpdatingRun._overwrite

    def recorded(self, feed):
        results = overwrite(self, feed)
        done.append(results is not None)
        return results

    monkeypatch.setattr(_UpdatingRun, "_overwrite", recorded)
    return done


def step():
    """Return states and a function that halves them and adds its argument."""
    states = [pytensor.shared(v) for v in VALUES]
    count, x = pytensor.shared(np.int64(0)), pt.dscalar("x")
    updates = {w: w / 2 + x for w in states} | {count: count + 1}
    first = Assert("negative")(states[-1][0], x >= 0)
    return states, count, pytensor.function([x], [first, count], updates=updates, mode="ONNX")


def test_arrays_are_written_over_and_equal_those_of_pytensor(overwriting):
    states, count, f = step()
    expected = [v.copy() for v in VALUES]
    for i in range(8):
        first, number = f(float(i))
        assert (first, number) == (expected[-1][0], i)
        expected = [v / 2 + i for v in expected]
        for state, value in zip(states, expected, strict=True):
            np.testing.assert_array_equal(state.get_value(), value)
    assert count.get_value() == 8
    assert count.get_value().dtype == np.dtype("int64")
    assert overwriting == [True] * 6
    assert VALUES[-1][0] == FEWEST_UPDATED - 1


def test_arrays_and_results_that_others_hold_stay(overwriting):
    states, _, f = step()
    held, copies = [], []
    for i in range(9):
        first, _ = f(1.0)
        # An array, a part of one, and a result.
        for array in (states[-1].get_value(borrow=True), states[-2].get_value(borrow=True)[1:]):
            if i % 3 == 0:
                held.append(array)
                copies.append(array.copy())
        held.append(first)
        copies.append(first.copy())
    assert True in overwriting
    for array, copied in zip(held, copies, strict=True):
        np.testing.assert_array_equal(array, copied)


def test_values_that_others_set_or_change_are_read(overwriting):
    states, _, f = step()
    for _ in range(4):
        f(0.0)
    states[-1].set_value(np.full(VALUES[-1].shape, 8.0))
    assert f(1.0)[0] == 8.0
    assert f(1.0)[0] == 5.0
    f(1.0)
    states[-1].get_value(borrow=True)[:] = 2.0
    assert f(1.0)[0] == 2.0
    assert f(1.0)[0] == 2.0
    assert overwriting.count(True) > 3


def test_a_call_that_fails_changes_nothing():
    states, count, f = step()
    for _ in range(3):
        f(1.0)
    before = [w.get_value() for w in states]
    with pytest.raises(AssertionError, match="negative"):
        f(-1.0)
    for state, value in zip(states, before, strict=True):
        np.testing.assert_array_equal(state.get_value(), value)
    assert count.get_value() == 3
    f(1.0)
    np.testing.assert_array_equal(states[-1].get_value(), before[-1] / 2 + 1)


def test_states_that_grow_are_tried_once(overwriting):
    grows = [pytensor.shared(np.ones(1)) for _ in range(FEWEST_UPDATED)]
    f = pytensor.function([], updates={w: pt.join(0, w, 2 * w) for w in grows}, mode="ONNX")
    for _ in range(6):
        f()
    assert overwriting == [False]
    np.testing.assert_array_equal(grows[0].get_value()[:8], [1, 2, 2, 4, 2, 4, 4, 8])


def test_arguments_that_become_states_stay(overwriting):
    states = [pytensor.shared(np.zeros(2)) for _ in range(FEWEST_UPDATED)]
    x = pt.vector("x", dtype="float64")
    f = pytensor.function([x], [x, states[0]], updates=dict.fromkeys(states, x), mode="ONNX")
    given = [np.full(2, float(i)) for i in range(6)]
    results = [f(value) for value in given]
    assert overwriting == [True] * 4
    for i, (value, (same, before)) in enumerate(zip(given, results, strict=True)):
        np.testing.assert_array_equal(
            [value, same, before], np.full((3, 2), i) - [[0], [0], [i > 0]]
        )
    np.testing.assert_array_equal(states[0].get_value(), [5.0, 5.0])
