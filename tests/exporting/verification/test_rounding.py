"""Rounding is told from error by the graph in float64, rounded in other ways."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.fg import FunctionGraph
from pytensor.raise_op import Assert

from pytensor_onnx.exporting.verification.results import evaluate
from pytensor_onnx.exporting.verification.rounding import UndeterminedError, distances_from_double


def in_place(x):
    return (pt.exp(x) + 1000) - 1000


def in_loop(x):
    return pytensor.scan(lambda r: (pt.exp(r) + 1000) - 1000, sequences=[x], return_updates=False)


@pytest.mark.parametrize("compute", [in_place, in_loop])
@pytest.mark.parametrize(("units", "is_rounding"), [(1, True), (100, False)])
def test_one_result_that_is_accurate_by_chance_is_no_measure(compute, units, is_rounding):
    """Intermediate results lose digits that no rounding of the input explains."""
    x = pt.vector("x", dtype="float32")
    fgraph = FunctionGraph([x], [compute(x)], clone=False)
    accurate = [np.log(np.array([0.125 + 2.0**-12], dtype="float32"))]
    expected = evaluate(fgraph, accurate)
    np.testing.assert_allclose(expected[0], np.exp(accurate[0]), rtol=1e-6)
    found = [expected[0] + np.float32(units * 2.0**-14)]
    distance = distances_from_double([fgraph], accurate, found, expected, [0])[0]
    assert distance.is_rounding == is_rounding


def test_digits_are_lost_by_intermediate_results_in_float64_too():
    x = pt.matrix("x", dtype="float64")
    fgraph = FunctionGraph([x], [pt.linalg.slogdet(x @ x.T)[1]], clone=False)
    tall = [np.random.default_rng(0).normal(size=(3, 2))]
    expected = evaluate(fgraph, tall)
    assert distances_from_double([fgraph], tall, [expected[0] + 1], expected, [0])[0].is_rounding
    assert not distances_from_double([fgraph], tall, [expected[0] + 100], expected, [0])[
        0
    ].is_rounding


@pytest.mark.parametrize("assume_a", ["gen", "pos"])
@pytest.mark.parametrize(("rows", "is_rounding"), [(3, True), (2, False)])
def test_nan_is_accepted_where_no_digit_is_certain(rows, is_rounding, assume_a):
    """A singular matrix has no Cholesky factor, or one of rounding errors."""
    x = pt.matrix("x", dtype="float64")
    fgraph = FunctionGraph([x], [pt.linalg.solve(x @ x.T, x, assume_a=assume_a)], clone=False)
    values = [np.random.default_rng(0).normal(size=(rows, 2))]
    expected = evaluate(fgraph, values)
    found = [np.full(expected[0].shape, np.nan)]
    assert (
        distances_from_double([fgraph], values, found, expected, [0])[0].is_rounding == is_rounding
    )


def test_results_are_undetermined_where_pytensor_fails_for_numbers_rounded_otherwise():
    x = pt.matrix("x", dtype="float64")
    is_exact = Assert("x must be one third")(x, pt.eq(x, 1 / 3).all())
    fgraph = FunctionGraph([x], [is_exact * 3], clone=False)
    values = [np.full((2, 2), 1 / 3)]
    expected = evaluate(fgraph, values)
    with pytest.raises(UndeterminedError, match="x must be one third"):
        distances_from_double([fgraph], values, [expected[0] + 1], expected, [0])
