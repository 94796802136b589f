"""Batches of what works on any number of axes take no loop, with the same values."""

import numpy as np
import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph
from pytensor.graph.replace import vectorize_graph
from pytensor.tensor.extra_ops import fill_diagonal

from pytensor_onnx import compile_onnx
from tests.conftest import compare_onnx_and_py
from tests.dispatch.loops.loop_cases import loops, scan

WIDTHS = ((1, 2), (0, 3))


def scaled(x):
    return OpFromGraph([x], [x * pt.exp(x).sum(axis=0, keepdims=True)], name="scaled")(x)


VECTORS = {
    "sort": pt.sort,
    "argsort": lambda x: pt.argsort(x, kind="stable"),
    "matrix of a diagonal": lambda x: pt.diag(x, k=-1),
    "padded": lambda x: pt.pad(x, (1, 2), constant_values=4.0),
    "padded by means": lambda x: pt.pad(x, (2, 1), mode="mean", stat_length=2),
    "function": scaled,
    "log of a sum": pt.logsumexp,
    "search in one array": lambda x: pt.searchsorted(np.array([-1.0, 0.0, 1.0]), x),
}
MATRICES = {
    "sort": lambda x: pt.sort(x, axis=0),
    "argsort": lambda x: pt.argsort(x, axis=-1, kind="stable"),
    "diagonal": lambda x: pt.diagonal(x, offset=1),
    "filled diagonal": lambda x: fill_diagonal(x, 7.0),
    "padded": lambda x: pt.pad(x, WIDTHS, constant_values=((1.0, 2.0), (3.0, 4.0))),
    "padded by reflection": lambda x: pt.pad(x, WIDTHS, mode="reflect"),
    "padded by ramps": lambda x: pt.pad(x, WIDTHS, mode="linear_ramp", end_values=((0, 1), (2, 3))),
    "padded by maxima": lambda x: pt.pad(x, WIDTHS, mode="maximum", stat_length=((1, 2), (2, 1))),
    "function": scaled,
    "einstein sum": lambda x: pt.einsum("ij,kj->ik", x, x),
}


def values(*shape):
    return np.random.default_rng(0).normal(size=shape).round(1)


def batches(functions, core):
    """Return a batched input for each function, and its results."""
    inputs, outputs = [], []
    for name, function in functions.items():
        x = core("x")
        batch = pt.tensor(name.replace(" ", "_"), dtype="float64", shape=(None,) * (x.ndim + 2))
        inputs.append(batch)
        outputs.append(vectorize_graph(function(x), {x: batch}))
    return inputs, outputs


@pytest.mark.slow
@pytest.mark.parametrize("batch", [(2, 3), (1, 1)])
@pytest.mark.parametrize(("functions", "core"), [(VECTORS, pt.vector), (MATRICES, pt.matrix)])
def test_no_loop(functions, core, batch):
    inputs, outputs = batches(functions, core)
    arrays = [values(*batch, 4, 3) if core is pt.matrix else values(*batch, 4) for _ in inputs]
    assert loops(compare_onnx_and_py(inputs, outputs, arrays)) == []


@pytest.mark.few(2)
@pytest.mark.parametrize("batch", [(0, 3), (2, 0)])
@pytest.mark.parametrize(("functions", "core"), [(VECTORS, pt.vector), (MATRICES, pt.matrix)])
def test_batches_of_nothing_keep_the_shape_of_a_result(functions, core, batch):
    inputs, outputs = batches(functions, core)
    shape = (4, 3) if core is pt.matrix else (4,)
    run = compile_onnx(inputs, outputs, verify=False)
    full = run(*[values(1, 1, *shape)] * len(inputs))
    for empty, one in zip(run(*[np.zeros((*batch, *shape))] * len(inputs)), full, strict=True):
        assert (empty.shape, empty.dtype) == ((*batch, *one.shape[2:]), one.dtype)


def test_batches_of_several_inputs_broadcast():
    x, v = pt.matrix("x"), pt.vector("v")
    function = OpFromGraph([x, v], [x * v, v.sum(), x.sum() + v])
    a = pt.tensor("a", dtype="float64", shape=(None, 1, None, None))
    b = pt.tensor("b", dtype="float64", shape=(1, None, None))
    outputs = vectorize_graph(function(x, v), {x: a, v: b})
    # Sums of numbers that cancel.
    compare_onnx_and_py([a, b], outputs, [values(2, 1, 4, 3), values(1, 5, 3)], atol=1e-14)


SEARCHES = {
    "one batch": ((2, 3, 4), (2, 3, 5)),
    "one value for each": ((2, 3, 4), (2, 3)),
    "matrices of values": ((2, 4), (2, 3, 5)),
    "values for all": ((2, 3, 4), (5,)),
    "arrays broadcast": ((1, 3, 4), (2, 1, 5)),
    "empty arrays": ((2, 0), (2, 5)),
    "no values": ((2, 4), (2, 0)),
    "known sizes": ((2, 1), (2, 1)),
}


@pytest.mark.each_value
@pytest.mark.parametrize(("arrays", "wanted"), SEARCHES.values(), ids=SEARCHES)
@pytest.mark.parametrize("side", ["left", "right"])
def test_search_in_a_batch_of_arrays(arrays, wanted, side):
    n_core = {(2, 3): 0, (2, 3, 5): 1 if len(arrays) == 3 else 2}.get(wanted, 1)
    x, v = pt.vector("x"), pt.tensor("v", dtype="float64", shape=(None,) * n_core)
    a, b = [
        pt.tensor(name, dtype="float64", shape=[1 if n == 1 else None for n in shape])
        for name, shape in (("a", arrays), ("b", wanted))
    ]
    y = vectorize_graph(pt.searchsorted(x, v, side=side), {x: a, v: b})
    sorted_values = np.sort(values(*arrays), axis=-1)
    sorted_values[..., -1:] = np.nan
    # Values between, at, before and after the elements.
    looked_for = np.resize([*np.unique(sorted_values), 0.03, np.inf, -np.inf], wanted)
    program = compare_onnx_and_py([a, b], y, [sorted_values, looked_for])
    assert loops(program) == []


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64", "uint64", "float32"])
def test_search_in_a_batch_of_every_dtype(dtype):
    x, v, order = pt.vector("x", dtype=dtype), pt.vector("v", dtype=dtype), pt.lvector("order")
    batch = {s: pt.matrix(s.name.upper(), dtype=s.dtype) for s in (x, v, order)}
    plain = pt.searchsorted(x, v, side="right", sorter=order)
    y = vectorize_graph(plain, batch)
    unsorted = np.random.default_rng(0).integers(0, 2 if dtype == "bool" else 100, size=(3, 6))
    arrays = [unsorted.astype(dtype), unsorted[:, ::-2].astype(dtype), np.argsort(unsorted)]
    assert loops(compare_onnx_and_py([*batch.values()], y, arrays)) == []


@pytest.mark.parametrize("batch", [(0,), (2, 0)])
def test_search_in_no_arrays(batch):
    x, v = pt.vector("x"), pt.vector("v")
    a, b = [pt.tensor(name, dtype="float64", shape=(None,) * (len(batch) + 1)) for name in "ab"]
    run = compile_onnx([a, b], vectorize_graph(pt.searchsorted(x, v), {x: a, v: b}), verify=False)
    assert run(np.zeros((*batch, 4)), np.zeros((*batch, 5))).shape == (*batch, 5)


def test_search_in_batches_of_different_sizes_is_refused():
    x, v = pt.vector("x"), pt.vector("v")
    a, b = pt.matrix("a"), pt.matrix("b")
    run = compile_onnx([a, b], vectorize_graph(pt.searchsorted(x, v), {x: a, v: b}), verify=False)
    for sizes in ((3, 2), (1, 2), (2, 1)):
        with pytest.raises(ValueError, match="dimension 'a_dim0' is"):
            run(np.zeros((sizes[0], 4)), np.zeros((sizes[1], 5)))


@pytest.mark.parametrize("minlength", [None, 5])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_counts_in_a_batch(minlength, is_weighted):
    x, w = pt.lvector("x"), pt.vector("w")
    batch = {x: pt.ltensor3("many"), w: pt.tensor3("weights")}
    counts = pt.bincount(x, w if is_weighted else None, minlength)
    y = vectorize_graph(counts, batch)
    numbers = np.random.default_rng(0).integers(0, 4, size=(2, 3, 6))
    numbers[..., -1] = 3
    program = compare_onnx_and_py([*batch.values()], y, [numbers, values(2, 3, 6)])
    assert loops(program) == []
    numbers[0, 0] = 7
    with pytest.raises(ValueError, match="arrays of a batch would have different sizes"):
        program(numbers, values(2, 3, 6))


def test_padding_that_differs_in_the_batch_is_a_loop():
    x, value, many = pt.vector("x"), pt.scalar("value"), pt.vector("many")
    y = vectorize_graph(pt.pad(x, (1, 2), constant_values=value), {value: many})
    program = compare_onnx_and_py([x, many], y, [values(3), values(2)])
    assert loops(program) == ["Loop"]


@pytest.mark.parametrize("function", [VECTORS["sort"], VECTORS["function"], VECTORS["padded"]])
def test_loops_over_rows_are_batches(function):
    x = pt.matrix("x")
    program = compare_onnx_and_py([x], scan(function, sequences=[x]), [values(5, 4)])
    assert loops(program) == []
