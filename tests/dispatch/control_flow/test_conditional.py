"""Branches are chosen at run time, and the one that is not taken is not computed."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph
from pytensor.conditional.op import ifelse
from pytensor.raise_op import Assert

from pytensor_onnx import UnsupportedOpError, compile_onnx
from tests.conftest import compare_onnx_and_py, op_types


@pytest.fixture
def x():
    return pt.vector("x")


@pytest.fixture
def c():
    return pt.scalar("c")


def test_one_branch_is_returned(x, c):
    first, *others = ([np.arange(3.0), value] for value in [1.0, 0.0, -2.0])
    compare_onnx_and_py([x, c], ifelse(c > 0, x * 2, pt.exp(x)), first, also=others)


def test_several_outputs_of_different_sizes(x, c):
    outputs = ifelse(c > 0, [x * 2, x[:1]], [pt.exp(x), x])
    first, *others = ([np.arange(3.0), value] for value in [1.0, 0.0])
    compare_onnx_and_py([x, c], outputs, first, also=others)


def test_nested(x, c):
    inner = ifelse(c > -3, x + 1, x - 1)
    first, *others = ([np.arange(3.0), value] for value in [1.0, -1.0, -5.0])
    compare_onnx_and_py([x, c], ifelse(c > 0, x * 2, inner), first, also=others)


def test_gradients(x, c):
    y = ifelse(c > 0, (x**2).sum(), pt.exp(x).sum())
    first, *others = ([np.arange(3.0), value] for value in [1.0, 0.0])
    compare_onnx_and_py([x, c], pt.grad(y, x), first, also=others)


def test_an_unselected_branch_cannot_fail(x, c):
    failing = Assert("never")(x, pt.eq(x.sum(), -1))
    run = compile_onnx([x, c], ifelse(c > 0, x * 2, failing * 3), verify=False)
    np.testing.assert_array_equal(run(np.ones(2), 1.0), [2.0, 2.0])
    with pytest.raises(AssertionError, match="never"):
        run(np.ones(2), 0.0)


def test_work_of_a_branch_stands_inside_it(x, c):
    program = compare_onnx_and_py(
        [x, c], ifelse(c > 0, pt.exp(x), pt.log(x)), [np.arange(1.0, 3.0), 1.0]
    )
    assert op_types(program) == ["Greater", "If"]


def test_inputs_and_constants_as_branches(x, c):
    first, *others = ([np.arange(3.0), value] for value in [1.0, 0.0])
    compare_onnx_and_py([x, c], ifelse(c > 0, x, pt.zeros(3)), first, also=others)


def test_inside_a_loop(x):
    def step(e, total):
        return ifelse(e > 1, total + e, total * 2)

    y = pytensor.scan(
        step, sequences=[x], outputs_info=[pt.constant(1.0, dtype="float64")], return_updates=False
    )
    compare_onnx_and_py([x], y, [np.array([0.0, 2.0, 1.0, 3.0])])


def test_branches_of_other_static_shapes(c):
    first, *others = ([value] for value in [1.0, -1.0])
    compare_onnx_and_py([c], ifelse(c > 0, pt.zeros(3) * c, pt.ones(5) * c), first, also=others)


def test_shared_and_captured_values(x, c):
    w, both = pytensor.shared(np.arange(3.0), name="w"), pt.exp(x)
    outputs = [ifelse(c > 0, w * both, w + both.sum()), both]
    first, *others = ([np.ones(3), value] for value in [1.0, -1.0])
    compare_onnx_and_py([x, c], outputs, first, also=others)


def test_sizes_and_nothing(x, c):
    outputs = [ifelse(c > 0, x.shape[0], pt.constant(7, dtype="int64")), ifelse(c > 0, x[:0], x)]
    first, *others = ([np.ones(3), value] for value in [1.0, -1.0])
    compare_onnx_and_py([x, c], outputs, first, also=others)


@pytest.mark.parametrize(
    "options", [{}, {"inline_functions": True}, {"target": "web", "precision": "float64"}]
)
def test_inside_a_function(x, c, options):
    function = OpFromGraph([x, c], [ifelse(c > 0, x * 2, pt.exp(x))])
    a, b = pt.vector("a"), pt.scalar("b")
    first, *others = ([np.arange(3.0), value] for value in [1.0, -1.0])
    compare_onnx_and_py([a, b], function(a, b), first, also=others, **options)


IN_LOOPS = {
    "branch": lambda i, y, x: ifelse(pt.lt(i, x.shape[0]), y + x[i], y),
    "nested branches": lambda i, y, x: ifelse(
        pt.lt(i, x.shape[0]), ifelse(pt.ge(i, 1), y + x[i - 1 :][0], y + x[i]), -y
    ),
    "loop in a branch": lambda i, y, x: ifelse(
        pt.lt(i, x.shape[0]),
        pytensor.scan(lambda k, z, x: z + x[k] * z, [i[None]], [y + 1], [x], return_updates=False)[
            -1
        ],
        y,
    ),
    "check": lambda i, y, x: ifelse(
        pt.lt(i, x.shape[0]), y + Assert("never")(x, pt.lt(i, x.shape[0])).sum(), y * 2
    ),
    "other shapes": lambda i, y, x: y + ifelse(pt.lt(i, 2), pt.zeros(3) + i, pt.ones(5) * i).sum(),
}


@pytest.mark.each_value
@pytest.mark.parametrize("indices", [[], [0], [7, 2], [0, 1, 2, 3, 4] * 20])
@pytest.mark.parametrize("step", IN_LOOPS.values(), ids=IN_LOOPS)
def test_branch_that_a_step_does_not_take_cannot_fail(x, step, indices):
    where = pt.lvector("where")
    y = pytensor.scan(step, [where], [pt.ones(())], [x], return_updates=False)
    values = [np.array([0.5, -1.0, 0.25]), np.array(indices, "int64")]
    compare_onnx_and_py([x, where], y, values, rtol=1e-10)


def test_an_unselected_branch_cannot_fail_in_a_function(x, c):
    failing = Assert("never")(x, pt.gt(c, 0))
    function = OpFromGraph([x, c], [ifelse(c > 0, failing * 3, x)])
    for options in ({}, {"inline_functions": True}):
        run = compile_onnx([x, c], function(x, c), verify=False, **options)
        np.testing.assert_array_equal(run(np.ones(2), -1.0), [1.0, 1.0])
        np.testing.assert_array_equal(run(np.ones(2), 1.0), [3.0, 3.0])


@pytest.mark.each_value
@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("size", [1, 2])
def test_a_constant_condition_leaves_one_branch(x, size, lazy):
    """The size of a number is known to the exporter only, where it has axes of a computed size."""
    y, n = pt.scalar("y"), pt.lscalar("n")
    known = pt.reshape(y, (n, n), ndim=2).shape[1]
    taken = pt.exp(x) if lazy else x
    outputs = ifelse(pt.eq(known, size), [taken, x[:1]], [x[1:], x[:2]])
    program = compare_onnx_and_py([x, y, n], outputs, [np.arange(3.0), 2.0, 1])
    assert "If" not in op_types(program)


@pytest.mark.slow
def test_branches_that_are_nested_too_deep_for_a_file_are_refused(x, c):
    def nested(levels):
        y = x
        for i in range(levels):
            y = ifelse(c > i, y * 2, x + i)
        return y

    run = compile_onnx([x, c], nested(30))
    np.testing.assert_array_equal(run(np.arange(3.0), 30.0), 2.0**30 * np.arange(3.0))
    with pytest.raises(UnsupportedOpError, match="nested deeper than 30 levels"):
        compile_onnx([x, c], nested(31))
