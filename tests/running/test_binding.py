"""Functions of many shared variables: bound arrays, which may be replaced and changed in place."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx.running.binding import FEWEST_STORED


@pytest.fixture(scope="module")
def many():
    weights = [pytensor.shared(np.full(3, float(i)), f"w{i}") for i in range(FEWEST_STORED)]
    x = pt.vector("x")
    f = pytensor.function([x], [x + sum(weights), pt.argsort(x + weights[0])], mode="ONNX")
    assert f._direct_call.run_given is not None
    return weights, f


def expected(weights, x):
    return x + sum(w.get_value() for w in weights)


def test_replaced_and_changed_arrays_are_read(many):
    weights, f = many
    x = np.array([3.0, 1.0, 2.0])
    for change in (
        lambda: None,
        lambda: weights[3].set_value(np.array([np.nan, np.inf, -0.0])),
        lambda: weights[3].set_value(np.ones(3)),
        lambda: weights[7].get_value(borrow=True).__setitem__(slice(None), 5.0),
        lambda: weights[9].set_value(np.arange(6.0)[::2], borrow=True),
        lambda: weights[9].get_value(borrow=True).__setitem__(slice(None), 7.0),
        lambda: weights[9].set_value(np.ones(3)),
    ):
        change()
        total, order = f(x)
        np.testing.assert_array_equal(total, expected(weights, x))
        assert order.dtype == np.dtype("int64")


def test_results_stay_when_the_function_runs_again(many):
    _, f = many
    first, _ = f(np.zeros(3))
    kept = first.copy()
    for i in range(1, 50):
        f(np.full(3, float(i)))
    np.testing.assert_array_equal(first, kept)


def test_arguments_of_other_forms_are_read(many):
    weights, f = many
    x = np.arange(60000.0)[::20000]
    np.testing.assert_array_equal(f(x)[0], expected(weights, x))
    np.testing.assert_array_equal(f([1, 2, 3])[0], expected(weights, np.array([1.0, 2.0, 3.0])))


@pytest.mark.parametrize("shape", [(1,), (2,), (0,)])
def test_sizes_that_do_not_agree_are_named(many, shape):
    weights, f = many
    with pytest.raises(ValueError, match="dimension"):
        f(np.zeros(shape))
    weights[4].set_value(np.zeros(1))
    with pytest.raises(ValueError, match="dimension"):
        f(np.zeros(3))
    weights[4].set_value(np.ones(3))
    np.testing.assert_array_equal(f(np.zeros(3))[0], expected(weights, np.zeros(3)))


def test_each_thread_has_results_of_its_own(many):
    weights, f = many
    base = expected(weights, np.zeros(3))

    def call(i):
        return all(np.array_equal(f(np.full(3, float(i + k)))[0], base + i + k) for k in range(40))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(call, range(8)))
