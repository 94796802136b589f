"""A step that a loop does not make is never read, though PyTensor's modes read another one."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode
from pytensor.raise_op import CheckAndRaise

from pytensor_onnx import PyTensorONNXError, compile_onnx
from tests.conftest import PY
from tests.dispatch.loops.loop_cases import scan

INITIAL = np.array([1.0, 2.0])
X = np.array([5.0, 7.0, 9.0])
LOOPS = {
    "recurrence": lambda x, start, n: scan(lambda y: y * 2 + 1, None, [start[0]], n_steps=n),
    "over a sequence": lambda x, start, n: scan(lambda e, y: y * 0.5 + e, [x[:n]], [start[0]]),
    "several taps": lambda x, start, n: scan(
        lambda a, b: a + b * 0.5, None, [{"initial": start, "taps": [-2, -1]}], n_steps=n
    ),
    "sum": lambda x, start, n: scan(lambda e, y: y + e, [x], [start[0]], n_steps=n),
    "map": lambda x, start, n: scan(lambda e: e * 2, [x], n_steps=n),
    "rows of another loop": lambda x, start, n: scan(
        lambda e, y: (y * 0.5 + e, y + e * 3), [x], [start[0], None], n_steps=n
    )[1],
}


@pytest.fixture
def inputs():
    return [pt.vector("x"), pt.vector("start"), pt.iscalar("n"), pt.iscalar("i")]


@pytest.mark.each_value
@pytest.mark.parametrize("position", [0, 1, 2, "i"])
@pytest.mark.parametrize("make", LOOPS.values(), ids=LOOPS)
def test_only_steps_that_are_made_are_read(inputs, make, position):
    y = make(*inputs[:3])
    with pytensor.config.change_flags(cxx=""):
        steps = pytensor.function(inputs, y, mode=PY, on_unused_input="ignore")
    read = y[inputs[3] if position == "i" else position]
    run = compile_onnx(inputs, read, verify=False)
    for n_steps in (0, 1, 2, 3):
        expected = steps(X, INITIAL, n_steps, 0)
        for k in range(3) if position == "i" else [position]:
            if k < n_steps:
                np.testing.assert_allclose(run(X, INITIAL, n_steps, k), expected[k], rtol=1e-14)
            else:
                with pytest.raises((IndexError, PyTensorONNXError)):
                    run(X, INITIAL, n_steps, k)


def test_the_loop_is_named(inputs):
    y = LOOPS["recurrence"](*inputs[:3])
    with pytest.raises(IndexError, match="a step of scan_fn is read that it does not make"):
        compile_onnx(inputs, y[2], verify=False)(X, INITIAL, 2, 0)


@pytest.mark.each_value
@pytest.mark.parametrize("position", [-1, -2, -3])
@pytest.mark.parametrize("make", LOOPS.values(), ids=LOOPS)
def test_positions_from_the_last_step_on_are_refused_where_pytensor_does(inputs, make, position):
    y = make(*inputs[:3])[position]
    with pytensor.config.change_flags(cxx=""):
        reference = pytensor.function(
            inputs, y, mode=Mode("py", "fast_run"), on_unused_input="ignore"
        )
    run = compile_onnx(inputs, y, verify=False)
    for n_steps in (0, 1, 2, 3):
        try:
            # Of a map of no steps, PyTensor reads another element of the sequence.
            if make is LOOPS["map"] and -position > n_steps:
                raise IndexError
            expected = reference(X, INITIAL, n_steps, 0)
        except (IndexError, ValueError):
            with pytest.raises((IndexError, PyTensorONNXError)):
                run(X, INITIAL, n_steps, 0)
        else:
            np.testing.assert_allclose(run(X, INITIAL, n_steps, 0), expected, rtol=1e-14)


@pytest.mark.parametrize("position", [-1, 2])
def test_nothing_is_checked_that_is_known(position):
    x = pt.vector("x", shape=(3,))
    y = scan(lambda e, y: y * 0.5 + e, [x], [pt.zeros(())])[position]
    nodes = pytensor.function([x], y, mode="ONNX").maker.fgraph.toposort()
    assert not any(isinstance(node.op, CheckAndRaise) for node in nodes)
