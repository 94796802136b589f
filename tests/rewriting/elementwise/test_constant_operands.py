"""Functions of what numbers make with constants are those of the graph as it is written."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from tests.conftest import PY, assert_same

UNARY = {
    "abs": abs,
    "neg": lambda x: -x,
    "sign": pt.sign,
    "sqr": pt.sqr,
    "sqrt": pt.sqrt,
    "exp": pt.exp,
    "log": pt.log,
    "log1p": pt.log1p,
    "reciprocal": pt.reciprocal,
    "reciprocal of a third": lambda x: 3 / x,
    "sigmoid": pt.sigmoid,
    "sum": pt.sum,
    "prod": pt.prod,
    "max": pt.max,
    "mean": pt.mean,
}
BINARY = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "floor_div": lambda x, y: x // y,
    "mod": lambda x, y: x % y,
    "maximum": pt.maximum,
}
CONSTANTS = [
    *(np.float64(0), np.float64(1), np.float64(2), np.float32(0.5)),
    *(np.int64(3), np.int8(0), np.int8(2), np.uint8(1)),
]
VALUES = {
    "bool": [True, False],
    "int8": [100, -100, 12, -128, 1, 3],
    "uint8": [200, 100, 16, 255, 1, 3],
    "int16": [200, -300, 16, -(2**15), 1, 3],
    "float16": [3.25, -0.75, 7, 0.125, 1, -100, 0],
    "float64": [3.25, -0.75, 17, 1e-4, 1, -100, 0],
}


@pytest.mark.each_value
@pytest.mark.parametrize("binary", BINARY)
@pytest.mark.parametrize("dtype", VALUES)
@pytest.mark.slow
def test_functions_of_arithmetic_with_constants(dtype, binary):
    x, value = pt.vector("x", dtype=dtype), np.array(VALUES[dtype], dtype)
    results = {}
    for number in CONSTANTS:
        constant = pt.constant(number)
        for side, pair in (("right", (x, constant)), ("left", (constant, x))):
            inner = BINARY[binary](*pair)
            for name, function in UNARY.items():
                results[f"{name}({binary}), {number!r} {side}"] = function(inner)
    with np.errstate(all="ignore"):
        expected = pytensor.function([x], list(results.values()), mode=PY)(value)
    found = pytensor.function([x], list(results.values()), mode="ONNX")(value)
    for name, a, b in zip(results, found, expected, strict=True):
        # A zero has no sign that all rewrites keep, which its reciprocal tells.
        pair = (np.abs(a), np.abs(b)) if "reciprocal" in name else (a, b)
        try:
            # The logarithm of a quotient may be a difference, which is not quite zero at one.
            assert_same(*pair, atol=1e-15)
        except AssertionError as error:
            error.add_note(name)
            raise
