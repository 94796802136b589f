"""Random rounding stands for the roundings of another implementation."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph
from pytensor.conditional.op import ifelse
from pytensor.graph.fg import FunctionGraph

from pytensor_onnx import nn
from pytensor_onnx.exporting.verification.float_conversion import UNITS, in_double, moved
from pytensor_onnx.exporting.verification.results import evaluate


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_numbers_move_both_ways_by_a_few_units(dtype):
    numbers = np.random.default_rng(0).uniform(1, 2, size=1000)
    found = moved(numbers, dtype, seed=0)
    np.testing.assert_array_equal(found, found.astype(dtype))
    units = (found - numbers) / np.finfo(dtype).eps
    assert units.max() > UNITS / 2
    assert units.min() < -UNITS / 2
    assert np.abs(units).max() <= 2 * UNITS + 0.5
    assert abs(units.mean()) < 0.3


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_exact_numbers_are_kept(dtype):
    numbers = np.array([0.0, -0.0, 1.0, 2.0**23 + 1, np.float32(0.1), np.inf, -np.inf, np.nan])
    np.testing.assert_array_equal(moved(numbers, dtype, seed=0), numbers)


def test_equal_numbers_move_equally_and_otherwise_with_another_seed():
    numbers = np.full(3, 0.1)
    first, second = moved(numbers, "float32", seed=0), moved(numbers, "float32", seed=1)
    assert len(set(first)) == 1
    assert first[0] != second[0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_only_operations_that_round_move_results(dtype):
    x = pt.vector("x", dtype=dtype)
    y = pt.exp(x)
    outputs = [x[::-1], x + 1, y, y[1:], y - pt.exp(x), pt.floor(y)]
    fgraph = FunctionGraph([x], outputs, clone=False)
    values = [np.array([1.0, 2.0, 4.0])]
    kept, plus, rounded, indexed, zero, floor = evaluate(in_double(fgraph, seed=0), values)
    np.testing.assert_array_equal(kept, values[0][::-1])
    np.testing.assert_array_equal(plus, values[0] + 1)
    assert np.all(rounded != np.exp(values[0]))
    np.testing.assert_allclose(rounded, np.exp(values[0]), rtol=8 * np.finfo(dtype).eps)
    np.testing.assert_array_equal(indexed, rounded[1:])
    np.testing.assert_array_equal(zero, np.zeros(3))
    np.testing.assert_array_equal(floor, np.floor(np.exp(values[0])))


def test_results_that_an_operand_contains_are_kept():
    x = pt.vector("x", dtype="float64")
    outputs = [-x, pt.maximum(x, 0), pt.sort(x), pt.concatenate([x, x]), x[1:], x.max(), abs(x)]
    fgraph = FunctionGraph([x], outputs, clone=False)
    values = [np.random.default_rng(0).normal(size=9)]
    found = evaluate(in_double(fgraph, seed=0), values)
    for array, expected in zip(found, evaluate(fgraph, values), strict=True):
        np.testing.assert_array_equal(array, expected)


def function_of(x):
    inner = x.type()
    return OpFromGraph([inner], [pt.exp(inner) / 3, inner.sum()])(x)[0]


def nested_functions(x):
    outer, inner = x.type(), x.type()
    half = OpFromGraph([inner], [inner / 2])
    return OpFromGraph([outer], [half(outer + 1) * outer])(x)


def loop(x):
    return pytensor.scan(
        lambda row, total: pt.tanh(row / 3) + total,
        sequences=[x],
        outputs_info=[pt.zeros(x.shape[1], dtype=x.dtype)],
        return_updates=False,
    )


GRAPHS = {
    "elementwise": lambda x: pt.exp(x) / 3 + pt.switch(x > 0, x, -x) ** 2,
    "sums": lambda x: (x / 3).sum(axis=0) + (x / 7).mean() + pt.prod(x),
    "extremes": lambda x: pt.max(x / 3, axis=0) + x.std(axis=0),
    "rounding": lambda x: pt.cast(x / 3, x.dtype) + pt.floor(x),
    "indices": lambda x: pt.argmax(x, axis=1) + pt.cast(x[:, 0] * 10, "int64"),
    "selection": lambda x: pt.set_subtensor(x[1:, [0, 2]], 1 / (1 + x[1:, :2] ** 2)),
    "linear algebra": lambda x: pt.dot(x, x.T) / 3,
    "batches": lambda x: pt.matmul(x[None] / 3, x.T[None]),
    "made": lambda x: pt.stack([x[0, 0] / 3, x[1, 1]]) + pt.arange(2, dtype=x.dtype),
    "identity": lambda x: pt.eye(3, dtype=x.dtype) / 3 + pt.full((3, 3), x[0, 0]),
    "softmax": lambda x: pt.special.softmax(x / 3, axis=1),
    "branches": lambda x: ifelse(pt.gt(x[0, 0], 5), x / 3, x / 7),
    "functions": function_of,
    "nested functions": nested_functions,
    "loops": loop,
    "shapes": lambda x: pt.concatenate([x, x / 3]).reshape((-1,)).dimshuffle(0, "x"),
    "sorted": lambda x: pt.sort(x / 3, axis=0) + pt.cumsum(x, axis=0),
    "convolution": lambda x: nn.conv2d(x[None, None], x[None, None, :2, :2]) / 3,
    "layer norm": lambda x: nn.layer_norm(x, x[0], x[1], epsilon=0.5),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_float32_is_computed_in_float64(name):
    values = np.random.default_rng(0).normal(size=(3, 3)).astype("float32")
    narrow, wide = (pt.matrix("x", dtype=dtype) for dtype in ("float32", "float64"))
    graph = in_double(FunctionGraph([narrow], [GRAPHS[name](narrow)]))
    expected = FunctionGraph([wide], [GRAPHS[name](wide)])
    assert graph.inputs[0].type.dtype == "float64"
    wide_values = [values.astype("float64")]
    (found,), (wanted,) = evaluate(graph, wide_values), evaluate(expected, wide_values)
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-13)


def test_casts_to_narrow_floats_round_nothing():
    x = pt.vector("x", dtype="float64")
    y = pt.cast(pt.cast(x / 3, "float32"), "float64") + pt.cast(x, "float16")
    (found,) = evaluate(in_double(FunctionGraph([x], [y])), [np.array([0.1, 7.0])])
    np.testing.assert_allclose(found, np.array([0.1, 7.0]) * 4 / 3, rtol=1e-15)


def test_operations_with_a_single_dtype_keep_it():
    state = pytensor.shared(np.random.default_rng(0))
    x = pt.vector("x", dtype="float32")
    draws = pt.random.normal(x, 1, rng=state, dtype="float32")
    fgraph = FunctionGraph([x, state], [draws, state])
    graph = in_double(fgraph)
    assert graph.outputs[0].type.dtype == "float64"


def test_other_graphs_are_unchanged():
    n, x = pt.lvector("n"), pt.vector("x", dtype="float64")
    graph = in_double(FunctionGraph([n, x], [n + 1, x + 1]))
    assert [v.type.dtype for v in graph.outputs] == ["int64", "float64"]
