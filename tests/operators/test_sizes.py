import numpy as np
import onnx_ir as ir
import pytest

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.operators.dims import product_dim, sizes_in, sum_dim


@pytest.mark.parametrize(
    ("compute", "expected"),
    [
        (lambda build, x: build.Shape(x), ("n", 4, "m")),
        (lambda build, x: build.Shape(x, start=1), (4, "m")),
        (lambda build, x: build.Shape(x, start=-2, end=-1), (4,)),
        (lambda build, x: build.size(x, 2), ("m",)),
        (lambda build, x: build.Gather(build.Shape(x), np.array([2, 0])), ("m", "n")),
        (lambda build, x: build.Slice(build.Shape(x), [1], [2**63 - 1]), (4, "m")),
        (lambda build, x: build.Slice(build.Shape(x), [0], [3], [0], [2]), ("n", "m")),
        (lambda build, x: build.Mul(build.size(x, 0), build.size(x, 1)), (product_dim(["n", 4]),)),
        (lambda build, x: build.ReduceProd(build.Shape(x), [0]), (product_dim(["n", 4, "m"]),)),
        (lambda build, x: build.Cast(build.Shape(x), to=ir.DataType.INT32), ("n", 4, "m")),
        (
            lambda build, x: build.Concat(build.ints([-1]), build.Shape(x), axis=0),
            (-1, "n", 4, "m"),
        ),
        (lambda build, x: build.Add(build.Shape(x), 1), (None, None, None)),
        (lambda build, x: build.Add(build.size(x, 0), 2), (sum_dim(["n", 2]),)),
        (lambda build, x: build.Add(build.size(x, 0), -1), (None,)),
        (lambda build, x: x, None),
    ],
)
def test_known_computed_sizes(compute, expected):
    build = Builder(ModelScope(21))
    x = ir.val("x", dtype=ir.DataType.FLOAT, shape=("n", 4, "m"))
    assert sizes_in(compute(build, x)) == expected
