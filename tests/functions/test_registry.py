"""Definitions of this package do not depend on PyTensor's settings."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import scipy.linalg
from pytensor.tensor.linalg.products import Expm

from pytensor_onnx.functions.registry import DEFINITIONS
from pytensor_onnx.ops.factorisations import QuasiTriangular


def test_numbers_of_definitions_are_float64_under_a_floatx_of_float32():
    x = pt.dtensor3("x")
    with pytensor.config.change_flags(floatX="float32"):
        (result,) = DEFINITIONS[Expm](x)
    matrices = np.random.default_rng(0).standard_normal((2, 5, 5))
    found = result.eval({x: matrices}, mode="FAST_COMPILE")
    # Of numbers rounded to float32 the error is 2e-10.
    np.testing.assert_allclose(found, scipy.linalg.expm(matrices), rtol=1e-12)


def test_states_of_definitions_are_float64_under_a_floatx_of_float32():
    with pytensor.config.change_flags(floatX="float32"):
        results = DEFINITIONS[QuasiTriangular](pt.dtensor3("x"))
    assert {result.type.dtype for result in results} == {"float64"}
