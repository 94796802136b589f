"""Gradients of loops are PyTensor's, those of second order too."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.scan.utils import until

from tests.conftest import compare_onnx_and_py
from tests.dispatch.loops.loop_cases import loops, scan

# Sums of a whole loop: rounding errors of the steps add up.
RTOL = 1e-9
MATRIX = np.random.default_rng(0).normal(size=(4, 4))


@pytest.fixture
def x():
    return pt.vector("x")


@pytest.fixture
def x0():
    return pt.scalar("x0")


def values(*shape):
    return np.random.default_rng(1).normal(size=shape)


@pytest.mark.slow
def test_gradients_of_a_recurrence(x, x0):
    y = scan(lambda e, y: pt.tanh(e * 0.5 + y), sequences=[x], outputs_info=[x0])
    gradients = [*pt.grad((y**2).sum(), [x, x0]), *pt.grad(y[-1], [x, x0])]
    first, *others = ([np.linspace(-1, 1, length), 0.5] for length in (1, 2, 50))
    compare_onnx_and_py([x, x0], gradients, first, also=others, rtol=1e-11)


@pytest.mark.slow
def test_second_order_gradients(x, x0):
    y = scan(lambda e, y: pt.tanh(e * 0.5 + y), sequences=[x], outputs_info=[x0])
    first = pt.grad((y**2).sum(), x0)
    compare_onnx_and_py([x, x0], pt.grad(first**2, x), [np.linspace(-1, 1, 5), 0.5], rtol=1e-11)


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


@pytest.mark.slow
def test_truncated_gradients_of_several_taps(x):
    initial = pt.vector("initial")
    y = scan(
        lambda e, a, b: pt.tanh(a * e - b),
        sequences=[x],
        outputs_info=[{"initial": initial, "taps": [-2, -1]}],
        truncate_gradient=3,
    )
    first, *others = ([values(length), values(2)] for length in (3, 4, 9))
    gradient = pt.grad((y**2).sum(), x)
    compare_onnx_and_py([x, initial], gradient, first, also=others, rtol=RTOL)


def test_taps_of_sequences_and_states(x):
    initial, w = pt.vector("initial"), pt.scalar("w")
    y = scan(
        lambda a, b, y2, y1, w: pt.tanh(w * y2 + a * y1 - b),
        sequences=[{"input": x, "taps": [-1, 1]}],
        outputs_info=[{"initial": initial, "taps": [-2, -1]}],
        non_sequences=[w],
    )
    inputs = [x, initial, w]
    gradients = pt.grad((y**2).sum(), inputs)
    first, *others = ([values(length), values(2), 0.4] for length in (2, 3, 10))
    compare_onnx_and_py(inputs, [y, *gradients], first, also=others, rtol=RTOL)


@pytest.mark.slow
def test_states_of_several_kinds():
    x, initial, start = pt.matrix("x"), pt.matrix("initial"), pt.vector("start")
    a, b, c = scan(
        lambda e, a3, a1, b1: (e + a3 * b1, pt.tanh(a1 - b1), (a1 * b1).sum()),
        sequences=[x],
        outputs_info=[{"initial": initial, "taps": [-3, -1]}, start, None],
    )
    inputs = [x, initial, start]
    gradients = pt.grad((a**2).sum() + b.sum() * c.sum(), inputs)
    first, *others = ([values(length, 2), values(3, 2), values(2)] for length in (1, 2, 7))
    compare_onnx_and_py(inputs, gradients, first, also=others, rtol=RTOL)


def test_second_order_gradients_of_several_taps():
    initial, n = pt.vector("initial"), pt.iscalar("n")
    y = scan(
        lambda a, b: pt.sin(a * b), outputs_info=[{"initial": initial, "taps": [-3, -1]}], n_steps=n
    )
    first = pt.grad((y**2).sum(), initial)
    second = pt.grad((first**2).sum(), initial)
    one, *others = ([values(3), n_steps] for n_steps in (1, 2, 5))
    compare_onnx_and_py([initial, n], [first, second], one, also=others, rtol=RTOL)


@pytest.mark.slow
def test_hessian(x, x0):
    y = scan(lambda e, y: pt.tanh(e * 0.5 + y * y), sequences=[x], outputs_info=[x0])
    hessian = pytensor.gradient.hessian(y[-1], x)
    compare_onnx_and_py([x, x0], hessian, [values(4), 0.3], rtol=RTOL)


@pytest.mark.slow
def test_jacobian(x):
    jacobian = pytensor.gradient.jacobian(pt.tanh(x) * x.sum(), x)
    compare_onnx_and_py([x], jacobian, [values(4)], also=[[values(0)], [values(1)]])


@pytest.mark.slow
def test_fewer_steps_than_the_sequence_has(x, x0):
    n = pt.iscalar("n")
    y = scan(lambda e, y: e * y + 0.5 * y, sequences=[x], outputs_info=[x0], n_steps=n)
    first, *others = ([values(7), n_steps, 1.0] for n_steps in (1, 3, 7))
    compare_onnx_and_py([x, n, x0], pt.grad(y.sum(), [x, x0]), first, also=others, rtol=RTOL)


def test_while_loop(x0):
    y = scan(lambda y: (y * 1.5, until(y > 10)), outputs_info=[x0], n_steps=100)
    compare_onnx_and_py([x0], pt.grad(y[-1], x0), [1.0], rtol=RTOL)


def test_matrix_power():
    m, n = pt.matrix("m"), pt.iscalar("n")
    y = scan(lambda p, m: p @ m, outputs_info=[pt.eye(m.shape[0])], non_sequences=[m], n_steps=n)
    compare_onnx_and_py([m, n], pt.grad(y[-1].sum(), m), [MATRIX, 4], rtol=RTOL)


@pytest.mark.slow
def test_update_at_an_index(x):
    where = pt.lvector("where")
    y = scan(
        lambda i, s, x: pt.inc_subtensor(s[i], x[i] * s.sum()),
        sequences=[where],
        outputs_info=[pt.ones_like(x)],
        non_sequences=[x],
    )
    gradient = pt.grad(y[-1].sum() * y.sum(), x)
    first, other = ([np.arange(4.0), np.array(indices)] for indices in ([0], [1, 1, 3]))
    compare_onnx_and_py([x, where], gradient, first, also=[other], rtol=RTOL)


@pytest.mark.slow
def test_loops_within_loops():
    m = pt.tensor3("m")

    def over_elements(row, start):
        return scan(lambda e, t: e + 0.5 * t, sequences=[row], outputs_info=[start])[-1]

    def over_rows(matrix, start):
        return scan(over_elements, sequences=[matrix], outputs_info=[start])[-1]

    y = scan(over_rows, sequences=[m], outputs_info=[pt.zeros(())])
    compare_onnx_and_py([m], pt.grad((y**2).sum(), m), [values(2, 3, 4)], rtol=RTOL)


@pytest.mark.slow
def test_loops_over_the_results_of_loops(x):
    a = scan(lambda e, y: e + 0.5 * y, sequences=[x], outputs_info=[pt.zeros(())])
    b = scan(lambda e, f, y: e * f + 0.1 * y, sequences=[a, x], outputs_info=[pt.ones(())])
    c = scan(lambda e, y: e - y, sequences=[b[::-1]], outputs_info=[a[-1]])
    first, *others = ([values(length)] for length in (1, 2, 6))
    compare_onnx_and_py([x], pt.grad((c**2).sum(), x), first, also=others, rtol=RTOL)


@pytest.mark.slow
def test_gradient_runs_as_an_onnx_scan(x, x0):
    y = scan(lambda e, y: pt.tanh(e * 0.5 + y), sequences=[x], outputs_info=[x0])
    program = compare_onnx_and_py([x, x0], pt.grad(y.sum(), x), [values(5), 0.5], rtol=RTOL)
    assert loops(program) == ["Scan"], "the gradient is a linear recurrence"


@pytest.mark.slow
def test_a_gradient_stores_no_steps_that_nothing_reads():
    x = pt.tensor("x", shape=(20,))
    steps = pytensor.scan(
        lambda state, x: pt.tanh(state + x),
        outputs_info=[pt.zeros(20)],
        non_sequences=[x],
        n_steps=4,
        return_updates=False,
    )
    program = compare_onnx_and_py([x], pt.grad((steps**2).sum(), x), [np.linspace(-1, 1, 20)])
    *_, backward = (node for node in program.model.graph if node.op_type == "Scan")
    n_states = len(backward.inputs) - backward.attributes["num_scan_inputs"].as_int()
    assert len(backward.outputs) == n_states
