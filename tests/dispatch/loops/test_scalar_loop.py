"""Loops of scalar functions run for every element as long as it needs."""

import numpy as np
import pytensor.scalar as ps
import pytensor.tensor as pt
import pytest
from pytensor.scalar.loop import ScalarLoop
from pytensor.tensor.elemwise import Elemwise

from pytensor_onnx import compile_onnx
from tests.conftest import compare_onnx_and_py
from tests.dispatch.loops.loop_cases import loops


def powers():
    """Return a loop that multiplies by a constant and counts."""
    x, count, factor = ps.float64("x"), ps.int64("count"), ps.float64("factor")
    return Elemwise(ScalarLoop(init=[x, count], update=[x * factor, count + 1], constant=[factor]))


def root():
    """Return a Newton iteration that stops where it no longer moves."""
    y, x = ps.float64("y"), ps.float64("x")
    new = (y + x / y) * 0.5
    return Elemwise(
        ScalarLoop(init=[y], update=[new], constant=[x], until=ps.lt(ps.abs(new - y), 1e-10))
    )


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3,), (2, 3)])
def test_for_loop(shape):
    x = pt.tensor("x", dtype="float64", shape=(None,) * len(shape))
    n = pt.lscalar("n")
    outputs = powers()(n, x, np.int64(0), 1.5)
    first, *others = ([np.ones(shape), n_steps] for n_steps in [0, 1, 5])
    compare_onnx_and_py([x, n], outputs, first, also=others)


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3)])
def test_while_loop(shape):
    x = pt.tensor("x", dtype="float64", shape=(None,) * len(shape))
    n = pt.lscalar("n")
    values = 10.0 ** np.arange(np.prod(shape, dtype=int)).reshape(shape)
    first, *others = ([values, n_steps] for n_steps in [0, 2, 50])
    compare_onnx_and_py([x, n], root()(n, np.float64(1.0), x), first, also=others)


def test_every_element_has_steps_of_its_own():
    x, n = pt.vector("x"), pt.lvector("n")
    outputs = powers()(n, x, np.int64(0), 1.5)
    compare_onnx_and_py([x, n], outputs, [np.ones(4), np.array([0, 3, 1, 7])])


def test_operands_broadcast():
    x, factor = pt.col("x"), pt.row("factor")
    outputs = powers()(np.int64(3), x, np.int64(0), factor)
    compare_onnx_and_py([x, factor], outputs, [np.ones((2, 1)), np.array([[1.0, 2.0, 3.0]])])


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64", "float32", "float64"])
def test_constants_may_have_another_dtype(dtype):
    x, c = ps.float64("x"), ps.float64("c")
    new = [x - c / 3, x + ps.exp(c) / (-c), x * abs(c) + ps.isnan(c), ps.maximum(x, c) ** c]
    if dtype == "bool":
        new = [x + ps.sigmoid(c), x * ps.isnan(c)]
    state, constant, n = (
        pt.vector("x", dtype="float64"),
        pt.vector("c", dtype=dtype),
        pt.lscalar("n"),
    )
    results = []
    for update in new:
        for until in (None, ps.gt(x, c * 5)):
            loop = ScalarLoop(init=[x], update=[update], constant=[c], until=until)
            results.append(Elemwise(loop)(n, state, constant, return_list=True)[0])
    values = [np.array([1.5, 2.0]), np.array([2, 1], dtype), 3]
    # NumPy's functions of narrow constants are narrow, whatever dtype the loop was made for.
    rtol = {"float32": 1e-6, "int64": 1e-12, "float64": 1e-12}.get(dtype, 1e-3)
    compare_onnx_and_py([state, constant, n], results, values, rtol=rtol)


def test_negative_number_of_steps_is_refused():
    x, n = pt.vector("x"), pt.lscalar("n")
    run = compile_onnx([x, n], powers()(n, x, np.int64(0), 1.5), verify=False)
    with pytest.raises(ValueError, match="termination condition"):
        run(np.ones(2), -1)


@pytest.mark.slow
def test_gradients_that_are_loops_of_series():
    inputs = a, b, c, x = pt.vectors("a", "b", "c", "x")
    gradients = pt.grad(pt.hyp2f1(a, b, c, x).sum(), [a, b, c])
    arrays = [[0.5, 2.0, 1.0], [1.5, 0.5, 3.0], [2.5, 1.0, 2.0], [0.1, 0.5, -0.4]]
    program = compare_onnx_and_py(inputs, gradients, [np.array(v) for v in arrays], rtol=1e-10)
    assert loops(program) == ["Loop"]


@pytest.mark.parametrize(
    ("written", "given", "count"),
    [
        ("float64", "float32", "int8"),
        ("float32", "float64", "int64"),
        ("float64", "float16", "int32"),
        ("float32", "float32", "int16"),
    ],
)
def test_operands_may_be_narrower_or_wider_than_the_loop(written, given, count):
    x, factor, k = (ps.get_scalar_type(d)() for d in (written, written, "int64"))
    update = [ps.exp(x * factor - x), k + ps.constant(np.int8(1))]
    n, state, rest, counts = (
        pt.lvector("n"),
        *(
            pt.tensor(name, dtype=dtype, shape=(None, None))
            for name, dtype in (("state", given), ("rest", given), ("counts", count))
        ),
    )
    values = [
        np.array([0, 1, 3]),
        np.linspace(-1, 1, 6).reshape(2, 3).astype(given),
        np.array([[0.3, 0.7, -0.2]], given),
        np.array([[1, 2, 3]] * 2, count),
    ]
    rest = pt.specify_shape(rest, (1, None))
    for until in (None, ps.gt(x, 1.2)):
        loop = ScalarLoop(init=[x, k], update=update, constant=[factor], until=until)
        results = Elemwise(loop)(n, state, counts, rest, return_list=True)
        compare_onnx_and_py([n, state, rest.owner.inputs[0], counts], results, values, rtol=1e-6)
