"""Exceptions of signal handlers leave calls, and leave the state of a function whole."""

import signal
import sys
from contextlib import contextmanager

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx import SessionOptions, compile_onnx, export_onnx
from pytensor_onnx.running.linker import ONNXLinker
from pytensor_onnx_scoring import Scorer
from pytensor_onnx_scoring.problems import is_interruption

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="Windows has no timers")

ERRORS = [TimeoutError, ValueError, RuntimeError, KeyboardInterrupt]
"""An error of its own, two of the types that the runtime raises, and one that is no `Exception`."""


class Own(Exception):
    pass


@contextmanager
def interrupted(error, after):
    """Raise an error in a handler of a signal after some seconds, while others follow."""
    waits = True

    def stop(*_):
        nonlocal waits
        if waits:
            waits = False
            raise error("time limit")

    former = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, after, 0.001)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)


def long_run(state):
    """Return a loop of tens of milliseconds, and the number of its steps."""
    steps = pt.lscalar("steps")
    step = pytensor.scan(
        lambda v: pt.sin(v) * 1.01 + 0.1, outputs_info=[state], n_steps=steps, return_updates=False
    )
    return step[-1], steps


def mode(kernels):
    options = SessionOptions(kernels=kernels)
    return pytensor.compile.mode.Mode(ONNXLinker(session_options=options), "fast_run")


@pytest.mark.parametrize(
    ("error", "kernels", "n"), [*((error, True, 200_000) for error in ERRORS), (Own, False, 8_000)]
)
def test_exception_of_a_handler_leaves_the_call_and_the_shared_variables(error, kernels, n):
    first, second = (pytensor.shared(np.linspace(0, 1, 50), name) for name in "ab")
    following, steps = long_run(first)
    updates = {first: following, second: following}
    f = pytensor.function([steps], following.sum(), updates=updates, mode=mode(kernels))
    f(10)
    before = first.get_value()
    with pytest.raises(error, match="time limit"), interrupted(error, 0.005):
        f(n)
    for variable in (first, second):
        np.testing.assert_array_equal(variable.get_value(), before)
    total = f(10)
    np.testing.assert_allclose(total, first.get_value().sum())
    np.testing.assert_array_equal(first.get_value(), second.get_value())


def test_each_of_several_exceptions_leaves_its_call():
    z = pt.vector("z")
    following, steps = long_run(z)
    f, start = pytensor.function([z, steps], following, mode="ONNX"), np.linspace(0, 1, 50)
    expected = f(start, 10)
    for _ in range(5):
        with pytest.raises(TimeoutError), interrupted(TimeoutError, 0.005):
            f(start, 200_000)
    np.testing.assert_array_equal(f(start, 10), expected)


@pytest.mark.parametrize("error", ERRORS)
def test_exception_of_a_handler_leaves_a_program_and_its_state(error):
    first, second = (pytensor.shared(np.linspace(0, 1, 50), name) for name in "ab")
    following, steps = long_run(first)
    updates = {first: following, second: following}
    program = compile_onnx([steps], following, updates=updates)
    before = {name: value.copy() for name, value in program.state.items()}
    with pytest.raises(error, match="time limit"), interrupted(error, 0.005):
        program(200_000)
    for name, value in before.items():
        np.testing.assert_array_equal(program.state[name], value)
    np.testing.assert_array_equal(program(10), program.state["a"])


def test_exception_of_a_handler_leaves_a_scorer(tmp_path):
    x = pt.matrix("x", shape=(None, 50))
    y = x
    for _ in range(20):
        y = pt.tanh(y)
    path = tmp_path / "rows.onnx"
    export_onnx([x], {"y": y}, path, dynamic_axes={"x": {0: "row"}})
    scorer = Scorer(path)
    with pytest.raises(ValueError, match=r"^time limit$"), interrupted(ValueError, 0.005):
        scorer({"x": np.zeros((20_000, 50))})
    assert len(scorer({"x": np.zeros((1, 50))})["y"]) == 1


@pytest.mark.parametrize("profile", [False, True])
def test_an_exception_at_any_instruction_leaves_all_updates_or_none(profile):
    variables = [pytensor.shared(0.0, name) for name in "abc"]
    x = pt.scalar("x")
    updates = {v: v + x for v in variables}
    f = pytensor.function([x], variables[0], updates=updates, mode="ONNX", profile=profile)
    f(1.0)
    places = {"update", "__call__", "run_checked", "run_by_runtime", "own_types", "thunk"}

    def run(limit):
        """Call the function and raise at an instruction, and return whether it came to it."""
        count = 0

        def trace(frame, event, _):
            nonlocal count
            if frame.f_code.co_name not in places:
                return None
            frame.f_trace_opcodes = True
            if event == "opcode":
                count += 1
                if count == limit:
                    raise Own("handler")
            return trace

        former = sys.gettrace()
        sys.settrace(trace)
        try:
            f(1.0)
        except Own:
            return True
        finally:
            sys.settrace(former)
        return False

    limit = 1
    while run(limit):
        assert len({float(v.get_value()) for v in variables}) == 1, limit
        limit += 1
    assert limit > 20


def test_errors_of_runs_are_no_interruptions():
    x = pt.vector("x")
    program = compile_onnx([x, y := pt.vector("y")], x @ y)
    with pytest.raises(Exception, match="dimension") as caught:
        program(np.ones(2), np.ones(3))
    assert not is_interruption(caught.value)
