"""Kernels of special functions agree with the functions in whose place they run."""

import numpy as np
import pytensor.tensor as pt

from pytensor_onnx import export_onnx
from scripts import write_special_kernels
from tests.conftest import op_types


def test_numbers_and_blocks_have_the_kernel():
    x, y = pt.scalar("x"), pt.matrix("y")
    program = export_onnx([x, y], [pt.gammaln(x), pt.gammaln(y)], verify=False)
    assert sorted(op_types(program)) == ["GammaLn_float64", "GammaLn_float64_in_blocks"]
    number, array = program(3.0, np.full((300, 300), 4.0))
    np.testing.assert_allclose(number, np.log(2.0), rtol=1e-15)
    np.testing.assert_allclose(array, np.log(6.0), rtol=1e-15)


def test_the_functions_in_c_are_those_of_the_definitions():
    assert write_special_kernels.FILE.read_text() == write_special_kernels.text()
