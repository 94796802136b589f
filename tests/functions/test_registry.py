"""Definitions of this package do not depend on PyTensor's settings, those of users do."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import scipy.linalg
from pytensor.graph import Apply, Op
from pytensor.tensor.linalg.products import Expm

from pytensor_onnx import define, export_onnx
from pytensor_onnx.functions.linalg.hessenberg import quasi_triangular
from pytensor_onnx.functions.registry import definition_of


def test_numbers_of_definitions_are_float64_under_a_floatx_of_float32():
    x = pt.dtensor3("x")
    with pytensor.config.change_flags(floatX="float32"):
        (result,) = definition_of(Expm)(x)
    matrices = np.random.default_rng(0).standard_normal((2, 5, 5))
    found = result.eval({x: matrices}, mode="FAST_COMPILE")
    # Of numbers rounded to float32 the error is 2e-10.
    np.testing.assert_allclose(found, scipy.linalg.expm(matrices), rtol=1e-12)


def test_states_of_definitions_are_float64_under_a_floatx_of_float32():
    with pytensor.config.change_flags(floatX="float32"):
        results = definition_of(quasi_triangular.op_type)(pt.dtensor3("x"))
    assert {result.type.dtype for result in results} == {"float64"}


class Thirded(Op):
    """A third of a vector, in PyTensor's floatX at the time when it is computed."""

    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = (inputs[0] * np.dtype(pytensor.config.floatX).type(1 / 3)).astype("f8")


@define(Thirded, "(n)->(n)")
def thirded(x):
    return (x * pt.constant(1 / 3, dtype=pytensor.config.floatX)).astype(x.dtype)


def test_a_user_s_definition_has_the_numbers_of_each_floatx():
    x = pt.dvector("x")
    for dtype in ("float64", "float32", "float64"):
        with pytensor.config.change_flags(floatX=dtype):
            program = export_onnx([x], Thirded()(x), verify=False)
        assert program([3.0])[0] == 3 * float(np.dtype(dtype).type(1 / 3)), dtype
