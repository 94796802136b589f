"""An index out of range names the loop also where its steps became one index."""

import numpy as np
import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph

from tests.conftest import compare_onnx_and_py
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
