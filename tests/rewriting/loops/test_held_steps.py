"""Loops whose last steps alone are read hold no others, whatever their first state is made from."""

import subprocess
import sys

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.scan.utils import until

from tests.conftest import compare_onnx_and_py
from tests.dispatch.loops.loop_cases import loops, scan

N_STEPS = 37
STARTS = {
    "zeros_like": pt.zeros_like,
    "ones_like": pt.ones_like,
    "row": lambda x: x,
    "alloc": lambda x: pt.alloc(np.float64(0.5), x.shape[0]),
    "full": lambda x: pt.full(x.shape, x[0]),
    "float32": lambda x: pt.zeros_like(x).astype("float32").astype("float64"),
}


def last(steps, initial, *, inputs, taps=None, **options):
    """Return the outputs of a loop over one state, or one for each initial value."""
    info = [{"initial": start, "taps": taps} if taps else start for start in initial]
    return scan(steps, outputs_info=info, non_sequences=inputs, n_steps=N_STEPS, **options)


STEPS = {
    "sum": lambda y, x: y + x,
    "difference": lambda y, x: y - x - 1,
    "product": lambda y, x: y * x,
    "maximum": pt.maximum,
    "other": lambda y, x: pt.tanh(y) + x,
    "condition": lambda y, x: (pt.tanh(y) + x, until(y[0] > 100)),
}


def axes_of_steps(program):
    """Return the values of a model that have an axis of all steps."""
    graphs = [program.model.graph, *program.model.graph.subgraphs()]
    values = [v for graph in graphs for node in graph for v in node.outputs]
    sizes = {N_STEPS - 1, N_STEPS, N_STEPS + 1, N_STEPS + 2}
    return [v for v in values if v.shape is not None and sizes & set(v.shape.dims)]


@pytest.mark.each_value
@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("step", STEPS)
def test_the_last_state_alone_is_held(step, start):
    x = pt.vector("x")
    y = last(STEPS[step], [STARTS[start](x)], inputs=[x])[-1]
    program = compare_onnx_and_py([x], y, [np.array([0.9, 1.1])], rtol=1e-12)
    assert axes_of_steps(program) == []


OTHERS = {
    "two states": lambda x: pt.add(
        *(
            y[-1]
            for y in last(
                lambda a, b, x: (pt.tanh(a) + x, b + a), [pt.zeros_like(x)] * 2, inputs=[x]
            )
        )
    ),
    "sum of sums": lambda x: last(
        lambda a, b, x: (a + x, b + a**2), [pt.zeros_like(x)] * 2, inputs=[x]
    )[1][-1],
    "two taps": lambda x: last(
        lambda a, b, x: pt.tanh(a) + b * x, [pt.zeros((2, x.shape[0]))], inputs=[x], taps=[-2, -1]
    )[-1],
    "last three": lambda x: last(lambda y, x: pt.tanh(y) + x, [pt.zeros_like(x)], inputs=[x])[-3:],
}


@pytest.mark.parametrize("name", OTHERS)
def test_states_that_are_not_read_are_not_held(name):
    x = pt.vector("x")
    program = compare_onnx_and_py([x], OTHERS[name](x), [np.array([0.3, 1.1])], rtol=1e-12)
    assert axes_of_steps(program) == []


ROWS = {
    "vector": lambda y, x, a: pt.exp(y),
    "sizes of a shared array": lambda y, x, a: pt.outer(a, y) * x,
    "product": lambda y, x, a: pt.outer(y, a) @ pt.outer(a, y),
    "a number as size": lambda y, x, a: pt.full(a[0].astype("int64"), y[0]),
    "part": lambda y, x, a: y[1:] - y[:-1],
    "joined": lambda y, x, a: pt.concatenate([y, a]),
    "size of a state alone": lambda y, x, a: pt.zeros_like(y),
    "complex": lambda y, x, a: pt.exp(1j * y),
}


@pytest.mark.each_value
@pytest.mark.parametrize("kept", [-1, slice(-3, None)], ids=["last", "last three"])
@pytest.mark.parametrize("row", ROWS)
def test_last_values_without_a_first_one_are_held_alone(row, kept):
    x, a = pt.vectors("x", "a")

    def step(y, x, a):
        return pt.tanh(y) + x, ROWS[row](y, x, a)

    rows = last(step, [pt.zeros_like(x), None], inputs=[x, a])[1][kept]
    inputs = [np.array([0.9, 1.1]), np.array([3.0, 2.0])]
    program = compare_onnx_and_py([x, a], rows, inputs, rtol=1e-12)
    assert axes_of_steps(program) == []


@pytest.mark.parametrize("limit", [3, 100])
def test_a_last_value_without_a_first_one_of_a_loop_with_a_condition(limit):
    x = pt.vector("x")

    def step(i, y, x):
        return (pt.tanh(y) + x, pt.exp(y) + i), until(i > limit)

    rows = scan(step, [pt.arange(N_STEPS)], [pt.zeros_like(x), None], [x])[1]
    program = compare_onnx_and_py([x], rows[-1], [np.array([0.9, 1.1])], rtol=1e-12)
    assert axes_of_steps(program) == []


@pytest.mark.slow
def test_last_values_of_any_number_of_steps():
    x, n = pt.vector("x"), pt.lscalar("n")
    values = [pt.zeros_like(x), None]
    rows = scan(lambda y, x: (pt.tanh(y) + x, pt.exp(y)), [], values, [x], n_steps=n)[1]
    first, *others = ([np.ones(3), np.array(steps)] for steps in (1, 2, 5))
    compare_onnx_and_py([x, n], [rows[-1], rows[-2:]], first, also=others)
    f = pytensor.function([x, n], rows[-1], mode="ONNX")
    with pytest.raises(IndexError):
        f(np.ones(3), 0)
    assert pytensor.function([x, n], rows[-2:], mode="ONNX")(np.ones(3), 0).shape == (0, 3)


def test_rows_whose_size_the_steps_alone_know_are_held_for_all_steps():
    x = pt.vector("x")
    values = [pt.zeros_like(x), None]
    rows = last(lambda y, x: (pt.tanh(y) + x, pt.exp(y)[y > -1]), values, inputs=[x])[1][-1]
    compare_onnx_and_py([x], rows, [np.array([0.9, 1.1])], rtol=1e-12)


@pytest.mark.slow
def test_a_sum_of_any_number_of_steps_starts_with_its_first_state():
    x, n = pt.vector("x"), pt.lscalar("n")
    with_sequence = scan(lambda e, y, x: y + x + e, [pt.arange(n)], [pt.ones_like(x)], [x])
    without = scan(lambda y, x: y + x, [], [pt.ones_like(x)], [x], n_steps=n)
    for steps in (0, 1, 5):
        for value in ([1.0, np.inf], [-np.inf, np.nan], [2.0, -3.0]):
            whole = [pt.concatenate([pt.ones((1, 2)), y])[-1] for y in (with_sequence, without)]
            compare_onnx_and_py([x, n], whole, [np.array(value), np.array(steps)])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "float32", "int64"])
def test_shared_terms_are_added_in_the_dtype_of_the_state(dtype):
    x = pt.vector("x", dtype=dtype)
    y = last(lambda y, x: y + x, [pt.ones_like(x)], inputs=[x])[-1]
    compare_onnx_and_py([x], y, [np.array([3, 100], dtype)])


@pytest.mark.slow
def test_sums_of_large_rows_stay_loops_and_those_of_small_or_given_ones_do_not():
    e, m = pt.vector("e"), pt.matrix("m")
    values = {"e": np.linspace(0, 1, 4), "m": np.ones((4, 3)), "x": np.arange(3.0)}
    for x, stays in ((pt.vector("x"), ["Scan"]), (pt.vector("x", shape=(3,)), [])):
        squares = scan(
            lambda e, s, y, x: (s + e, y + (s - x) ** 2), [e], [pt.zeros(()), pt.zeros_like(x)], [x]
        )[1][-1]
        program = compare_onnx_and_py([e, x], squares, [values["e"], values["x"]], rtol=1e-12)
        assert loops(program) == stays
    rows = scan(lambda row, y, x: y + pt.exp(row - x), [m], [pt.zeros_like(x)], [x])[-1]
    program = compare_onnx_and_py([m, x], rows, [values["m"], values["x"]], rtol=1e-12)
    assert loops(program) == []


@pytest.mark.slow
def test_a_sum_of_steps_takes_the_memory_of_one():
    """300 steps of 4 MB would take 1.2 GB."""
    code = """
import resource
import numpy as np, pytensor, pytensor.tensor as pt, pytensor_onnx
x = pt.vector("x")
y = pytensor.scan(
    lambda y, x: pt.maximum(y, x), [], [pt.zeros_like(x)], [x], n_steps=300, return_updates=False
)[-1]
f = pytensor.function([x], y, mode="ONNX")
f(np.ones(5))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
f(np.ones(500_000))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(run.stdout) < 100_000  # kB
