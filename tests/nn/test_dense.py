"""The linear layer: values, gradients, structure, and refused arguments."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx import nn
from tests.conftest import compare_onnx_and_py, op_types

RNG = np.random.default_rng(0)


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(3,), (5, 3), (1, 3), (0, 3), (2, 0, 3), (2, 4, 3)])
@pytest.mark.parametrize("known", [True, False])
def test_linear_is_the_product_with_the_rows_of_the_weight(dtype, shape, known):
    values = [RNG.normal(size=s).astype(dtype) for s in (shape, (4, 3), (4,))]
    values[1][0, 0] = np.nan
    symbols = [
        pt.tensor(n, dtype=dtype, shape=v.shape if known else (None,) * v.ndim)
        for n, v in zip("xwb", values, strict=True)
    ]
    outputs = [nn.linear(*symbols), nn.linear(*symbols[:2])]
    tolerance = {"float16": 1e-2, "float32": 1e-5, "float64": 1e-12}[dtype]
    program = compare_onnx_and_py(symbols, outputs, values, rtol=tolerance, atol=tolerance)
    x, w, b = (value.astype("float64") for value in values)
    expected = np.einsum("...i,oi->...o", x, w)
    for found, reference in zip(program(*values), (expected + b, expected), strict=True):
        np.testing.assert_allclose(found, reference, rtol=tolerance, atol=tolerance)


def test_matrices_make_one_gemm_and_mixed_dtypes_the_wider_one():
    weight = pytensor.shared(RNG.normal(size=(4, 3)).astype("float32"), name="weight")
    bias = pytensor.shared(RNG.normal(size=4).astype("float32"), name="bias")
    x = pt.fmatrix("x")
    value = RNG.normal(size=(2, 3)).astype("float32")
    program = compare_onnx_and_py([x], nn.linear(x, weight, bias), [value])
    assert op_types(program) == ["Gemm"]
    assert {"weight.T", "bias"} == set(program.model.graph.initializers)
    assert nn.linear(pt.dmatrix(), weight, bias).type.dtype == "float64"


def test_gradients_are_products():
    x, w, b = pt.dmatrix("x"), pt.dmatrix("w"), pt.dvector("b")
    gradients = pt.grad((nn.linear(x, w, b) ** 2).sum(), [x, w, b])
    values = [RNG.normal(size=shape) for shape in ((2, 3), (4, 3), (4,))]
    compare_onnx_and_py([x, w, b], gradients, values, rtol=1e-10)


X, W, B = pt.fmatrix("x"), pt.fmatrix("w"), pt.fvector("b")


@pytest.mark.parametrize(
    ("error", "message", "arguments"),
    [
        (TypeError, "input x must be an array of floats; it has dtype int64", (pt.lmatrix("x"), W)),
        (ValueError, "linear: weight b must have 2 dimensions; it has 1", (X, B)),
        (ValueError, "linear: bias w must have 1 dimensions; it has 2", (X, W, W)),
        (ValueError, "must have at least 1 dimensions; it has 0", (pt.fscalar(), W)),
        (
            ValueError,
            "the last axis of input has the size 4, and weight takes 3; its shape is "
            r"\(outputs, inputs\) = \(4, 3\)",
            (np.ones((2, 4)), np.ones((4, 3))),
        ),
        (
            ValueError,
            "linear: bias has 3 elements, the result 4 features",
            (np.ones((2, 3)), np.ones((4, 3)), np.ones(3)),
        ),
    ],
)
def test_operands_that_do_not_fit_are_refused(error, message, arguments):
    with pytest.raises(error, match=message):
        nn.linear(*arguments)
