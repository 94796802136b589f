"""SymPy is loaded when onnx_ir computes with dimensions, and by nothing before."""

import subprocess
import sys

import pytest

FIRST_RESULT = """
import sys, numpy as np
import pytensor, pytensor.tensor as pt, pytensor_onnx
x = pt.matrix("x")
f = pytensor.function([x], pt.concatenate([x, x[1:]]).sum(axis=1), mode="ONNX")
assert f(np.ones((2, 2))).tolist() == [2, 2, 2]
assert "sympy" not in sys.modules
"""
DIMENSIONS = """
import onnx_ir as ir
size = ir.SymbolicDim("Max(n, 3)") + 1
assert size.evaluate({"n": 5}) == 6 and size.evaluate({"n": 1}) == 4
"""
ITSELF = """
import sympy, sympy.polys
from sympy import Symbol
assert sympy.__file__ and isinstance(sympy.Symbol("n") + 1, sympy.Expr)
"""


@pytest.mark.parametrize(
    "code",
    [
        FIRST_RESULT + DIMENSIONS + ITSELF,
        "import pytensor_onnx\n" + ITSELF + DIMENSIONS,
        "import onnx_ir, pytensor_onnx\n" + DIMENSIONS + ITSELF,
    ],
    ids=["after_a_result", "before_onnx_ir", "onnx_ir_first"],
)
def test_sympy_is_loaded_on_first_use(code):
    subprocess.run([sys.executable, "-c", code], check=True)


def test_onnx_ir_loads_where_it_needs_sympy_at_once():
    code = """
import pytensor_onnx, pytensor_onnx._deferred_sympy as deferred
def fail(self, name): raise AttributeError(name)
deferred._StandIn.__getattr__ = fail
import onnx_ir
assert onnx_ir.SymbolicDim("n") + 1 == "n + 1"
"""
    subprocess.run([sys.executable, "-c", code], check=True)
