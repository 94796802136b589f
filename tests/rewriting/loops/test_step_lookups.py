"""An index out of range names the loop also where its steps became one index."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.mode import Mode
from pytensor.raise_op import CheckAndRaise

from pytensor_onnx import PyTensorONNXError, compile_onnx
from tests.conftest import PY, compare_onnx_and_py
from tests.dispatch.loops.loop_cases import loops, scan

ARRAY = np.arange(12.0).reshape(4, 3)
STEPS = {
    "element": lambda i, m: m[i, 0] * 2,
    "row": lambda i, m: m[i].sum(),
    "column": lambda i, m: m[:, i].sum(),
    "several": lambda i, m: m[pt.stack([i, i + 1])].sum(),
    "update": lambda i, m: pt.set_subtensor(m[i], 1.0),
    "increment": lambda i, m: pt.inc_subtensor(m[0, i], m[i, 0]),
}


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_index_out_of_range_names_the_loop_and_the_array(step):
    m, where = pt.matrix("m"), pt.lvector("where")
    y = scan(step, [where], None, [m], name="walk")
    program = compare_onnx_and_py([m, where], y, [ARRAY, np.array([0, 1, -2])])
    assert loops(program) == []
    for indices in ([0, 9], [-9]):
        with pytest.raises(
            IndexError, match=r"^index -?9 (into \w+ )?is out of range(.|\n)*loop: +walk\n"
        ):
            program(ARRAY, indices)


def test_indices_of_a_sum():
    m, where = pt.matrix("m"), pt.lvector("where")
    y = scan(lambda i, y, m: y + m[i], [where], [pt.zeros(3)], [m], name="walk")
    program = compare_onnx_and_py([m, where], [y, y[-1]], [ARRAY, np.array([0, 1, -2])])
    assert loops(program) == []
    with pytest.raises(IndexError, match=r"^index 4 into m is out of range(.|\n)*loop: +walk\n"):
        program(ARRAY, [0, 4])


COUNTERS = {
    "number": (lambda x, n: pt.arange(n), lambda i, x, z: z[i]),
    "known number": (lambda x, n: pt.arange(3), lambda i, x, z: z[i]),
    "size of another array": (lambda x, n: pt.arange(x.shape[0]), lambda i, x, z: x[i] * z[i]),
    "next one": (lambda x, n: pt.arange(x.shape[0]), lambda i, x, z: z[i + 1] - z[i]),
}


@pytest.mark.parametrize(("counter", "step"), COUNTERS.values(), ids=COUNTERS)
def test_counting_past_the_end_of_an_array_is_refused(counter, step):
    x, z, n = pt.vector("x"), pt.vector("z"), pt.iscalar("n")
    y = scan(step, [counter(x, n)], None, [x, z], name="walk")
    program = compare_onnx_and_py([x, z, n], y, [np.arange(3.0), np.arange(5.0), 3])
    assert loops(program) == []
    for length in (1, 2):
        with pytest.raises(
            IndexError, match=r"^index \d into z is out of range(.|\n)*loop: +walk\n"
        ):
            program(np.arange(3.0), np.arange(float(length)), 3)


@pytest.mark.parametrize("options", [{}, {"inline_functions": True}])
def test_index_in_a_function_names_the_loop(options):
    z, where = pt.vector("z"), pt.lvector("where")
    y = scan(lambda i, z: z[i] * 2, [where], None, [z], name="walk")
    function = OpFromGraph([z, where], [y], name="taken")
    a, b = pt.vector("a"), pt.lvector("b")
    program = compare_onnx_and_py([a, b], function(a, b), [np.ones(3), [0, 2]], **options)
    with pytest.raises(
        IndexError, match=r"^index 3 (into \w+ )?is out of range(.|\n)*loop: +walk\n"
    ):
        program(np.ones(3), [3])


def test_counting_the_elements_of_an_array_takes_no_index():
    x = pt.vector("x")
    y = scan(lambda i, x: x[i] * 2, [pt.arange(x.shape[0])], None, [x])
    program = compare_onnx_and_py([x], y, [np.arange(3.0)])
    assert [node.op_type for node in program.model.graph] == ["Mul"]


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
