"""Ops that are defined by expressions become one function for each dtype."""

import numpy as np
import pytensor.scalar as ps
import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph
from pytensor.tensor.elemwise import Elemwise

from pytensor_onnx import define, export_onnx
from tests.conftest import compare_onnx_and_py, op_types

VALUE = np.array([[0.1, 0.5], [-0.3, 0.9]])


def function_names(program):
    return sorted(function.name for function in program.model.functions.values())


def test_one_function_serves_all_calls_ranks_and_shapes():
    x, y = pt.matrix("x"), pt.scalar("y")
    outputs = [pt.erfc(x), pt.erfc(x.sum(axis=0)), pt.erfc(y), pt.erfc(x[None])]
    program = compare_onnx_and_py([x, y], outputs, [VALUE, np.array(0.2)])
    assert function_names(program).count("Erfc_float64") == 1


@pytest.mark.slow
def test_each_dtype_has_a_function_of_its_own():
    x = pt.matrix("x")
    single = pt.cast(x, "float32")
    program = compare_onnx_and_py([x], [pt.erfc(x), pt.erfc(single)], [VALUE])
    assert {"Erfc_float32", "Erfc_float64"} <= set(function_names(program))


def test_float16_is_computed_in_float32():
    x = pt.matrix("x", dtype="float16")
    program = compare_onnx_and_py([x], pt.erfc(x), [VALUE.astype("float16")])
    assert op_types(program) == ["Cast", "Erfc_float32_in_blocks", "Cast"]


@pytest.mark.parametrize("dtype", ["int8", "uint64", "bool"])
def test_integers_are_computed_in_the_float_of_the_result(dtype):
    x = pt.vector("x", dtype=dtype)
    program = compare_onnx_and_py([x], pt.erfc(x), [np.array([0, 1, 1], dtype)])
    assert op_types(program)[0] == "Cast"


def test_a_function_may_call_another_from_within_a_third():
    x = pt.vector("x")
    inner = OpFromGraph([x], [pt.arctan2(x, pt.expm1(x))], name="Angle")
    y = pt.vector("y")
    compare_onnx_and_py([y], inner(y) + pt.arctan2(y, y), [np.array([-1.5, 0.5])])


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3)])
def test_functions_serve_empty_and_0_d_arrays(shape):
    x = pt.tensor("x", shape=(None,) * len(shape))
    compare_onnx_and_py([x], [pt.erfc(x), pt.log1p(x)], [np.full(shape, 0.25)])


def test_an_operator_without_a_kernel_becomes_a_function_and_one_with_a_kernel_stays():
    x, y = pt.vector("x"), pt.vector("y", dtype="float32")
    assert op_types(export_onnx([x], pt.erf(x), verify=False)) == ["Erf_float64"]
    assert op_types(export_onnx([y], pt.erf(y), verify=False)) == ["Erf"]


def test_portable_models_have_operators_where_runtimes_have_kernels():
    x = pt.vector("x", dtype="float32")
    outputs = [pt.arctan(x), pt.tan(x), pt.arcsinh(x)]
    program = export_onnx([x], outputs, target="portable", verify=False)
    assert sorted(op_types(program)) == ["Asinh", "Atan", "Tan"]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_product_with_a_logarithm_is_zero_at_zero(dtype):
    x, y = (pt.vector(name, dtype=dtype) for name in "xy")
    numbers = np.array([0.0, 0.5, -2.0, np.inf, np.nan], dtype)
    pairs = [grid.ravel() for grid in np.meshgrid(numbers, numbers)]
    compare_onnx_and_py([x, y], [pt.special.xlogy(x, y), pt.special.xlog1py(x, y)], pairs)


def test_functions_of_users_are_not_standard():
    class Erfc(ps.UnaryScalarOp):
        def impl(self, x):
            return 1 - x

    @define(Erfc)
    def erfc(x):
        return 1 - x

    x = pt.vector("x")
    erfc_of_user = Elemwise(Erfc(ps.upgrade_to_float))
    for function, domain in [(erfc_of_user, "pytensor"), (pt.erfc, "pytensor.standard")]:
        program = export_onnx([x], function(x), verify=False)
        assert {d for d, *_ in program.model.functions} == {domain}
