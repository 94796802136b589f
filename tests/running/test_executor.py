"""Functions of mode ``"ONNX"`` take arguments as PyTensor's do, from several threads at once."""

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.tensor.type_other import NoneConst

from pytensor_onnx.running.session import Session


def unaligned(values):
    raw = np.zeros(8 * len(values) + 1, dtype="uint8")[1:]
    array = raw.view("float64")
    array[:] = values
    return array


class Subclass(np.ndarray):
    pass


ARGUMENTS = {
    "array": (np.array([1.0, 2.0, 3.0]),),
    "list": ([1.0, 2.0, 3.0],),
    "integers": (np.arange(3),),
    "float32": (np.arange(3, dtype="float32"),),
    "big_endian": (np.arange(3, dtype=">f8"),),
    "strided": (np.arange(6.0)[::2],),
    "reversed": (np.arange(3.0)[::-1],),
    "read_only": (np.broadcast_to(1.0, (3,)),),
    "subclass": (np.arange(3.0).view(Subclass),),
    "unaligned": (unaligned([1.0, 2.0, 3.0]),),
    "complex": (np.arange(3) * 1j,),
    "text": (["a", "b", "c"],),
    "none": (None,),
    "variable": (pt.vector(),),
    "too_long": (np.ones(4),),
    "too_many_axes": (np.ones((3, 1)),),
    "no_axes": (1.0,),
    "missing": (),
    "one_too_many": (np.ones(3), np.ones(3)),
}


def outcome(function, arguments):
    try:
        return None, function(*arguments)
    except Exception as error:
        return type(error), None


@pytest.mark.parametrize("static", [False, True], ids=["any_size", "size_3"])
@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments_are_taken_or_refused_as_by_pytensor(name, static):
    x = pt.vector("x", shape=(3,)) if static else pt.vector("x")
    graph = ([x], x * 2)
    error, expected = outcome(pytensor.function(*graph, mode="FAST_COMPILE"), ARGUMENTS[name])
    found_error, found = outcome(pytensor.function(*graph, mode="ONNX"), ARGUMENTS[name])
    assert found_error is error
    if error is None:
        np.testing.assert_array_equal(found, expected, strict=True)


@pytest.mark.parametrize("value", [2, 2.5, np.float64(2.5), np.float32(2.5), np.array(2.5), True])
def test_scalars_are_taken_as_by_pytensor(value):
    x = pt.scalar("x")
    expected = pytensor.function([x], x * 2, mode="FAST_COMPILE")(value)
    found = pytensor.function([x], x * 2, mode="ONNX")(value)
    np.testing.assert_array_equal(found, expected, strict=True)


def test_refused_argument_is_named():
    x, y = pt.vectors("x", "y")
    f = pytensor.function([x, y], x + y, mode="ONNX")
    with pytest.raises(TypeError) as error:
        f(np.ones(3), np.ones((3, 3)))
    assert "at index 1" in "".join(error.value.__notes__)


@pytest.fixture
def meeting(monkeypatch):
    """Let every run of a session wait until two of them are under way."""
    run, barrier = Session.run, threading.Barrier(2, timeout=5)

    def wait_and_run(self, feed):
        barrier.wait()
        return run(self, feed)

    monkeypatch.setattr(Session, "run", wait_and_run)


@pytest.mark.usefixtures("meeting")
def test_calls_without_updates_run_at_the_same_time():
    x, w = pt.vector("x"), pytensor.shared(2.0)
    f = pytensor.function([x], x * w, mode="ONNX")
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(f, [np.ones(2), np.ones(3)]))
    assert [len(result) for result in results] == [2, 3]


def test_calls_with_updates_run_one_after_the_other():
    x, total = pt.scalar("x"), pytensor.shared(0.0)
    f = pytensor.function([x], total, updates={total: total + x}, mode="ONNX")
    with ThreadPoolExecutor(8) as pool:
        before = list(pool.map(f, np.ones(400)))
    assert sorted(map(float, before)) == list(range(400))
    assert total.get_value() == 400


ARGUMENT = pt.vector("x")
CALLS = pytensor.shared(0, name="calls")
GENERATOR = pt.random.shared_rng(seed=1, name="rng")
FOLLOWING, DRAWN = GENERATOR.normal()
WITH_NONE = {
    "last": ([ARGUMENT * 2, NoneConst], {}),
    "several": ([NoneConst, ARGUMENT * 2, NoneConst, ARGUMENT[0]], {}),
    "single": (NoneConst, {}),
    "alone": ([NoneConst, NoneConst], {}),
    "updates": ([NoneConst, CALLS, NoneConst], {CALLS: CALLS + 1}),
    "updates_alone": (NoneConst, {CALLS: CALLS + 1}),
    "generator": ([NoneConst, DRAWN > 100, NoneConst], {GENERATOR: FOLLOWING}),
    "complex": ([NoneConst, ARGUMENT * 1j], {}),
}


@pytest.mark.parametrize("name", WITH_NONE)
def test_outputs_may_be_none(name):
    outputs, updates = WITH_NONE[name]

    def results(mode):
        CALLS.set_value(0)
        f = pytensor.function(
            [ARGUMENT], outputs, updates=updates, mode=mode, on_unused_input="ignore"
        )
        a = np.array([1.0, 2.0])
        pickled = pickle.loads(pickle.dumps(f))
        return [f(a), f(a), f.copy(share_memory=False)(a), pickled(a), CALLS.get_value()]

    assert str(results("ONNX")) == str(results("FAST_COMPILE"))
