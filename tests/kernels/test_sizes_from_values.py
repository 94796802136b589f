"""Sizes that depend on values: regions plan in the course of a run."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode
from pytensor.scan.utils import until

from pytensor_onnx import ONNXLinker, SessionOptions
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.ops.random.draws import StandardUniform
from pytensor_onnx.rewriting import ONNX_QUERY

FUSED = Mode(ONNXLinker(session_options=SessionOptions(kernels=True)), ONNX_QUERY)
PLAIN = Mode(ONNXLinker(session_options=SessionOptions(kernels=False)), ONNX_QUERY)


def assert_one_region(inputs, outputs, *calls):
    """Compare a graph that is one region with the same graph without regions."""
    fused, plain = (pytensor.function(inputs, outputs, mode=mode) for mode in (FUSED, PLAIN))
    places = fused.vm.jit_fn.kernels()
    assert [place.split(":")[0] for place in places] == ["region_1"], places
    for call in calls:
        for found, expected in zip(fused(*call), plain(*call), strict=True):
            np.testing.assert_array_equal(found, expected)
    assert fused.vm.jit_fn.has_regions


def test_each_step_has_arrays_of_its_own_size():
    limit, n = pt.lscalar("limit"), pt.lscalar("n")

    def step(i, total, longest, limit):
        rows = pt.arange(i % 7 + 1)[:, None] * pt.ones((1, i % 3 + 1), dtype="int64")
        kept = rows[: pt.minimum(limit, 4)]
        return [total + kept.sum() + kept.argmax(), pt.maximum(longest, kept.size)]

    steps = pt.arange(n)
    zero = pt.constant(np.int64(0))
    outputs = iterate(step, [zero, zero], [limit], n_steps=n, sequences=[steps])
    assert_one_region([limit, n], outputs, (3, 40), (2, 40), (9, 5))


def test_more_sizes_than_plans_are_kept():
    n = pt.lscalar("n")

    def step(i, total):
        return [total + pt.arange(i % 400 + 1, dtype="float64").sum()]

    [total, *_] = iterate(
        step, [pt.constant(np.float64(0.0))], n_steps=n, sequences=[pt.arange(n, dtype="int64")]
    )
    assert_one_region([n], [total], (1000,), (3,))


def test_a_loop_in_a_loop_stacks_until_it_stops():
    x, bounds = pt.vector("x", dtype="float64"), pt.vector("bounds", dtype="float64")

    def grow(x, total, bound):
        total = total + x
        return [total, total * x, x], until(total > bound)

    def step(bound, best, count, x):
        first = pt.constant(np.float64(0.0))
        _, products, rows = iterate(grow, [first], [bound], n_steps=x.shape[0], sequences=[x])
        at = products.argmax()
        return [pt.maximum(best, rows[at] + products[-1]), count + products.shape[0]]

    start = [pt.constant(np.float64(-np.inf)), pt.constant(np.int64(0))]
    outputs = iterate(step, start, [x], n_steps=bounds.shape[0], sequences=[bounds])
    values = np.random.default_rng(0).uniform(size=50)
    calls = [(values, np.array(bounds)) for bounds in ([1.0, 9.0, 3.5, -2.0, 99.0], [0.0])]
    assert_one_region([x, bounds], outputs, *calls)


def test_draws_begin_at_both_words_of_a_block():
    state, n = pt.vector("state", shape=(3,), dtype="uint64"), pt.lscalar("n")

    def step(total, state):
        state, drawn = StandardUniform("float64")(state, pt.constant(np.int64(5)))
        return [total + drawn, state]

    outputs = iterate(step, [pt.zeros(5), state], n_steps=n)
    assert_one_region([state, n], outputs, (np.array([1, 2, 3], "uint64"), 4))


def test_slices_of_loops_end_with_the_array():
    x, n = pt.matrix("x", dtype="float64"), pt.lscalar("n")

    def step(k, total, count, x, n):
        rows = x[3 * k : 3 * k + n] * 2
        return [total + rows.sum() + x[k - 4 : k - n].sum(), count + rows.shape[0]]

    start = [pt.zeros(1), pt.constant(np.int64(0))]
    steps = pt.arange(x.shape[0])
    outputs = iterate(step, start, [x, n], n_steps=x.shape[0], sequences=[steps])
    calls = [(np.arange(20.0).reshape(10, 2), n) for n in (4, 2, 0)]
    assert_one_region([x, n], outputs, *calls)


def test_a_slice_beyond_an_array_is_as_in_a_session():
    x, start = pt.vector("x", dtype="float64"), pt.lscalar("start")
    y = pt.exp(x[start : start + 3]).sum()
    fused = pytensor.function([x, start], y, mode=FUSED)
    assert "Window" not in str(fused.vm.jit_fn.kernels())
    for place in (1, 3, -2, -9):
        expected = np.exp(np.arange(5.0)[place : place + 3]).sum()
        np.testing.assert_allclose(fused(np.arange(5.0), place), expected, rtol=1e-15)


def test_a_state_that_changes_its_size_is_left_to_the_runtime_in_each_call():
    x, n = pt.lvector("x"), pt.lscalar("n")
    [last] = iterate(lambda x: [pt.arange(x[0])], [x], n_steps=n)
    function = pytensor.function([x, n], last, mode=FUSED)
    assert function.vm.jit_fn.kernels()
    for _ in range(3):
        np.testing.assert_array_equal(function([3, 0, 0, 0, 0], 1), [0, 1, 2])


def test_shared_lengths_are_constants_of_a_plan():
    n, x = pytensor.shared(4, "n"), pt.vector("x", dtype="float64")

    def walk(x):
        before, after = pt.split(x, [n - 1, 1])
        return pt.concatenate([pt.zeros(n) + pt.sqrt(x), before * after, pt.arange(n) * 0.5])

    fused, plain = (pytensor.function([x], walk(x), mode=mode) for mode in (FUSED, PLAIN))
    assert [place.split(":")[0] for place in fused.vm.jit_fn.kernels()] == ["region_1"]
    for length in (4, 7, 4, *range(2, 14), 4):
        n.set_value(length)
        for values in (np.arange(float(length)), np.ones(length)):
            np.testing.assert_array_equal(fused(values), plain(values))
    with pytest.raises(ValueError, match=r"shape|size|broadcast|Split"):
        fused(np.ones(3))
    assert len(fused(np.ones(4))) == 11
    assert fused.vm.jit_fn.has_regions


def test_lengths_that_calls_change_are_no_constants_of_a_plan():
    n, k, x = pytensor.shared(1, "n"), pt.lscalar("k"), pt.vector("x", dtype="float64")
    f = pytensor.function([x], pt.exp(x[:n]) * 2, updates={n: n + 1}, mode=FUSED)
    assert [len(f(np.zeros(5))) for _ in range(7)] == [1, 2, 3, 4, 5, 5, 5]
    g = pytensor.function([x, k], pt.exp(x[:k]) * 2, mode=FUSED)
    assert any("depends on values" in place for place in g.vm.jit_fn.kernels())
    assert any("depends on values" in place for place in f.vm.jit_fn.kernels())
