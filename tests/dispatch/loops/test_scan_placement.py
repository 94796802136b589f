"""Loops work in functions, in branches and around both, and for every target."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph
from pytensor.conditional.op import ifelse
from pytensor.scan.utils import until

from tests.conftest import compare_onnx_and_py
from tests.dispatch.loops.loop_cases import scan

RTOL = 1e-9
OPTIONS = [
    pytest.param({}, id="functions"),
    pytest.param({"inline_functions": True}, id="inlined"),
    pytest.param({"target": "web", "precision": "float64"}, id="web"),
]


def values(*shape):
    return np.random.default_rng(1).normal(size=shape)


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS)
def test_recurrent_network_and_its_gradients(options):
    x, start, w = pt.matrix("x"), pt.vector("start"), pt.matrix("w")
    h = scan(
        lambda e, h, w: pt.sigmoid(e + h @ w) * pt.arctan(h),
        sequences=[x],
        outputs_info=[start],
        non_sequences=[w],
    )
    inputs = [x, start, w]
    outputs = [h, *pt.grad((h**2).sum(), inputs)]
    compare_onnx_and_py(
        inputs, outputs, [values(5, 3), values(3), values(3, 3)], rtol=RTOL, **options
    )


@pytest.mark.each_value
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("length", [0, 1, 2, 9])
def test_loop_in_a_function(options, length):
    x, s = pt.vector("x"), pt.scalar("s")
    smoothed = scan(lambda e, y: e * 0.5 + y * 0.9, sequences=[x], outputs_info=[s])
    function = OpFromGraph([x, s], [smoothed], name="smoothed")
    a, b = pt.vector("a"), pt.scalar("b")
    first = function(a, b)
    outputs = [first, function(a * 2, b + 1)]
    compare_onnx_and_py([a, b], outputs, [np.arange(float(length)), 1.0], **options)


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS)
def test_gradient_of_a_loop_in_a_function(options):
    x, w = pt.matrix("x"), pt.matrix("w")
    y = scan(
        lambda e, h, w: pt.tanh(e + h @ w),
        sequences=[x],
        outputs_info=[pt.zeros(x.shape[1])],
        non_sequences=[w],
    )
    function = OpFromGraph([x, w], [y], name="network")
    a, b = pt.matrix("a"), pt.matrix("b")
    h = function(a, b)
    outputs = [h, *pt.grad((h**2).sum(), [a, b])]
    compare_onnx_and_py([a, b], outputs, [values(4, 3), values(3, 3)], rtol=RTOL, **options)


def test_while_loop_in_a_function():
    initial, n = pt.vector("initial"), pt.iscalar("n")
    y = scan(
        lambda a, b: (a + b, until(a + b > 20)),
        outputs_info=[{"initial": initial, "taps": [-2, -1]}],
        n_steps=n,
    )
    function = OpFromGraph([initial, n], [y, y[-1]], name="sums")
    a, k = pt.vector("a"), pt.iscalar("k")
    first, *others = ([np.ones(2), limit] for limit in [1, 2, 50])
    compare_onnx_and_py([a, k], function(a, k), first, also=others)


@pytest.mark.parametrize("options", OPTIONS)
def test_function_in_a_loop(options):
    a, b = pt.scalars("a", "b")
    function = OpFromGraph([a, b], [a * pt.exp(b)], name="scaled")
    x, start = pt.vector("x"), pt.scalar("start")
    y = scan(lambda e, y: function(e, y) * 0.1, sequences=[x], outputs_info=[start])
    outputs = [y, pt.grad(y.sum(), x)]
    compare_onnx_and_py([x, start], outputs, [np.arange(4.0), 1.0], rtol=RTOL, **options)


@pytest.mark.parametrize("c_value", [1.0, -1.0])
def test_loops_in_branches(c_value):
    x, c = pt.vector("x"), pt.scalar("c")
    sums = scan(lambda e, y: e + y * 0.5, sequences=[x], outputs_info=[pt.zeros(())])
    squares = scan(lambda e: (e * e, until(e > 1)), sequences=[x])
    y = ifelse(c > 0, sums, squares)
    first, *others = ([np.arange(float(length)), c_value] for length in [0, 1, 3])
    compare_onnx_and_py([x, c], y, first, also=others)


@pytest.mark.slow
def test_branches_in_a_loop_in_a_branch():
    x, c = pt.vector("x"), pt.scalar("c")
    y = scan(
        lambda e, y, c: ifelse(e > c, e + y, ifelse(y > 2, y - 1, y * 2)),
        sequences=[x],
        outputs_info=[pt.ones(())],
        non_sequences=[c],
    )
    z = ifelse(c > 0, y, x * 2)
    outputs = [z, pt.grad(z.sum(), x)]
    first, *others = ([np.arange(5.0), c_value] for c_value in [1.0, -1.0])
    compare_onnx_and_py([x, c], outputs, first, also=others, rtol=RTOL)


def test_shared_sequence_whose_rows_have_one_column():
    x = pytensor.shared(values(3, 2, 1), shape=(None, None, None))
    y = scan(
        lambda e, h: pt.tanh(e + h),
        sequences=[x],
        outputs_info=[pt.zeros((x.shape[1], x.shape[2]))],
    )
    compare_onnx_and_py([], y, [])
