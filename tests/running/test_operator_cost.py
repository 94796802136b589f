"""One thread runs a model until an operator is large, and all threads from then on."""

import os
import sys

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx import SessionOptions, compile_onnx, export_onnx
from pytensor_onnx.nn import conv2d, gru, lstm, max_pool
from pytensor_onnx.running.operator_cost import Work
from tests.dispatch.loops.loop_cases import scan


def work(inputs, outputs):
    return Work(export_onnx(inputs, outputs, verify=False).model)


def threads(session):
    return session.runtime.get_session_options().intra_op_num_threads


def test_known_sizes_decide_once():
    small, large = (pt.matrix(shape=(n, n), dtype="float64") for n in (64, 256))
    assert work([small], small @ small).is_fixed
    assert not work([small], small @ small).is_large
    assert work([large], large @ large).is_large


@pytest.mark.parametrize(
    ("shape", "is_large"), [((100, 10), False), ((0, 10**9), False), ((1100, 1000), True)]
)
def test_sizes_of_a_call_decide_where_others_are_unknown(shape, is_large):
    x = pt.matrix("x", dtype="float64")
    joined = work([x], pt.join(0, x, x[:-1]) + 1)
    assert joined.exceeds({"x": np.broadcast_to(0.0, shape)}) == is_large


def test_selected_elements_are_no_more_than_those_of_the_largest_input():
    x = pt.vector("x", dtype="float64")
    selected = work([x], pt.exp(x[x > 0]))
    assert not selected.is_large
    assert [selected.exceeds({"x": np.ones(n)}) for n in (1000, 60_000)] == [False, True]


def test_hyperbolic_functions_are_as_long_as_other_functions():
    x = pt.vector("x", dtype="float32")
    assert work([x], pt.sinh(x)).exceeds({"x": np.ones(60_000, "float32")})


def test_sizes_that_values_decide_may_be_large():
    n = pt.lscalar("n")
    assert work([n], pt.exp(pt.arange(n))).is_large
    assert work([n], pt.exp(pt.alloc(pt.exp(n), n))).is_large


@pytest.mark.parametrize("layer", [gru, lstm])
def test_loops_for_nan_are_no_work(layer):
    x, gates = pt.tensor3("x", dtype="float32"), {gru: 3, lstm: 4}[layer]
    w, r = (np.ones((n, gates * 64), "float32") for n in (32, 64))
    sequences = work([x], layer(x, w, r)[0])
    assert not sequences.is_large
    assert [sequences.exceeds({"x": np.ones((n, 100, 32))}) for n in (16, 1000)] == [False, True]


@pytest.mark.parametrize("stride", [1, 2])
def test_gradients_of_pools_keep_known_sizes(stride):
    x = pt.tensor("x", shape=(2, 3, 8, 8), dtype="float32")
    pooled = work([x], pt.grad((max_pool(x, 3, stride=stride, padding=1) ** 2).sum(), x))
    assert (pooled.is_large, pooled.is_fixed) == (False, True)


@pytest.mark.slow
def test_gradients_of_short_images_follow_the_size_of_the_batch():
    x = pt.tensor("x", shape=(None, 16, 4, 4), dtype="float32")
    w = pt.tensor("w", shape=(32, 16, 3, 3), dtype="float32")
    y = max_pool(conv2d(x, w, padding=(1, 1)), 2)
    gradients = work([x, w], pt.grad(pt.sqr(y).sum(), [x, w]))
    assert not gradients.is_large
    filters = np.ones((32, 16, 3, 3))
    sizes = (1, 32, 1000)
    feeds = [{"x": np.ones((n, 16, 4, 4)), "w": filters} for n in sizes]
    assert [gradients.exceeds(feed) for feed in feeds] == [False, False, True]


def test_draws_for_the_elements_of_an_array_are_as_many_as_these():
    x = pt.matrix("x", dtype="float32")
    generator = pytensor.shared(np.random.default_rng(0))
    after, kept = pt.random.bernoulli(0.5, size=x.shape, rng=generator, return_next_rng=True)
    program = export_onnx([x], x * kept, updates={generator: after}, verify=False)
    dropped = Work(program.model)
    assert not dropped.is_large
    feeds = [{"x": np.ones((n, 100))} for n in (10, 1000)]
    assert [dropped.exceeds(feed) for feed in feeds] == [False, True]


def test_steps_of_loops_are_small_however_many_they_are():
    x, w = pt.matrix("x", dtype="float64"), pt.matrix("w", dtype="float64")
    h = scan(lambda e, h, w: pt.tanh(e + h @ w), [x], [x[0]], [w])
    recurrence = work([x, w], h)
    assert not recurrence.is_large
    assert not recurrence.exceeds({"x": np.ones((300, 64)), "w": np.ones((64, 64))})
    assert recurrence.exceeds({"x": np.ones((2, 2500)), "w": np.ones((2500, 2500))})


def test_a_session_takes_all_threads_with_its_first_large_operator():
    x = pt.matrix("x", dtype="float64")
    f = pytensor.function([x], x @ x, mode="ONNX")
    session, rng = f.vm.jit_fn, np.random.default_rng(0)
    small, large = rng.normal(size=(8, 8)), rng.normal(size=(180, 180))
    for value, n_threads in ((small, 1), (large, 0), (small, 0)):
        np.testing.assert_allclose(f(value), value @ value, rtol=1e-12, atol=1e-12)
        assert threads(session) == n_threads
    assert session.work is None


def test_given_threads_stay():
    x = pt.matrix("x", dtype="float64")
    program = compile_onnx([x], x @ x, session_options=SessionOptions(threads=1))
    program(np.ones((180, 180)))
    assert threads(program.session) == 1
    assert program.session.work is None


@pytest.mark.skipif(
    sys.platform != "linux" or os.cpu_count() == 1, reason="needs a processor to leave out"
)
def test_a_process_bound_to_one_processor_takes_one_thread():
    allowed = os.sched_getaffinity(0)
    x = pt.matrix("x", shape=(256, 256), dtype="float64")
    try:
        os.sched_setaffinity(0, {min(allowed)})
        bound = compile_onnx([x], x @ x)
        given = compile_onnx([x], x @ x, session_options=SessionOptions(threads=2))
    finally:
        os.sched_setaffinity(0, allowed)
    assert [threads(program.session) for program in (bound, given)] == [1, 2]
