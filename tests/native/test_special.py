"""Kernels of special functions agree with the functions in whose place they run."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytensor.scalar as ps
import pytensor.tensor as pt
import pytest
from pytensor.scalar.math import NdtriExp
from pytensor.tensor.elemwise import Elemwise

from pytensor_onnx import export_onnx
from pytensor_onnx.running.session import Session, SessionOptions
from tests.conftest import op_types

ROOT = Path(__file__).parents[2]
SPECIAL = [0.0, np.nan, np.inf, 5e-324, 1e-300, 1e308, 0.5, 1.0, 2.0, 3.5, 36.0, 171.0, 745.0, 1e3]
FUNCTIONS = {
    **{name: getattr(pt, name) for name in ("gammaln", "psi", "tri_gamma", "log1mexp", "log1p")},
    **{name: getattr(pt, name) for name in ("erf", "erfc", "erfcx", "erfinv", "erfcinv", "expm1")},
    **{name: getattr(pt, name) for name in ("softplus", "sigmoid", "i0", "i1")},
    "ndtri_exp": Elemwise(NdtriExp(ps.upgrade_to_float, name="ndtri_exp")),
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.few(13)
def test_results_are_those_of_the_function(name, dtype):
    rng = np.random.default_rng(0)
    with np.errstate(all="ignore"):
        drawn = rng.normal(size=2000) * 10 ** rng.uniform(-9, 4, 2000)
        points = np.concatenate([SPECIAL, np.negative(SPECIAL), drawn]).astype(dtype)
    x, y = pt.vector("x", dtype=dtype), pt.tensor3("y", dtype=dtype)
    program = export_onnx([x, y], [FUNCTIONS[name](x), FUNCTIONS[name](y)], verify=False)
    feed = {"x": points, "y": np.zeros((2, 0, 3), dtype)}
    on, off = (
        Session(program.model, options=SessionOptions(kernels=kernels)).run(feed)
        for kernels in (True, False)
    )
    # Logarithms and exponentials of the C library and of the runtime differ.
    np.testing.assert_array_max_ulp(on[0], off[0], maxulp=4, dtype=dtype)
    zeros = off[0] == 0
    np.testing.assert_array_equal(np.signbit(on[0][zeros]), np.signbit(off[0][zeros]))
    assert on[1].shape == (2, 0, 3)


def test_numbers_and_blocks_have_the_kernel():
    x, y = pt.scalar("x"), pt.matrix("y")
    program = export_onnx([x, y], [pt.gammaln(x), pt.gammaln(y)], verify=False)
    assert sorted(op_types(program)) == ["GammaLn_float64", "GammaLn_float64_in_blocks"]
    number, array = program(3.0, np.full((300, 300), 4.0))
    np.testing.assert_allclose(number, np.log(2.0), rtol=1e-15)
    np.testing.assert_allclose(array, np.log(6.0), rtol=1e-15)


def test_the_functions_in_c_are_those_of_the_definitions(monkeypatch):
    """`scripts/write_special_kernels.py` writes the file anew."""
    path = ROOT / "scripts" / "write_special_kernels.py"
    spec = importlib.util.spec_from_file_location("write_special_kernels", path)
    script = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, script)
    spec.loader.exec_module(script)
    assert script.FILE.read_text() == script.text()
