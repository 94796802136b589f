"""Steps read from a loop are the computed ones, for any number of steps."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import strategies as st
from pytensor.compile.mode import Mode
from pytensor.scan.op import Scan
from pytensor.scan.utils import until

from tests.conftest import compare_onnx_and_py, op_types
from tests.properties import holds_for

READS = [slice(-2, None), slice(1, None), slice(1, 2), slice(None, None, -1), 0, 1]
LOOPS = {
    "state": lambda x, limit: pytensor.scan(
        lambda e, y: (0.5 * y + e, until(e >= limit)), [x], [pt.zeros(())], return_updates=False
    ),
    "taps": lambda x, limit: pytensor.scan(
        lambda e, a, b: (0.5 * a + b + e, until(e >= limit)),
        [x],
        [{"initial": pt.ones(2), "taps": [-2, -1]}],
        return_updates=False,
    ),
    "map": lambda x, limit: pytensor.scan(
        lambda e: (0.5 * e, until(e >= limit)), [x], return_updates=False
    ),
}


@pytest.mark.parametrize("n_steps", [1, 2, 3])
def test_the_last_two_of_few_rows(n_steps):
    x = pt.tensor("x", shape=(n_steps,))
    states = pytensor.scan(lambda e, y: 0.5 * y + e, [x], [pt.zeros(())], return_updates=False)
    rows = pytensor.scan(lambda e: pt.stack([pt.tanh(e), e]), [states], return_updates=False)
    compare_onnx_and_py(
        [x], [rows[-2:], rows[-2:, 1], rows[-2:][-1], states[-2:]], [np.arange(n_steps) + 1.0]
    )


@pytest.mark.each_value
@pytest.mark.parametrize("length", [3, None])
@pytest.mark.parametrize("make", LOOPS.values(), ids=LOOPS)
def test_steps_are_counted_from_the_first_where_a_condition_ends_the_loop(make, length):
    x, limit = pt.vector("x", shape=(length,)), pt.scalar("limit")
    steps = make(x, limit)
    # PyTensor's own rewrites count them from the last of all steps, so that they are no reference.
    reference = pytensor.function([x, limit], steps, mode=Mode("py", None))
    function = pytensor.function([x, limit], [steps[index] for index in READS], mode="ONNX")
    for last in (2.0, 3.0, 4.0):
        expected = reference([1.0, 2.0, 3.0], last)
        for found, index in zip(function([1.0, 2.0, 3.0], last), READS, strict=True):
            np.testing.assert_allclose(found, expected[index], rtol=1e-14, strict=True)


@pytest.mark.parametrize("index", [0, 1, slice(-2, None)])
@pytest.mark.parametrize("make", LOOPS.values(), ids=LOOPS)
def test_a_single_step_of_a_loop_with_a_condition_is_read(make, index):
    x, limit = pt.vector("x", shape=(3,)), pt.scalar("limit")
    steps = make(x, limit)
    expected = pytensor.function([x, limit], steps, mode=Mode("py", None))([1.0, 2.0, 3.0], 1.0)
    function = pytensor.function([x, limit], steps[index], mode="ONNX")
    if index == 1:
        with pytest.raises(IndexError):
            expected[index]
        with pytest.raises(Exception, match=r"out of data bounds|out of range"):
            function([1.0, 2.0, 3.0], 1.0)
    else:
        np.testing.assert_allclose(function([1.0, 2.0, 3.0], 1.0), expected[index], rtol=1e-14)


@pytest.mark.parametrize("kind", ["state", "map"])
def test_the_last_step_alone_is_kept_where_a_condition_ends_the_loop(kind):
    x, limit = pt.vector("x", shape=(3,)), pt.scalar("limit")
    last = LOOPS[kind](x, limit)[-1]
    program = compare_onnx_and_py([x, limit], last, [np.array([1.0, 2.0, 3.0]), 2.0])
    assert {"Loop", "Concat"} & set(op_types(program)) == {"Loop"}


@pytest.mark.slow
@pytest.mark.each_value
@pytest.mark.parametrize("length", [4, None])
@pytest.mark.parametrize("index", [slice(-7), slice(-7, 2), slice(-1)])
def test_slices_may_end_before_the_first_step(index, length):
    x = pt.vector("x", shape=(length,))
    states = pytensor.scan(lambda e, y: 0.5 * y + e, [x], [pt.zeros(())], return_updates=False)
    rows = pytensor.scan(lambda e: pt.tanh(e) + e, [states], return_updates=False)
    reference = pytensor.function([x], [states, rows], mode=Mode("py", None))
    reads = [[y[index]] for y in (states, rows)]
    reads += [[*read, y[:3]] for read, y in zip(reads, (states, rows), strict=True)]
    for wanted, which in zip(reads, (0, 1, 0, 1), strict=True):
        function = pytensor.function([x], wanted, mode="ONNX")
        for count in (4,) if length else (0, 1, 4):
            steps = reference(np.arange(count) + 1.0)[which]
            found = function(np.arange(count) + 1.0)
            expected = (steps[index], steps[:3])[: len(found)]
            for a, b in zip(found, expected, strict=True):
                # PyTensor's own rewrites make too few steps, so that they are no reference.
                np.testing.assert_allclose(a, b, rtol=1e-14, strict=True)


def test_no_more_steps_are_made_than_are_read():
    x = pt.vector("x", shape=(4,))
    steps = pytensor.scan(lambda e, y: pt.tanh(y + e), [x], [pt.zeros(())], return_updates=False)
    f = pytensor.function([x], [steps[:2], steps[:-3]], mode="ONNX")
    (loop,) = (node for node in f.maker.fgraph.apply_nodes if isinstance(node.op, Scan))
    assert loop.inputs[0].data == 2


ENDLESS = {
    "state": lambda x: [
        pytensor.scan(lambda e, y: e + y, [x], [pt.zeros(())], return_updates=False)
    ],
    "map": lambda x: [pytensor.scan(lambda e: pt.stack([e, -e]), [x], return_updates=False)],
    "all kinds": lambda x: pytensor.scan(
        lambda e, y, a, b: (e + y, a - b + e, y * b),
        [x],
        [pt.ones(2), {"initial": pt.ones((2, 2)), "taps": [-2, -1]}, None],
        return_updates=False,
    ),
}
EVERY_LOOP = ENDLESS | {
    f"{k} with a condition": lambda x, f=f: [f(x, 2.0)] for k, f in LOOPS.items()
}
bounds = st.none() | st.integers(-5, 5)
slices = st.builds(slice, bounds, bounds, st.sampled_from([None, 1, 2, -1])) | bounds.map(
    lambda bound: slice(bound, bound)
)


@pytest.mark.each_value
@pytest.mark.parametrize("length", [3, None])
@pytest.mark.parametrize("kind", EVERY_LOOP)
@pytest.mark.few(2)
def test_a_slice_without_steps_is_empty(kind, length):
    x = pt.vector("x", shape=(length,))
    for index in (
        slice(1, 1),
        slice(2, 2),
        slice(3, 3),
        slice(-1, -1),
        slice(3, 1),
        slice(1, 2, -1),
    ):
        empty = [rows[index] for rows in EVERY_LOOP[kind](x)]
        for found in pytensor.function([x], empty, mode="ONNX")([1.0, 2.0, 3.0]):
            assert len(found) == 0


@holds_for(
    kind=st.sampled_from(list(EVERY_LOOP)),
    length=st.integers(1, 4),
    is_static=st.booleans(),
    are_inputs=st.booleans(),
    reads=st.lists(st.tuples(st.integers(0, 2), slices), min_size=1, max_size=3),
)
def test_any_slices_of_the_steps(kind, length, is_static, are_inputs, reads):
    x = pt.vector("x", shape=(length if is_static else None,))
    steps = EVERY_LOOP[kind](x)
    value = np.arange(length) + 0.5
    expected = pytensor.function([x], steps, mode=Mode("py", None))(value)
    inputs, given, results = [x], [value], []
    for i, index in reads:
        start, stop = index.start, index.stop
        if are_inputs and start is not None:
            start = pt.lscalar()
            inputs, given = [*inputs, start], [*given, index.start]
        results.append(steps[i % len(steps)][start : stop : index.step])
    found = pytensor.function(inputs, results, mode="ONNX")(*given)
    for rows, (i, index) in zip(found, reads, strict=True):
        np.testing.assert_allclose(rows, expected[i % len(steps)][index], rtol=1e-12, strict=True)


@pytest.mark.few(3)
@pytest.mark.parametrize("output", [0, 1])
@pytest.mark.parametrize("index", [slice(-2, 1), slice(-2, 2), slice(-3, 3), slice(3, -2, -1)])
def test_slices_with_one_bound_from_each_end_are_of_all_steps(index, output):
    x = pt.matrix("x")
    steps = pytensor.scan(
        lambda row, y: (0.5 * y + row, pt.tanh(y) - row),
        [x],
        [pt.zeros(x.shape[1]), None],
        return_updates=False,
    )[output]
    read, value = pytensor.function([x], steps[index], mode="ONNX"), np.arange(8.0).reshape(4, 2)
    rows = pytensor.function([x], steps, mode="ONNX")(value)
    np.testing.assert_array_equal(read(value), rows[index])
