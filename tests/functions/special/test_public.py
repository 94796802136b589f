"""What users get from the public API: the definitions are used wherever the runtime falls short."""

import numpy as np
import pytensor.tensor as pt
import pytest

from pytensor_onnx import compile_onnx
from tests.functions.special.accuracy import assert_accurate

NO_FLOAT64_KERNEL = {
    "Erf": pt.erf,
    "Softplus": pt.softplus,
    "Tan": pt.tan,
    "ArcSin": pt.arcsin,
    "ArcCos": pt.arccos,
    "ArcTan": pt.arctan,
    "Sinh": pt.sinh,
    "Cosh": pt.cosh,
    "ArcSinh": pt.arcsinh,
    "ArcCosh": pt.arccosh,
    "ArcTanh": pt.arctanh,
}
INACCURATE_OPERATOR = {"Sigmoid": pt.sigmoid, "Tanh": pt.tanh, "Sin": pt.sin, "Cos": pt.cos}
NO_OPERATOR = {
    "Erfc": pt.erfc,
    "Log1p": pt.log1p,
    "Expm1": pt.expm1,
    "Log1mexp": pt.log1mexp,
    "Log2": pt.log2,
    "Log10": pt.log10,
    "Exp2": pt.exp2,
}


@pytest.mark.parametrize("name", [*NO_FLOAT64_KERNEL, *INACCURATE_OPERATOR, *NO_OPERATOR])
def test_float64_errors_are_within_four_ulp(name):
    functions = NO_FLOAT64_KERNEL | INACCURATE_OPERATOR | NO_OPERATOR
    x = pt.vector("x", dtype="float64")
    assert_accurate(name, "float64", compile_onnx([x], functions[name](x), verify=False))


@pytest.mark.parametrize("name", NO_OPERATOR)
def test_float32_errors_are_within_four_ulp(name):
    x = pt.vector("x", dtype="float32")
    assert_accurate(name, "float32", compile_onnx([x], NO_OPERATOR[name](x), verify=False))


def test_arctan2_broadcasts_and_computes_in_the_common_dtype():
    y, x = pt.col("y", dtype="float32"), pt.vector("x", dtype="float64")
    run = compile_onnx([y, x], pt.arctan2(y, x), verify=False)
    a, b = np.array([[0.5], [-2.0]], "float32"), np.array([1.0, -3.0, 0.0])
    np.testing.assert_array_max_ulp(run(a, b), np.arctan2(a, b), 2)
