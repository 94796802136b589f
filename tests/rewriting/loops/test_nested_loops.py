"""A loop within a map of rows computes all rows in each step, and so does its gradient."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.raise_op import Assert
from pytensor.scan.op import Scan
from pytensor.scan.utils import until

from pytensor_onnx.errors import PyTensorONNXError
from tests.conftest import PY, compare_onnx_and_py
from tests.dispatch.loops.loop_cases import scan

X, START, RATE = pt.matrix("x"), pt.vector("start"), pt.scalar("rate")
GIVEN = [X, START, RATE]


def values(rows=4, steps=6):
    rng = np.random.default_rng(2)
    return [rng.normal(size=(rows, steps)), rng.normal(size=rows), np.array(0.7)]


def loops(inputs, outputs):
    """Return for each loop of a graph in mode ONNX the number of loops within it."""
    f = pytensor.function(inputs, outputs, mode="ONNX", on_unused_input="ignore")
    return [
        sum(isinstance(inner.op, Scan) for inner in node.op.fgraph.toposort())
        for node in f.maker.fgraph.toposort()
        if isinstance(node.op, Scan)
    ]


def decay(e, y, rate):
    return pt.tanh(rate * y + e)


def of_rows(row):
    return scan(row, [X, START], None, [RATE])


def last(row, start, rate):
    return scan(decay, [row], [start], [rate])[-1]


def trace(row, start, rate):
    return scan(decay, [row], [start], [rate])


def from_zero(row, start, rate):
    return scan(decay, [row], [pt.zeros(())], [rate]) + start


def two_lags(row, start, rate):
    def step(e, before, y, rate):
        return pt.tanh(rate * y - before + e)

    first = {"initial": pt.stack([start, 2 * start]), "taps": [-2, -1]}
    return scan(step, [row], [first], [rate])


def of_vectors(row, start, rate):
    """Rotate a vector of two, which only some of the rows' values enter."""
    turn = pt.stack([pt.stack([rate, -1.0]), pt.stack([1.0, rate])])

    def step(e, y, turn):
        return pt.tanh(turn @ y) + e, y.sum()

    y, total = scan(step, [row], [pt.ones(2) * start, None], [turn])
    return pt.concatenate([y.sum(axis=1), total])


def counted(row, start, rate):
    """Have a state that is the same in all rows."""

    def step(e, y, k, rate):
        return pt.tanh(rate * y + e) / k, k + 1.0

    y, k = scan(step, [row], [start, pt.ones(())], [rate])
    return y + k


def of_running_means(row, start, rate):
    """Have a loop within the inner loop."""

    def mean(e, y, row):
        return y + pt.tanh(scan(decay, [row], [e], [y])[-1])

    return scan(mean, [row], [start], [row])


ROWS = [last, trace, from_zero, two_lags, of_vectors, counted, of_running_means]


@pytest.mark.few(1)
@pytest.mark.parametrize("row", ROWS)
def test_rows_of_a_loop(row):
    y = of_rows(row)
    inner = loops(GIVEN, y)
    assert inner == ([1] if row is of_running_means else [0])
    program = compare_onnx_and_py(GIVEN, y, values())
    reference = pytensor.function(GIVEN, y, mode=PY)
    bad = values()
    bad[0][1, 2], bad[0][2, 3], bad[1][3] = np.nan, np.inf, -np.inf
    for given in (values(1, 1), bad, values(3, 2)):
        (found,) = program(*given)
        np.testing.assert_allclose(found, reference(*given), rtol=1e-12)
    # PyTensor's loop without a step does not know the length of its rows.
    assert program(*values(0, 5))[0].shape[0] == 0


@pytest.mark.parametrize("row", [two_lags, counted])
@pytest.mark.slow
def test_gradients_of_rows_of_a_loop(row):
    gradients = pytensor.grad((of_rows(row) ** 2).sum(), GIVEN)
    assert set(loops(GIVEN, gradients)) == {0}
    program = compare_onnx_and_py(GIVEN, gradients, values(), rtol=1e-10)
    # Without a row, PyTensor's own graph fails.
    assert [np.sum(x) for x in program(*values(0, 5))] == [0.0, 0.0, 0.0]


def test_a_jacobian_of_a_recurrence_has_no_nested_loops():
    y = scan(decay, [START], [pt.zeros(())], [RATE])
    jacobian = pytensor.gradient.jacobian(y, START)
    assert set(loops([START, RATE], jacobian)) == {0}
    compare_onnx_and_py([START, RATE], jacobian, values()[1:], rtol=1e-9)


@pytest.mark.slow
def test_a_hessian_of_a_recurrence_has_no_nested_loops():
    y = scan(decay, [START], [pt.zeros(())], [RATE])
    hessian = pytensor.gradient.hessian((y**2).sum(), START)
    assert set(loops([START, RATE], hessian)) == {0}
    compare_onnx_and_py([START, RATE], hessian, values()[1:], rtol=1e-9)


def test_one_row_of_one_step():
    x = pt.tensor("x", shape=(1, 1, 1))

    def row(row):
        return scan(lambda e, y: 0.5 * y + e, [row], [pt.zeros_like(row[0])])[-1]

    y = scan(row, [x])
    compare_onnx_and_py([x], scan(row, [y]), [np.full((1, 1, 1), 3.0)])


def test_an_index_that_differs_between_rows():
    i = pt.lvector("i")

    def row(row, i):
        return scan(lambda e, y: pt.tanh(e + y), [row], [row[i]])

    y = pytensor.scan(row, [X, i], return_updates=False, name="picked")
    assert loops([X, i], y) == [0]
    compare_onnx_and_py([X, i], y, [values()[0], np.array([0, 5, -6, -1])])
    f = pytensor.function([X, i], y, mode="ONNX")
    with pytest.raises(IndexError, match="picked"):
        f(values()[0], np.array([0, 6, 0, 0]))


def test_rows_of_no_steps():
    y = of_rows(trace)
    compare_onnx_and_py(GIVEN, y, values(3, 0), also=[values(0, 0)])


@pytest.mark.slow
def test_rows_of_no_steps_without_a_state():
    def row(row):
        return scan(lambda e, y: (pt.tanh(e + y), y * e), [row], [pt.zeros(()), None])[1]

    y = scan(lambda x: pt.exp(row(x)).prod(), [X])
    cost = scan(lambda x: scan(lambda e, y: pt.tanh(e + y), [x], [pt.zeros(())]).sum(), [X]).sum()
    outputs = [y, cost, pytensor.grad(cost, X)]
    assert set(loops([X], outputs)) == {0}
    program = compare_onnx_and_py([X], outputs, values(3, 0)[:1])
    np.testing.assert_array_equal(program(np.ones((3, 0)))[0], np.ones(3))


def test_conditions_of_no_rows_are_not_checked():
    def row(row, rate):
        row = Assert("rate")(row, rate > 0)
        return scan(lambda e, y: pt.tanh(e + y), [row], [pt.zeros(())])[-1]

    y = scan(row, [X], None, [RATE])
    assert loops([X, RATE], y) == [0]
    f = pytensor.function([X, RATE], y, mode="ONNX")
    assert f(np.ones((0, 3)), -1.0).shape == (0,)
    assert f(np.ones((2, 3)), 1.0).shape == (2,)
    with pytest.raises(AssertionError, match="rate"):
        f(np.ones((2, 3)), -1.0)


@pytest.mark.slow
def test_a_given_number_of_steps_for_every_row():
    n = pt.lscalar("n")

    def row(start, rate, n):
        return scan(lambda y, rate: pt.sin(rate * y) + 1, [], [start], [rate], n_steps=n)

    y = scan(row, [START], None, [RATE, n])
    assert loops([START, RATE, n], y) == [0]
    first, other = ([*values()[1:], np.array(steps)] for steps in (5, 0))
    compare_onnx_and_py([START, RATE, n], y, first, also=[other])


@pytest.mark.slow
def test_rows_of_unequal_numbers_of_steps_stay_in_the_loop():
    n = pt.lvector("n")

    def row(start, n, rate):
        return scan(lambda y, rate: pt.sin(rate * y) + 1, [], [start], [rate], n_steps=n)[-1]

    y = scan(row, [START, n], None, [RATE])
    assert loops([START, n, RATE], y) == [1]
    compare_onnx_and_py([START, n, RATE], y, [*values()[1:2], np.array([1, 4, 2, 3]), 0.7])


@pytest.mark.slow
def test_loops_with_a_condition_stay_in_the_loop():
    def row(start, rate):
        def step(y, rate):
            y = rate * y
            return y, until(pt.abs(y) < 0.1)

        return scan(step, [], [start], [rate], n_steps=20)[-1]

    y = scan(row, [START], None, [RATE])
    assert loops([START, RATE], y) == [1]
    compare_onnx_and_py([START, RATE], y, values()[1:])


@pytest.mark.slow
def test_loops_of_a_state_stay_in_the_loop_and_others_leave_it():
    def row(row, total, rate):
        free, bound = (scan(decay, [row], [y], [rate])[-1] for y in (rate, total))
        return free + bound

    y = scan(row, [X], [pt.zeros(())], [RATE])
    assert sorted(loops([X, RATE], y)) == [0, 1]
    compare_onnx_and_py([X, RATE], y, values()[::2])


def test_a_short_sequence_of_an_inner_loop_fails():
    n = pt.lscalar("n")

    def row(row, n):
        return scan(lambda e, y: pt.tanh(e + y), [row], [pt.zeros(())], n_steps=n, name="inner")

    f = pytensor.function([X, n], scan(row, [X], None, [n]), mode="ONNX")
    assert f(values()[0], 4).shape == (4, 4)
    with pytest.raises((ValueError, PyTensorONNXError), match="sequence 0 of inner ends before"):
        f(values()[0], 7)


def test_slices_of_each_row_stay_in_the_loop():
    """Their lengths differ, and one array has them not all."""
    x, ends = pt.vector("x"), pt.lvector("ends")

    def total(end, x):
        return pytensor.scan(
            lambda e, y: e + 2 * y, [x[:end]], [pt.zeros(())], return_updates=False
        ).sum()

    y = pytensor.scan(total, [ends], non_sequences=[x], return_updates=False)
    compare_onnx_and_py([x, ends], y, [np.arange(5.0), np.array([0, 3, 1])])
