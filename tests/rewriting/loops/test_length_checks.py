"""A sequence that ends before its loop is refused, also where work moved out of the loop."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.conditional.op import ifelse
from pytensor.scan.utils import until

from pytensor_onnx import compile_onnx, export_onnx
from pytensor_onnx.ops.loops import FirstRows, StepCount
from tests.conftest import compare_onnx_and_py
from tests.dispatch.loops.loop_cases import scan

STEPS = {
    "recurrence": lambda e, f, y: y * 0.5 + e * f,
    "sum": lambda e, f, y: y + e * f,
    "condition": lambda e, f, y: (y + e * f, until(y > 99)),
}


@pytest.mark.each_value
@pytest.mark.parametrize("n_steps", [4, None], ids=["known", "given"])
@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_one_element_does_not_broadcast_with_the_others(step, backwards, n_steps):
    x, z, n = pt.vector("x"), pt.vector("z"), pt.iscalar("n")
    y = scan(
        step,
        sequences=[x, z],
        outputs_info=[pt.zeros(())],
        n_steps=n_steps or n,
        go_backwards=backwards,
        name="walk",
    )
    run = compile_onnx([x, z, n], y, verify=False)
    assert run(np.ones(4), np.ones(4), 4).shape == (4,)
    with pytest.raises(ValueError, match=r"sequence 1 \(z.*\) of walk ends before its steps do"):
        run(np.ones(4), np.ones(1), 4)


def test_map_without_a_loop():
    x, n = pt.vector("x"), pt.iscalar("n")
    run = compile_onnx([x, n], scan(lambda e: e * 2, sequences=[x], n_steps=n), verify=False)
    np.testing.assert_array_equal(run(np.arange(4.0), 3), [0, 2, 4])
    with pytest.raises(ValueError, match=r"sequence 0 \(x\) of scan_fn ends before its steps do"):
        run(np.arange(4.0), 5)


@pytest.mark.parametrize("step", [lambda e: e * 2, lambda e, y: y + e, lambda e, y: y * 0.5 + e])
@pytest.mark.parametrize("n_steps", [-1, -2])
def test_negative_number_of_steps_is_refused_without_a_loop_too(step, n_steps):
    x, n = pt.vector("x"), pt.iscalar("n")
    initial = [pt.zeros(())] if step.__code__.co_argcount == 2 else None
    run = compile_onnx([x, n], scan(step, [x], initial, n_steps=n, name="walk"), verify=False)
    with pytest.raises(IndexError, match="walk was asked to run a negative number of steps"):
        run(np.ones(3), n_steps)


INNER = STEPS | {"map": lambda e, f: e * f}


@pytest.mark.few(5)
@pytest.mark.parametrize("is_recurrent", [False, True])
@pytest.mark.parametrize("step", INNER.values(), ids=INNER)
def test_loops_within_loops(step, is_recurrent):
    m, z, n = pt.matrix("m"), pt.vector("z"), pt.iscalar("n")

    def outer(row, total, z, n):
        initial = None if step is INNER["map"] else [pt.zeros(())]
        inner = scan(step, [row, z], initial, n_steps=n, name="inner")
        return inner.sum() + total * 0.5

    initial = pt.zeros(())
    if is_recurrent:
        y = scan(outer, [m], [initial], [z, n])
    else:
        y = scan(lambda row, z, n: outer(row, initial, z, n), [m], None, [z, n])
    program = compare_onnx_and_py([m, z, n], y, [np.ones((2, 4)), np.ones(4), 3])
    with pytest.raises(ValueError, match="sequence 1 of inner ends before its steps do"):
        program(np.ones((2, 4)), np.ones(1), 4)
    with pytest.raises(IndexError, match="inner was asked to run a negative number of steps"):
        program(np.ones((2, 4)), np.ones(4), -2)


@pytest.mark.slow
def test_a_step_that_an_inner_loop_does_not_make_is_not_read():
    m, n = pt.matrix("m"), pt.iscalar("n")
    y = scan(
        lambda row, n: scan(lambda e, y: y * 0.5 + e, [row], [row[0]], n_steps=n, name="inner")[1],
        [m],
        None,
        [n],
    )
    program = compare_onnx_and_py([m, n], y, [np.ones((2, 4)), 2])
    with pytest.raises(IndexError, match="a step of inner is read that it does not make"):
        program(np.ones((2, 4)), 1)


def test_other_uses_of_the_number_of_steps_are_not_checked():
    x, n = pt.vector("x"), pt.iscalar("n")
    doubled = scan(lambda e: e * 2, [x], n_steps=n)
    run = compile_onnx([x, n], ifelse(n > 0, doubled, x[n:]), verify=False)
    np.testing.assert_array_equal(run(np.arange(4.0), 2), [0, 2])
    np.testing.assert_array_equal(run(np.arange(4.0), -1), [3])


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_gradient_of_a_loop_that_ends_too_late_names_the_loop(step):
    x, z, n = pt.vector("x"), pt.vector("z"), pt.iscalar("n")
    y = scan(step, [x, z], [pt.zeros(())], n_steps=n, name="walk")
    run = compile_onnx([x, z, n], pt.grad((y**2).sum(), [x, z]), verify=False)
    with pytest.raises(ValueError, match=r"sequence 1 \(z\) of walk ends before its steps do"):
        run(np.ones(4), np.ones(1), 4)


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_each_sequence_is_checked_once(step):
    x, z, n = pt.vector("x"), pt.vector("z"), pt.iscalar("n")
    y = scan(step, [x, z], [pt.zeros(())], n_steps=n, name="walk")
    outputs = [y] if step is STEPS["condition"] else [y, *pt.grad((y**2).sum(), [x, z])]
    nodes = list(export_onnx([x, z, n], outputs).model.graph.all_nodes())
    cuts = [node.name for node in nodes if node.op_type == "Reshape" and "sequence" in node.name]
    assert len(cuts) == 2
    assert len([node for node in nodes if "negative_number_of_steps" in node.name]) == 1


@pytest.mark.parametrize(("n_steps", "shape"), [(None, (None,)), (3, (4,))])
def test_nothing_is_checked_that_is_known(n_steps, shape):
    x, z = pt.vector("x", shape=shape), pt.vector("z", shape=shape)
    y = scan(lambda e, f, y: y * 0.5 + e * f, [x, z], [pt.zeros(())], n_steps=n_steps)
    f = pytensor.function([x, z], y, mode="ONNX")
    assert not any(
        isinstance(node.op, (FirstRows, StepCount)) for node in f.maker.fgraph.toposort()
    )
