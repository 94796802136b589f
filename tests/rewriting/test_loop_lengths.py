"""A sequence that ends before its loop is refused, also where work moved out of the loop."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.raise_op import CheckAndRaise
from pytensor.scan.utils import until

from pytensor_onnx import compile_onnx
from tests.dispatch.loops import scan

STEPS = {
    "recurrence": lambda e, f, y: y * 0.5 + e * f,
    "sum": lambda e, f, y: y + e * f,
    "condition": lambda e, f, y: (y + e * f, until(y > 99)),
}


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


@pytest.mark.parametrize(("n_steps", "shape"), [(None, (None,)), (3, (4,))])
def test_nothing_is_checked_that_is_known(n_steps, shape):
    x, z = pt.vector("x", shape=shape), pt.vector("z", shape=shape)
    y = scan(lambda e, f, y: y * 0.5 + e * f, [x, z], [pt.zeros(())], n_steps=n_steps)
    f = pytensor.function([x, z], y, mode="ONNX")
    assert not any(isinstance(node.op, CheckAndRaise) for node in f.maker.fgraph.toposort())
