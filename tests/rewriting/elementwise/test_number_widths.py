"""Float32 constants decide no float64 result."""

import math

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis.extra.numpy import arrays
from hypothesis.strategies import floats
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx import export_onnx
from tests.conftest import compare_onnx_and_py, op_types

LOG = math.log(1.5)
FORMULAS = {
    "function of a number": (lambda x, c: pt.log(1.5) * x, LOG),
    "function of an integer": (lambda x, c: pt.gammaln(7) * x, math.lgamma(7)),
    "function of a sum": (lambda x, c: pt.log(2 * pt.constant(7)) * x, math.log(14)),
    "quotient": (lambda x, c: x * (pt.constant(1.5) / 7), 1.5 / 7),
    "cast": (lambda x, c: pt.cast(pt.log(1.5), "float64") * x, LOG),
    "sum": (lambda x, c: pt.sum(pt.log(pt.alloc(pt.constant(1.5), 3))) * x, 3 * LOG),
    "condition": (lambda x, c: pt.switch(c, pt.log(1.5), 0.5) * x, LOG),
    "quotient of a condition": (lambda x, c: pt.switch(c, 1.5, 7) / 3.5 / 7 * x, 1.5 / 3.5 / 7),
    "fill": (lambda x, c: pt.fill(x, pt.log(1.5)) * x, LOG),
    "quotient of an array of one number": (
        lambda x, c: (-pt.stack([x, x]) / pt.sqrt(2.0))[0],
        -1 / math.sqrt(2),
    ),
    "number beside an array": (
        lambda x, c: (x * np.array([2.0, 3.0]) / pt.sqrt(2.0) * pt.log(1.5))[1],
        3 / math.sqrt(2) * LOG,
    ),
    "join": (lambda x, c: pt.stack([pt.log(1.5), x])[0], LOG),
    "input": (lambda x, c: pt.log(pt.cast(x, "float32")) + 0 * x, 0.0),
    "cast to float32": (
        lambda x, c: pt.cast(pt.constant(0.1), "float32") * x,
        float(np.float32(0.1)),
    ),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_numbers_are_computed_in_the_precision_of_the_result(name: str) -> None:
    formula, expected = FORMULAS[name]
    x, c = pt.dscalar("x"), pt.bscalar("c").astype("bool")
    inputs = [x, *c.owner.inputs]
    y = formula(x, c)
    function = pytensor.function(inputs, y, mode="ONNX", on_unused_input="ignore")
    np.testing.assert_allclose(function(1.0, 1), expected, rtol=1e-15)
    program = export_onnx(inputs, y)
    np.testing.assert_allclose(program(1.0, 1), [expected], rtol=1e-15)
    assert "ill-conditioned" not in str(program.verification)


def test_numbers_folded_before_are_computed_again() -> None:
    x = pt.dscalar("x")
    folded = pt.log(pytensor.graph.rewriting.utils.rewrite_graph(1 / pt.constant(1.5)))
    assert folded.owner.inputs[0].owner is None
    y = pytensor.function([x], folded * x, mode="ONNX")(1.0)
    np.testing.assert_allclose(y, -LOG, rtol=1e-15)


def test_a_float32_result_stays_in_float32() -> None:
    x = pt.fscalar("x")
    function = pytensor.function([x], pt.log(1.5) * x, mode="ONNX")
    assert function(1.0).dtype == "float32"
    assert {v.type.dtype for v in function.maker.fgraph.variables} == {"float32"}


def shared_number(x: TensorVariable) -> TensorVariable:
    return pt.log(pytensor.shared(np.float32(1.5))) * x


def test_a_float32_shared_value_is_computed_in_float32() -> None:
    x = pt.dscalar("x")
    y = pytensor.function([x], shared_number(x), mode="ONNX")(1.0)
    np.testing.assert_allclose(y, float(np.log(np.float32(1.5))), rtol=1e-7)
    assert y != LOG


SPECIAL = np.array([0, -0.0, 1e-45, -1e-38, 3, 1e38, -3.4e38, np.inf, np.nan], "float32")
OPERATIONS = [pt.add, pt.sub, pt.mul, pt.true_div]


def rounded(operation, x, y):
    return operation(x.astype("float64"), y.astype("float64")).astype("float32")


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_one_operation_is_done_in_float32(operation):
    x, y = pt.fvectors("x", "y")
    values = [a.ravel() for a in np.meshgrid(SPECIAL, SPECIAL)]
    program = compare_onnx_and_py([x, y], rounded(operation, x, y), values, rtol=0)
    assert len(op_types(program)) == 1


@given(*[arrays("float32", 8, elements=floats(width=32))] * 2)
def test_numpy_rounds_once_and_twice_to_the_same_bits(x, y):
    with np.errstate(all="ignore"):
        for operation in (np.add, np.subtract, np.multiply, np.divide):
            twice = operation(x.astype("float64"), y.astype("float64")).astype("float32")
            np.testing.assert_array_equal(operation(x, y), twice)


def test_numbers_that_float32_does_not_have_stay():
    x = pt.fvector("x")
    half, third = pt.constant(np.array([0.5])), pt.constant(np.array([1 / 3]))
    program = compare_onnx_and_py([x], (half * x).astype("float32"), [SPECIAL], rtol=0)
    assert op_types(program) == ["Mul"]
    huge = pt.constant(np.array([1e300]))
    for number in (third, huge):
        program = compare_onnx_and_py([x], (number * x).astype("float32"), [SPECIAL], rtol=0)
        assert op_types(program) == ["Cast", "Mul", "Cast"]


def test_quotients_of_numbers_that_would_become_products_stay():
    x = pt.fvector("x")
    quotient = rounded(pt.true_div, x, pt.constant(np.float32(255)))
    values = [np.arange(256, dtype="float32")]
    program = compare_onnx_and_py([x], quotient, values, rtol=0)
    np.testing.assert_array_equal(program(*values)[0], values[0] / np.float32(255))


def test_results_that_are_used_in_float64_stay():
    x, y = pt.fvectors("x", "y")
    wide = x.astype("float64") * y.astype("float64")
    values = [np.array([1.1, 3e30], "float32")] * 2
    program = compare_onnx_and_py([x, y], [wide, wide.astype("float32")], values, rtol=0)
    assert op_types(program).count("Mul") == 1


@pytest.mark.each_value
@pytest.mark.parametrize("exponent", [2, 3, 4])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "bool"])
def test_powers_wider_than_their_base_do_not_wrap_around(dtype, exponent):
    x = pt.vector("x", dtype=dtype)
    power = x**exponent
    assert power.dtype != dtype
    largest = 1 if dtype == "bool" else np.iinfo(dtype).max
    compare_onnx_and_py([x], power, [np.array([0, 1, largest], dtype)])


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int64", "float32"])
@pytest.mark.parametrize("exponent", [2.0, 0.5, np.float64(2), np.float64(3)])
def test_float_powers_are_computed_in_the_dtype_of_the_result(dtype, exponent):
    x = pt.vector("x", dtype=dtype)
    compare_onnx_and_py([x], x**exponent, [np.array([0.1, 7, 100], dtype)])


@pytest.mark.parametrize("one", [np.int64(1), np.float64(1)])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "int32", "float32"])
def test_one_over_a_number_has_the_precision_of_the_quotient(dtype, one):
    x = pt.vector("x", dtype=dtype)
    quotient = pt.constant(np.array([one])) / x
    compare_onnx_and_py([x], quotient, [np.array([3, 7, 0, 1], dtype)], rtol=1e-15)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "uint32", "int8"])
@pytest.mark.parametrize("zero", [np.float64(0), np.int64(0)])
def test_a_negative_number_has_the_dtype_of_the_difference(zero, dtype):
    x = pt.vector("x", dtype=dtype)
    values = np.array([0, 1, 7, 100], dtype)
    zero = pt.constant(zero)
    results = [zero - x, pt.sum(zero - x), pt.exp(zero - x), -(x + zero)]
    compare_onnx_and_py([x], results, [values])


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "float32"])
def test_logs_near_one_have_the_precision_of_the_sum(dtype):
    x, one = pt.vector("x", dtype=dtype), pt.constant(np.float64(1))
    values = np.array([0, 1, 3, 100], dtype)
    compare_onnx_and_py([x], [pt.log(one + x), pt.log(one - x / 128)], [values])


def test_an_operand_of_a_sum_is_cast_once():
    x = pt.vector("x", dtype="uint8")
    program = compare_onnx_and_py([x], np.float64(0.5) - x, [np.array([1, 255], "uint8")])
    assert sorted(op_types(program)) == ["Cast", "Sub"]


@pytest.mark.parametrize("function", [pt.reciprocal, pt.sqrt, pt.log, pt.exp])
def test_a_function_of_integers_gets_the_wrapped_value(function):
    x = pt.vector("x", dtype="int8")
    compare_onnx_and_py([x], [function(x * 2), function(x**2)], [np.array([3, 16, 100], "int8")])
