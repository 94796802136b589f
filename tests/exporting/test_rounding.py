"""Rounding is told from error by the graph in float64, rounded in other ways."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.fg import FunctionGraph

from pytensor_onnx.exporting.evaluation import evaluate
from pytensor_onnx.exporting.rounding import distances_from_double


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
    distance = distances_from_double(fgraph, accurate, found, expected, [0])[0]
    assert distance.is_rounding == is_rounding
