"""Axes of unknown size do not broadcast at run time, also where the graph computes them."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from onnx import helper
from pytensor import ifelse
from pytensor.compile.mode import Mode

from pytensor_onnx import ONNXLinker, SessionOptions, compile_onnx, from_onnx
from tests.conftest import op_types

X, Y, N = pt.vector("x", dtype="float64"), pt.vector("y", dtype="float64"), pt.lscalar("n")
M = pt.matrix("m", dtype="float64")
RUNS = {
    "mode": lambda i, o: pytensor.function(i, o, mode="ONNX"),
    "runtime": lambda i, o: pytensor.function(
        i, o, mode=Mode(ONNXLinker(session_options=SessionOptions(kernels=False)), "fast_run")
    ),
    "program": lambda i, o: compile_onnx(i, o, verify=False),
}
FIVE, THREE = np.arange(1.0, 6.0), np.array([1.0, 2.0, 3.0])
GRAPHS = {
    "slice": ([X, Y, N], X[:N] * Y, (FIVE, THREE), (1, 3)),
    "slice of one": ([X, Y], X[:1] + Y, (FIVE, THREE), ()),
    "mask": ([X, Y, N], X[X > N] + Y, (FIVE, THREE), (4, 2)),
    "switch": ([X, Y, N], pt.switch(Y > 0, X[:N], Y), (FIVE, THREE), (1, 3)),
    "zeros": ([Y, N], pt.zeros(N) + Y, (THREE,), (1, 3)),
    "ones": ([Y, N], pt.exp(pt.ones(N) * Y), (THREE,), (1, 3)),
    "range": ([Y, N], pt.arange(N) * Y, (THREE,), (1, 3)),
    "number of rows": ([M, N], (M[:N] * M).sum(), (np.ones((3, 2)),), (1, 3)),
    "known size": ([X, N], X[:N] * pt.as_tensor(THREE), (FIVE,), (1, 3)),
    "two slices": ([X, Y, N], X[:N] * Y[: 2 * N + 1], (FIVE, THREE), (1, None)),
    "branch": ([X, Y, N], ifelse(N > 0, X[:N], Y) * Y, (FIVE, THREE), (1, 3)),
    "batches": ([M, N], M[:N, None, :] @ M[:, :, None], (np.ones((3, 2)),), (1, 3)),
}


@pytest.mark.few(12)
@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("name", GRAPHS)
def test_a_computed_axis_of_one_element_does_not_broadcast(name, run):
    inputs, output, arrays, sizes = GRAPHS[name]
    f = RUNS[run](inputs, output)
    with pytest.raises(ValueError, match="Runtime broadcasting not allowed"):
        f(*arrays, *sizes[:1])
    if sizes[1:] and sizes[1] is not None:
        reference = pytensor.function(inputs, output, mode=Mode("py", None))
        expected = reference(*arrays, sizes[1])
        np.testing.assert_allclose(f(*arrays, sizes[1]), expected, rtol=1e-14)


def test_equal_sizes_have_no_check():
    outputs = [X[1:] - X[:-1], X[:N] * X[:N] + 1, M[1:] * M[1:].sum(axis=0), X[X > 1] * X[X > 1]]
    assert "Reshape" not in op_types(compile_onnx([X, M, N], outputs, verify=False))


def test_a_pair_of_sizes_is_checked_once():
    part = X[:N]
    program = compile_onnx([X, Y, N], [part * Y + Y * part, pt.exp(part) - Y], verify=False)
    assert op_types(program).count("Reshape") == 1


@pytest.mark.parametrize("sizes", [(2, 0), (0, 2), (0, 0)])
def test_empty_arrays_pass_a_check(sizes):
    f = pytensor.function([M, N], M[:N] * M, mode="ONNX")
    assert f(np.ones(sizes), sizes[0]).shape == sizes


def test_computed_axes_of_imported_models_broadcast_as_in_onnx():
    nodes = [
        helper.make_node("Compress", ["x", "keep"], ["part"], axis=0),
        helper.make_node("Add", ["part", "y"], ["sum"]),
    ]
    values = [("x", 11), ("keep", 9), ("y", 11), ("sum", 11)]
    x, keep, y, total = (helper.make_tensor_value_info(k, t, [None]) for k, t in values)
    graph = helper.make_graph(nodes, "graph", [x, keep, y], [total])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    imported = from_onnx(model)
    f = pytensor.function(imported.inputs, imported.outputs, mode="ONNX")
    (found,) = f(FIVE, np.array([False, True, False, False, False]), THREE)
    np.testing.assert_array_equal(found, [3, 4, 5])
