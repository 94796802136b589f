"""A Relu before a Clip becomes part of it: the runtime refuses both in float64."""

import numpy as np
import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph

from tests.conftest import compare_onnx_and_py, op_types

VALUES = [-1.0, 0.0, 0.3, 1.0, 3.0, np.nan, np.inf, -np.inf]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("low", "high"), [(0, 2), (-1, 2), (0.5, 2), (-2, -1)])
def test_a_rectified_value_is_clipped(low, high, dtype):
    x = pt.vector("x", dtype=dtype)
    result = pt.clip(pt.maximum(x, 0), low, high)
    program = compare_onnx_and_py([x], result, [np.array(VALUES, dtype)])
    assert op_types(program) == ["Clip"]


def test_a_rectified_value_is_clipped_in_a_function():
    x = pt.vector("x")
    op = OpFromGraph([x], [pt.clip(pt.maximum(x, 0), 0.5, 2)], name="relu2")
    compare_onnx_and_py([x], op(x), [np.array(VALUES)])


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("low", "high"), [(0, 2), (-1, 2), (0.5, 2), (-2, -1)])
def test_a_rectified_value_may_come_from_a_function_or_go_to_one(low, high, dtype):
    x = pt.vector("x", dtype=dtype)
    bounds = [pt.scalar(name, dtype=dtype) for name in ("low", "high")]
    numbers = [np.array(n, dtype) for n in (low, high)]
    rectified = OpFromGraph([x], [pt.maximum(x, 0)], name="rectified")
    clipped = OpFromGraph([x], [pt.clip(x, *numbers)], name="clipped")
    clipped_to = OpFromGraph([x, *bounds], [pt.clip(x, *bounds)], name="clipped_to")
    relu2 = OpFromGraph([x, *bounds], [pt.clip(pt.maximum(x, 0), *bounds)], name="relu2")
    results = [
        clipped(pt.maximum(x, 0)),
        pt.clip(rectified(x), *numbers),
        clipped(rectified(x)),
        clipped_to(pt.maximum(x, 0), *numbers),
        relu2(x, *numbers),
    ]
    for result in results:
        compare_onnx_and_py([x], result, [np.array(VALUES, dtype)])


def test_a_relu_that_is_used_elsewhere_stays():
    x = pt.vector("x")
    y = pt.maximum(x, 0)
    program = compare_onnx_and_py([x], [pt.clip(y, 0, 2), y], [np.array(VALUES)])
    assert sorted(op_types(program)) == ["Clip", "Relu"]


def test_bounds_that_are_computed_stay_bounds():
    x, low = pt.vector("x"), pt.scalar("low")
    result = pt.clip(pt.maximum(x, 0), low, 2)
    program = compare_onnx_and_py([x, low], result, [np.array(VALUES), -1.0])
    assert "Relu" in op_types(program)
