"""Loops give PyTensor's values for every length, and their gradients do too."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.scan.utils import until

from pytensor_onnx import PyTensorONNXError, compile_onnx
from tests.conftest import compare_onnx_and_py, op_types

LENGTHS = [0, 1, 2, 50]
MATRIX = np.random.default_rng(0).normal(size=(4, 4))


def scan(*args, **kwargs):
    return pytensor.scan(*args, return_updates=False, **kwargs)


@pytest.fixture
def x():
    return pt.vector("x")


@pytest.fixture
def x0():
    return pt.scalar("x0")


@pytest.mark.parametrize("length", LENGTHS)
def test_recurrence_over_a_sequence(x, x0, length):
    y = scan(lambda e, y: e * 0.5 + y * 0.9, sequences=[x], outputs_info=[x0])
    compare_onnx_and_py([x, x0], [y, y.sum()], [np.arange(float(length)), 1.5])


@pytest.mark.parametrize("length", LENGTHS[1:])
def test_gradients_of_a_recurrence(x, x0, length):
    y = scan(lambda e, y: pt.tanh(e * 0.5 + y), sequences=[x], outputs_info=[x0])
    gradients = [*pt.grad((y**2).sum(), [x, x0]), *pt.grad(y[-1], [x, x0])]
    compare_onnx_and_py([x, x0], gradients, [np.linspace(-1, 1, length), 0.5], rtol=1e-11)


def test_second_order_gradients(x, x0):
    y = scan(lambda e, y: pt.tanh(e * 0.5 + y), sequences=[x], outputs_info=[x0])
    first = pt.grad((y**2).sum(), x0)
    compare_onnx_and_py([x, x0], pt.grad(first**2, x), [np.linspace(-1, 1, 5), 0.5], rtol=1e-11)


@pytest.mark.parametrize("n_steps", [1, 2, 3, 10])
@pytest.mark.parametrize("taps", [[-2, -1], [-3, -1], [-4]])
def test_several_taps_of_the_past(taps, n_steps):
    initial, n = pt.vector("initial"), pt.iscalar("n")

    def step(*past):
        return sum(0.5 * y * (i + 1) for i, y in enumerate(past))

    y = scan(step, outputs_info=[{"initial": initial, "taps": taps}], n_steps=n)
    values = [np.arange(1.0, 1.0 - min(taps)), n_steps]
    compare_onnx_and_py([initial, n], [y, y[-1]], values)
    compare_onnx_and_py([initial, n], pt.grad((y**2).sum(), initial), values)


@pytest.mark.parametrize("static", [True, False])
def test_number_of_steps_known_or_given(x0, static):
    n = pt.constant(5) if static else pt.iscalar("n")
    y = scan(lambda y: y * 2, outputs_info=[x0], n_steps=n)
    inputs, values = ([x0], [1.5]) if static else ([x0, n], [1.5, 5])
    compare_onnx_and_py(inputs, [y, y[-1]], values)


@pytest.mark.parametrize("limit", [3, 50])
def test_while_loop_stops_at_its_condition(x0, limit):
    n = pt.iscalar("n")
    y = scan(lambda y: (y * 2, until(y * 2 > 100)), outputs_info=[x0], n_steps=n)
    compare_onnx_and_py([x0, n], [y, y[-1], y.shape[0]], [1.5, limit])


def test_newton_iteration(x0):
    def step(y):
        new = 0.5 * (y + x0 / y)
        return new, until(pt.abs(new - y) < 1e-12)

    root = scan(step, outputs_info=[pt.ones(())], n_steps=100)[-1]
    compare_onnx_and_py([x0], root, [2.0])


@pytest.mark.parametrize("length", LENGTHS[1:])
def test_map_without_recurrence(length):
    m = pt.matrix("m")
    compare_onnx_and_py(
        [m], scan(lambda row: row.sum() * row, sequences=[m]), [np.ones((length, 3))]
    )


def test_sequences_with_taps_and_reversed(x, x0):
    taps = {"input": x, "taps": [-1, 0, 2]}
    compare_onnx_and_py(
        [x], scan(lambda a, b, c: a + 2 * b + 3 * c, sequences=[taps]), [np.arange(8.0)]
    )
    y = scan(lambda e, y: e + y / 2, sequences=[x], outputs_info=[x0], go_backwards=True)
    compare_onnx_and_py([x, x0], y, [np.arange(5.0), 1.0])


def test_recurrent_network_and_its_gradients():
    rows, start, w = pt.matrix("rows"), pt.vector("start"), pt.matrix("w")
    h = scan(
        lambda row, h, w: pt.tanh(row + h @ w),
        sequences=[rows],
        outputs_info=[start],
        non_sequences=[w],
    )
    inputs, values = [rows, start, w], [MATRIX[:3], MATRIX[0], MATRIX]
    compare_onnx_and_py(inputs, [h, h[-1]], values)
    compare_onnx_and_py(inputs, list(pt.grad((h**2).sum(), inputs)), values, rtol=1e-10)


def test_truncated_gradients():
    rows, start, w = pt.matrix("rows"), pt.vector("start"), pt.matrix("w")
    h = scan(
        lambda row, h, w: pt.tanh(row + h @ w),
        sequences=[rows],
        outputs_info=[start],
        non_sequences=[w],
        truncate_gradient=2,
    )
    gradients = list(pt.grad((h**2).sum(), [rows, w]))
    compare_onnx_and_py([rows, start, w], gradients, [MATRIX, MATRIX[0], MATRIX], rtol=1e-10)


def test_several_outputs_of_different_kinds(x, x0):
    def step(e, y):
        return y + e, pt.stack([e, y]), (y > 2)

    outputs = scan(step, sequences=[x], outputs_info=[x0, None, None])
    compare_onnx_and_py([x, x0], outputs, [np.arange(5.0), 0.5])


def test_nested_loops_and_their_gradient(x0):
    m = pt.matrix("m")

    def outer(row):
        inner = scan(lambda e, total: e + total * 0.5, sequences=[row], outputs_info=[x0])
        return inner[-1]

    y = scan(outer, sequences=[m])
    compare_onnx_and_py([m, x0], [y, pt.grad((y**2).sum(), m)], [MATRIX, 0.3], rtol=1e-11)


def test_integer_and_bool_states():
    n = pt.iscalar("n")
    counts = scan(lambda c: c * 3 + 1, outputs_info=[pt.constant(0, dtype="int64")], n_steps=n)
    flags = scan(lambda f: ~f, outputs_info=[pt.constant(True)], n_steps=n)
    compare_onnx_and_py([n], [counts, flags], [5])


def test_inner_graph_with_a_slice_update(x):
    n = pt.iscalar("n")
    y = scan(lambda v: pt.set_subtensor(v[1:], v[:-1] * 2), outputs_info=[x], n_steps=n)
    compare_onnx_and_py([x, n], y, [np.arange(1.0, 5.0), 3])


def test_last_step_alone_stacks_nothing(x, x0):
    y = scan(lambda e, y: e * 0.5 + y * 0.9, sequences=[x], outputs_info=[x0])
    program = compare_onnx_and_py([x, x0], y[-1], [np.arange(5.0), 1.5])
    (loop,) = (node for node in program.model.graph if node.op_type == "Loop")
    assert len(loop.outputs) == 1
    assert "ScatterND" not in op_types(program)


def test_work_that_no_step_changes_stands_before_the_loop(x, x0):
    y = scan(
        lambda e, y, a: pt.exp(a) * e + y, sequences=[x], outputs_info=[x0], non_sequences=[x0]
    )
    program = compare_onnx_and_py([x, x0], y, [np.arange(5.0), 0.5])
    assert "Exp" in op_types(program)


@pytest.mark.parametrize("length", [3, 7])
def test_sequence_that_ends_too_early_is_named(x, x0, length):
    n = pt.iscalar("n")
    y = scan(lambda e, y: e + y, sequences=[x], outputs_info=[x0], n_steps=n, name="walk")
    run = compile_onnx([x, x0, n], y, verify=False)
    if length == 7:
        np.testing.assert_array_equal(run(np.ones(7), 0.0, 5), np.arange(1.0, 6.0))
    else:
        with pytest.raises(ValueError, match="sequence 0 of walk ends before its steps do"):
            run(np.ones(3), 0.0, 5)


def test_negative_number_of_steps_is_refused(x0):
    n = pt.iscalar("n")
    run = compile_onnx(
        [x0, n], scan(lambda y: y + 1, outputs_info=[x0], n_steps=n, name="walk"), verify=False
    )
    with pytest.raises((IndexError, PyTensorONNXError), match="walk was asked to run a negative"):
        run(0.0, -3)


def test_updates_in_mode_onnx():
    total, n = pytensor.shared(0.0), pt.iscalar("n")
    last = scan(lambda y: y + 1, outputs_info=[total], n_steps=n)[-1]
    f = pytensor.function([n], last, updates={total: last}, mode="ONNX")
    assert (f(3), f(4)) == (3.0, 7.0)


def loops(program):
    """Return the loop operators of a model, those inside branches too."""
    return [n.op_type for n in program.model.graph.all_nodes() if n.op_type in ("Loop", "Scan")]


def test_sequences_as_long_as_the_steps_make_an_onnx_scan(x, x0):
    y = scan(lambda e, y: e + y, sequences=[x], outputs_info=[x0])
    assert loops(compare_onnx_and_py([x, x0], y, [np.arange(3.0), 0.0])) == ["Scan"]
    z = scan(lambda e, f, y: e + f * y, sequences=[x, x + 1], outputs_info=[x0])
    assert loops(compare_onnx_and_py([x, x0], z, [np.arange(3.0), 0.0])) == ["Scan"]


def test_sequences_of_other_lengths_make_a_loop(x, x0):
    other = pt.vector("other")
    y = scan(lambda e, f, y: e + f * y, sequences=[x, other], outputs_info=[x0])
    values = [np.arange(5.0), np.arange(3.0), 1.0]
    assert loops(compare_onnx_and_py([x, other, x0], y, values)) == ["Loop"]


def test_scan_of_a_static_length_needs_no_guard(x0):
    x = pt.vector("x", shape=(4,))
    y = scan(lambda e, y: e + y, sequences=[x], outputs_info=[x0])
    program = compare_onnx_and_py([x, x0], y, [np.arange(4.0), 0.0])
    assert "Scan" in op_types(program)
