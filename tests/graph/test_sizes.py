import numpy as np
import onnx_ir as ir
import pytest

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.dims import product_dim, sum_dim
from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.graph.sizes import sizes_in


@pytest.mark.parametrize(
    ("compute", "expected"),
    [
        (lambda onnx, x: onnx.Shape(x), ("n", 4, "m")),
        (lambda onnx, x: onnx.Shape(x, start=1), (4, "m")),
        (lambda onnx, x: onnx.Shape(x, start=-2, end=-1), (4,)),
        (lambda onnx, x: onnx.size(x, 2), ("m",)),
        (lambda onnx, x: onnx.Gather(onnx.Shape(x), np.array([2, 0])), ("m", "n")),
        (lambda onnx, x: onnx.Slice(onnx.Shape(x), [1], [2**63 - 1]), (4, "m")),
        (lambda onnx, x: onnx.Slice(onnx.Shape(x), [0], [3], [0], [2]), ("n", "m")),
        (lambda onnx, x: onnx.Mul(onnx.size(x, 0), onnx.size(x, 1)), (product_dim(["n", 4]),)),
        (lambda onnx, x: onnx.ReduceProd(onnx.Shape(x), [0]), (product_dim(["n", 4, "m"]),)),
        (lambda onnx, x: onnx.Cast(onnx.Shape(x), to=ir.DataType.INT32), ("n", 4, "m")),
        (lambda onnx, x: onnx.Concat(onnx.ints([-1]), onnx.Shape(x), axis=0), (-1, "n", 4, "m")),
        (lambda onnx, x: onnx.Add(onnx.Shape(x), 1), (None, None, None)),
        (lambda onnx, x: onnx.Add(onnx.size(x, 0), 2), (sum_dim(["n", 2]),)),
        (lambda onnx, x: onnx.Add(onnx.size(x, 0), -1), (None,)),
        (lambda onnx, x: x, None),
    ],
)
def test_known_computed_sizes(compute, expected):
    onnx = Builder(ModelScope(21))
    x = ir.val("x", dtype=ir.DataType.FLOAT, shape=("n", 4, "m"))
    assert sizes_in(compute(onnx, x)) == expected
