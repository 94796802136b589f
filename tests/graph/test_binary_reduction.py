"""Axes are merged by a constant shape where there is one; static reductions need no loop."""

import numpy as np
import onnx_ir as ir
import pytest

from pytensor_onnx.graph.binary_reduction import fold_last_axis, merge_axes
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.running.session import Session


def run(build: Builder, x: ir.Value, result: ir.Value, array: np.ndarray) -> np.ndarray:
    result.name = "result"
    graph = ir.Graph(
        [x],
        [result],
        nodes=build.nodes,
        initializers=list(build.scope.initializers.values()),
        opset_imports={"": 21},
        name="g",
    )
    return Session(ir.Model(graph, ir_version=10)).run({"x": array})[0]


@pytest.mark.parametrize(
    ("dims", "axes", "shape", "operators"),
    [
        (("n", 3, 2), [1, 2], (4, 3, 2), ["Reshape"]),
        (("n", 3, 2), [1, 2], (0, 3, 2), ["Reshape"]),
        ((4, "n", 2), [1, 2], (4, 3, 2), ["Reshape"]),
        ((4, "n", 2), [1, 2], (4, 0, 2), ["Reshape"]),
        ((0, 3, 2), [1, 2], (0, 3, 2), ["Reshape"]),
        (("n", 3, "m"), [0, 1, 2], (2, 3, 2), ["Reshape"]),
        ((2, "n", 3), [0, 2], (2, 4, 3), ["Transpose", "Reshape"]),
        (("n", "m"), [], (2, 0), ["Reshape"]),
        (("n", "m", 2), [1, 2], (2, 0, 2), ["Shape", "Shape", "Mul", "Concat", "Reshape"]),
        (("n", 3, 0), [1, 2], (2, 3, 0), ["Shape", "Concat", "Reshape"]),
    ],
)
def test_merged_axes(dims, axes, shape, operators) -> None:
    build = Builder(ModelScope(21))
    x = ir.val("x", dtype=ir.DataType.INT64, shape=dims)
    result = merge_axes(build, x, axes)
    assert [node.op_type for node in build.nodes] == operators
    array = np.arange(np.prod(shape)).reshape(shape)
    kept = [axis for axis in range(array.ndim) if axis not in axes]
    expected = array.transpose(*kept, *axes).reshape(
        *(shape[axis] for axis in kept), int(np.prod([shape[axis] for axis in axes], dtype=int))
    )
    np.testing.assert_array_equal(run(build, x, result, array), expected)


@pytest.mark.each_value
@pytest.mark.parametrize("size", [0, 1, 2, 3, 7, 8, 13])
@pytest.mark.parametrize("static", [False, True])
def test_folded_axes(size: int, static: bool) -> None:
    build = Builder(ModelScope(21))
    x = ir.val("x", dtype=ir.DataType.INT64, shape=["n", size if static else "m"])
    result = fold_last_axis(build, x, "Mul", 1)
    assert ("Loop" in [node.op_type for node in build.nodes]) != static
    array = np.random.default_rng(0).integers(-9, 9, size=(3, size))
    np.testing.assert_array_equal(run(build, x, result, array), array.prod(axis=1))
