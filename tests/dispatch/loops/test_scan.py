"""Loops give PyTensor's values for every length."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.conditional.op import ifelse
from pytensor.scan.utils import until

from pytensor_onnx import PyTensorONNXError, compile_onnx
from tests.conftest import compare_onnx_and_py, op_types
from tests.dispatch.loops.loop_cases import loops, scan

LENGTHS = [0, 1, 2, 50]
MATRIX = np.random.default_rng(0).normal(size=(4, 4))


@pytest.fixture
def x():
    return pt.vector("x")


@pytest.fixture
def x0():
    return pt.scalar("x0")


@pytest.mark.slow
def test_recurrence_over_a_sequence(x, x0):
    y = scan(lambda e, y: e * 0.5 + y * 0.9, sequences=[x], outputs_info=[x0])
    first, *others = ([np.arange(float(length)), 1.5] for length in LENGTHS)
    compare_onnx_and_py([x, x0], [y, y.sum()], first, also=others)


@pytest.mark.slow
@pytest.mark.each_value
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


@pytest.mark.parametrize("bound", [0.0, 100.0, np.inf])
def test_while_loop_stops_at_its_condition(x0, bound):
    n, last = pt.iscalar("n"), pt.scalar("last")
    y = scan(lambda y: (y * 1.01, until(y > last)), outputs_info=[x0], n_steps=n)
    first, *others = ([1.5, limit, bound] for limit in [1, 2, 3, 50, 3000])
    compare_onnx_and_py([x0, n, last], [y, y[-1], y.shape[0]], first, also=others, rtol=1e-10)


def test_while_loop_of_no_steps(x0):
    n = pt.iscalar("n")
    y, z = scan(lambda y: ((y * 2, y + 1), until(y > 100)), outputs_info=[x0, None], n_steps=n)
    for result in compile_onnx([x0, n], [y, z], verify=False)(1.5, 0):
        np.testing.assert_array_equal(result, np.zeros(0))


def test_a_condition_that_is_negated_is_not_negated_again(x0):
    y = scan(lambda y: (y * 2, until(~(y < 100))), outputs_info=[x0], n_steps=20)
    program = compare_onnx_and_py([x0], y, [1.5])
    assert "Not" not in [node.op_type for node in program.model.graph.all_nodes()]


def test_newton_iteration(x0):
    def step(y):
        new = 0.5 * (y + x0 / y)
        return new, until(pt.abs(new - y) < 1e-12)

    root = scan(step, outputs_info=[pt.ones(())], n_steps=100)[-1]
    compare_onnx_and_py([x0], root, [2.0])


def test_map_without_recurrence():
    m = pt.matrix("m")
    first, *others = ([np.ones((length, 3))] for length in LENGTHS[1:])
    compare_onnx_and_py([m], scan(lambda row: row.sum() * row, sequences=[m]), first, also=others)


@pytest.mark.slow
def test_sequences_with_taps_and_reversed(x, x0):
    taps = {"input": x, "taps": [-1, 0, 2]}
    compare_onnx_and_py(
        [x], scan(lambda a, b, c: a + 2 * b + 3 * c, sequences=[taps]), [np.arange(8.0)]
    )
    y = scan(lambda e, y: e + y / 2, sequences=[x], outputs_info=[x0], go_backwards=True)
    compare_onnx_and_py([x, x0], y, [np.arange(5.0), 1.0])


@pytest.mark.slow
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


@pytest.mark.slow
def test_several_outputs_of_different_kinds(x, x0):
    def step(e, y):
        return y * 0.5 + e, pt.stack([e, y]), (y > 2)

    outputs = scan(step, sequences=[x], outputs_info=[x0, None, None])
    compare_onnx_and_py([x, x0], outputs, [np.arange(5.0), 0.5])


def test_nested_loops_and_their_gradient(x0):
    m = pt.matrix("m")

    def outer(row):
        inner = scan(lambda e, total: e + total * 0.5, sequences=[row], outputs_info=[x0])
        return inner[-1]

    y = scan(outer, sequences=[m])
    compare_onnx_and_py([m, x0], [y, pt.grad((y**2).sum(), m)], [MATRIX, 0.3], rtol=1e-11)


def test_inner_graph_with_a_slice_update(x):
    n = pt.iscalar("n")
    y = scan(lambda v: pt.set_subtensor(v[1:], v[:-1] * 2), outputs_info=[x], n_steps=n)
    compare_onnx_and_py([x, n], y, [np.arange(1.0, 5.0), 3])


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
        with pytest.raises(ValueError, match=r"sequence 0 \(x\) of walk ends before its"):
            run(np.ones(3), 0.0, 5)


@pytest.mark.parametrize(
    ("step", "array"),
    [
        (lambda i, y, x: 0.5 * y + x[i], "into x "),
        (lambda i, y, x: 0.5 * y + x[pt.stack([i, i])].sum(), "into x "),
        (lambda i, y, x: pt.set_subtensor(y[i], x[0]), ""),
        (lambda i, y, x: ifelse(i > 1, y + x[i], y), "into x "),
    ],
    ids=["element", "several", "update", "in a branch"],
)
def test_index_out_of_range_names_the_loop_and_the_array(x, step, array):
    where = pt.lvector("where")
    y = scan(step, [where], [pt.zeros_like(x)], [x], name="walk")
    run = compile_onnx([x, where], y, verify=False)
    assert run(np.ones(3), [0, 2]).shape == (2, 3)
    with pytest.raises(IndexError, match=f"^index 3 {array}is out of range(.|\n)*loop: +walk\n"):
        run(np.ones(3), [0, 3])


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


def updates_of(step, n_steps):
    with pytest.warns(DeprecationWarning, match="Updates dict"):
        return pytensor.scan(step, n_steps=n_steps)[1]


def test_updates_of_shared_variables_inside_the_loop():
    count = pytensor.shared(1.0)
    updates = updates_of(lambda: {count: count * 2}, n_steps=4)
    pytensor.function([], [], updates=updates, mode="ONNX")()
    assert count.get_value() == 16


def test_state_that_grows():
    rows = pytensor.shared(np.zeros(1))
    updates = updates_of(lambda: {rows: pt.concatenate([rows, rows + 1])}, n_steps=3)
    pytensor.function([], [], updates=updates, mode="ONNX")()
    np.testing.assert_array_equal(rows.get_value(), [0, 1, 1, 2, 1, 2, 2, 3])


@pytest.mark.parametrize("length", [0, 1, 2, 5])
def test_a_known_length(length, x0):
    x, start = pt.matrix("x", shape=(length, 3)), pt.vector("start", shape=(3,))
    y = scan(lambda e, y: e + 0.5 * y, sequences=[x], outputs_info=[start])
    z = scan(lambda y: 0.5 * y, outputs_info=[start], n_steps=length)
    values = [np.ones((length, 3)), np.arange(3.0)]
    program = compare_onnx_and_py([x, start], [y, z], values)
    assert "If" not in op_types(program)


@pytest.mark.slow
def test_a_large_length(x, x0):
    y = scan(lambda e, y: e + 0.5 * y, sequences=[x], outputs_info=[x0])
    compare_onnx_and_py([x, x0], [y, y[-1]], [np.linspace(-1, 1, 5000), 1.0])


def test_the_shortest_sequence_ends_the_loop(x, x0):
    other = pt.vector("other")
    y = scan(lambda e, f, y: e * f + y, sequences=[x, other], outputs_info=[x0])
    first, *others = (
        [np.arange(float(n)), np.arange(float(m)), 1.0] for n, m in [(3, 5), (5, 3), (0, 2), (4, 4)]
    )
    compare_onnx_and_py([x, other, x0], y, first, also=others)


@pytest.mark.parametrize("backwards", [False, True])
def test_fewer_steps_than_the_sequence_has(x, x0, backwards):
    n = pt.iscalar("n")
    y = scan(
        lambda e, y: e + 0.5 * y,
        sequences=[x],
        outputs_info=[x0],
        n_steps=n,
        go_backwards=backwards,
    )
    first, *others = ([np.arange(7.0), n_steps, 1.0] for n_steps in [0, 1, 3, 7])
    compare_onnx_and_py([x, n, x0], y, first, also=others)


@pytest.mark.each_value
@pytest.mark.parametrize("taps", [[-2, 0], [1], [-1, 1]])
@pytest.mark.parametrize("backwards", [False, True])
def test_taps_of_a_sequence(x, x0, taps, backwards):
    y = scan(
        lambda *args: args[0] - 2 * args[-2] + args[-1],
        sequences=[{"input": x, "taps": taps}],
        outputs_info=[x0],
        go_backwards=backwards,
    )
    first, *others = ([np.arange(float(length)) ** 2, 1.0] for length in [2, 3, 7])
    compare_onnx_and_py([x, x0], y, first, also=others)


@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int32", "int64", "uint64", "bool", "float16", "float32"]
)
def test_dtypes_of_states(dtype):
    x, x0 = pt.vector("x", dtype=dtype), pt.scalar("x0", dtype=dtype)
    y = scan(
        lambda e, y: e ^ y if dtype == "bool" else (y * 3 + e).astype(dtype),
        sequences=[x],
        outputs_info=[x0],
    )
    values = [np.arange(50).astype(dtype), np.array(1, dtype)]
    compare_onnx_and_py([x, x0], [y, y[-1]], values)


def test_matrix_as_state():
    m, n = pt.matrix("m"), pt.iscalar("n")
    y = scan(lambda p, m: p @ m, outputs_info=[pt.eye(m.shape[0])], non_sequences=[m], n_steps=n)
    first, *others = ([MATRIX, n_steps] for n_steps in [0, 1, 2, 9])
    compare_onnx_and_py([m, n], y, first, also=others, rtol=1e-10)


def test_initial_value_that_broadcasts():
    rows = pt.matrix("rows")
    y = scan(lambda e, s: e + 2 * s, sequences=[rows], outputs_info=[pt.zeros(rows.shape[1])])
    first, *others = ([np.ones((3, width))] for width in [1, 2])
    compare_onnx_and_py([rows], y, first, also=others)


def test_strict():
    x, w = pt.vector("x"), pt.scalar("w")
    y = scan(
        lambda e, y, w: e + y * w,
        sequences=[x],
        outputs_info=[pt.zeros(())],
        non_sequences=[w],
        strict=True,
    )
    compare_onnx_and_py([x, w], y, [np.arange(4.0), 0.5])


@pytest.mark.slow
def test_shared_variable_in_the_step():
    x, w = pt.vector("x"), pytensor.shared(MATRIX, name="w")
    y = scan(lambda e, h: pt.tanh(h @ w + e), sequences=[x], outputs_info=[pt.zeros(4)])
    compare_onnx_and_py([x], y, [np.arange(4.0)])


def test_outputs_that_are_an_input_a_state_or_a_constant(x, x0):
    twice = scan(lambda e, y, z: (e + y, e + y), sequences=[x], outputs_info=[x0, x0])
    element = scan(lambda e, y: e, sequences=[x], outputs_info=[x0])
    state = scan(lambda e, y: y, sequences=[x], outputs_info=[x0])
    constant = scan(lambda e: pt.constant(3.0), sequences=[x])
    outputs = [*twice, element, state, constant]
    first, *others = ([np.arange(float(length)), 1.0] for length in [0, 1, 4])
    compare_onnx_and_py([x, x0], outputs, first, also=others)


@pytest.mark.parametrize("length", [1, 2, 5])
def test_while_loop_over_a_sequence(x, x0, length):
    y, z = scan(
        lambda e, y: ((y + e, e * 2), until(y + e > 3)), sequences=[x], outputs_info=[x0, None]
    )
    compare_onnx_and_py([x, x0], [y, z, y[-1], z[-1]], [np.ones(length), 0.0])
    compare_onnx_and_py([x, x0], [y[-1], z[-1], y[-2:]], [np.ones(length), 0.0])


@pytest.mark.slow
def test_while_loop_inside_a_loop(x):
    def root(e):
        steps = scan(
            lambda y: (0.5 * (y + e / y), until(abs(y * y - e) < 1e-10)),
            outputs_info=[pt.ones(())],
            n_steps=50,
        )
        return steps[-1]

    compare_onnx_and_py([x], scan(root, sequences=[x]), [np.arange(1.0, 6.0)])


@pytest.mark.slow
def test_inner_loop_of_a_length_that_changes(x):
    def total(i, x):
        return scan(lambda e, y: e + 2 * y, sequences=[x[:i]], outputs_info=[pt.zeros(())]).sum()

    count = pt.iscalar("count")
    y = scan(total, sequences=[pt.arange(count)], non_sequences=[x])
    first, *others = ([np.arange(5.0), n] for n in [0, 1, 5])
    compare_onnx_and_py([x, count], y, first, also=others)


@pytest.mark.slow
def test_inner_graph_with_an_update_at_an_index(x):
    where = pt.lvector("where")
    y = scan(
        lambda i, s, x: pt.inc_subtensor(s[i], x[i]),
        sequences=[where],
        outputs_info=[pt.zeros_like(x)],
        non_sequences=[x],
    )
    first, *others = ([np.arange(4.0), np.array(indices)] for indices in [[0], [1, 1, 3]])
    compare_onnx_and_py([x, where], [y, y[-1]], first, also=others)


def test_inner_graph_with_a_batched_operation():
    m = pt.tensor3("m")
    rows_sorted = pt.vectorize(pt.sort, "(n)->(n)")
    y = scan(lambda a, s: rows_sorted(a) + s, sequences=[m], outputs_info=[pt.zeros((3, 4))])
    compare_onnx_and_py([m], y, [MATRIX[:, :3].reshape(1, 3, 4) * [[[1]], [[-1]]]])


@pytest.mark.slow
def test_loops_over_the_results_of_loops(x):
    a = scan(lambda e, y: e + 0.5 * y, sequences=[x], outputs_info=[pt.zeros(())])
    b = scan(lambda e, f, y: e * f + 0.1 * y, sequences=[a, x], outputs_info=[pt.ones(())])
    c = scan(lambda e, y: e - y, sequences=[b[::-1]], outputs_info=[a[-1]])
    first, *others = ([np.arange(float(length))] for length in [1, 2, 6])
    compare_onnx_and_py([x], [a, b, c], first, also=others)


# Steps that are kept.


@pytest.mark.each_value
@pytest.mark.parametrize(
    ("n_steps", "is_known"),
    [(1, False), (2, False), (3, False), (20, False), (2, True), (20, True)],
)
@pytest.mark.parametrize("kept", [slice(-1, None), slice(-3, None), -1])
def test_only_the_last_values_of_a_recurrence(n_steps, is_known, kept):
    x, n = pt.vector("x"), pt.iscalar("n")
    y = scan(lambda y: pt.tanh(y) * 1.1, outputs_info=[x], n_steps=n_steps if is_known else n)
    program = compare_onnx_and_py([x, n], y[kept], [np.arange(3.0), n_steps])
    (loop,) = (node for node in program.model.graph.all_nodes() if node.op_type == "Loop")
    assert len(loop.outputs) == len(loop.inputs) - 2, "nothing is stacked"


@pytest.mark.parametrize("kept", [slice(-2, None), slice(-5, None), -1])
def test_only_the_last_values_of_several_taps(kept):
    initial = pt.vector("initial")
    y = scan(lambda a, b: a + b, outputs_info=[{"initial": initial, "taps": [-3, -1]}], n_steps=6)
    compare_onnx_and_py([initial], y[kept], [np.arange(1.0, 4.0)])


@pytest.mark.parametrize("kept", [slice(-3, None), -1])
def test_only_the_last_values_of_a_map(kept):
    m, scale = pt.matrix("m"), pt.scalar("scale")
    y = scan(
        lambda row, s: (row.sum() + s, pt.sin(s) + 1), sequences=[m], outputs_info=[None, scale]
    )[0]
    first, *others = ([np.ones((length, 2)), 0.5] for length in [1, 2, 3, 6])
    program = compare_onnx_and_py([m, scale], y[kept], first, also=others)
    (loop,) = (node for node in program.model.graph.all_nodes() if node.op_type == "Scan")
    assert len(loop.outputs) == len(loop.inputs) - 1, "nothing is stacked"


def test_last_value_of_no_steps_is_an_error():
    m, scale = pt.matrix("m"), pt.scalar("scale")
    y = scan(
        lambda row, s: (row.sum() + s, pt.sin(s) + 1), sequences=[m], outputs_info=[None, scale]
    )[0]
    run = compile_onnx([m, scale], y[-1], verify=False)
    with pytest.raises(PyTensorONNXError):
        run(np.ones((0, 2)), 0.5)


# ONNX Scan or Loop.


def test_loop_over_sequences_is_an_onnx_scan(x, x0):
    other = pt.vector("other")
    y = scan(lambda e, f, y: e + f * pt.tanh(y), sequences=[x, other], outputs_info=[x0])
    values = [np.arange(5.0), np.arange(3.0), 1.0]
    assert loops(compare_onnx_and_py([x, other, x0], y, values)) == ["Scan"]


def test_sequences_as_long_as_the_steps_are_not_cut(x, x0):
    y = scan(lambda e, f, y: e + f * pt.tanh(y), sequences=[x, x + 1], outputs_info=[x0])
    program = compare_onnx_and_py([x, x0], y, [np.arange(3.0), 0.0])
    assert loops(program) == ["Scan"]
    assert "Slice" not in [node.op_type for node in program.model.graph.all_nodes()]


@pytest.mark.slow
def test_known_steps_without_sequences_are_an_onnx_scan():
    start = pt.vector("start", shape=(2,))
    y, total = scan(lambda y, total: (pt.tanh(y), total * y), [], [start, start], n_steps=5)
    program = compare_onnx_and_py([start], [y, total[-1]], [[1.0, np.nan]])
    assert loops(program) == ["Scan"]
    program = compare_onnx_and_py(
        [start], scan(lambda y: y * 0.5, [], [start], n_steps=0), [[1, 2]]
    )
    assert loops(program) == []
    unknown_row, n = pt.vector("row"), pt.iscalar("n")
    for inputs, steps, first in (([unknown_row], 5, unknown_row), ([start, n], n, start)):
        y = scan(pt.tanh, [], [first], n_steps=steps)
        values = [[1.0, 2.0], 3][: len(inputs)]
        assert loops(compare_onnx_and_py(inputs, y, values)) == ["Loop"]


def test_loop_that_may_stop_early_is_an_onnx_loop(x):
    y = scan(lambda e: (e * 2, until(e > 1)), sequences=[x])
    assert loops(compare_onnx_and_py([x], y, [np.arange(5.0)])) == ["Loop"]


def test_a_part_of_the_only_step_is_replaced():
    x = pt.tensor("x", shape=(1, 2, 1))
    _, steps = pytensor.scan(
        lambda row, y: (pt.tanh(y) + row, y - row),
        [x],
        [pt.zeros((x.shape[1], x.shape[2])), None],
        return_updates=False,
    )
    replaced = [steps[-1, 1 : x.shape[1] - 2 : -2].set(0), steps[-1, 2:3:-2].set(0)]
    first, second = compare_onnx_and_py([x], replaced, [np.ones((1, 2, 1))])(np.ones((1, 2, 1)))
    np.testing.assert_array_equal(first, [[[-1.0], [0.0]]])
    np.testing.assert_array_equal(second, [[[-1.0], [-1.0]]])
