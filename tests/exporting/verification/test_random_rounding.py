"""Random rounding stands for the roundings of another implementation."""

import numpy as np
import pytensor.tensor as pt
import pytest
from pytensor.graph.fg import FunctionGraph

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
