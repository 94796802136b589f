"""Division, remainder and power: NumPy's results for every operand, and a process that survives."""

import numpy as np
import pytensor.tensor as pt
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from pytensor.scalar import basic as ps
from pytensor.tensor.elemwise import Elemwise

from pytensor_onnx import export_onnx
from tests.conftest import compare_onnx_and_py, op_types
from tests.dispatch.values import FLOATS, INTEGERS, SIGNED, UNSIGNED, elements, special_values
from tests.properties import holds_for


def divided(x, y):
    return [x // y, x % y]


@pytest.mark.parametrize("dtype", [*INTEGERS, "bool"])
def test_every_pair_of_integers_divides(dtype):
    """Zero divisors and the smallest number divided by -1 are among the pairs."""
    x = pt.tensor("x", dtype=dtype, shape=(None, 1))
    y = pt.tensor("y", dtype=dtype, shape=(1, None))
    values = special_values(dtype)
    compare_onnx_and_py([x, y], divided(x, y), [values[:, None], values[None]])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_every_integer_divides_by_a_constant(dtype):
    limits = np.iinfo(dtype)
    divisors = {d for d in (0, -1, 1, 2, -3, 7, limits.min, limits.max) if d >= limits.min}
    x = pt.vector("x", dtype=dtype)
    results = [r for d in divisors for r in divided(x, pt.constant(np.array(d, dtype)))]
    compare_onnx_and_py([x], results, [special_values(dtype)])


@pytest.mark.parametrize("dtype", UNSIGNED)
def test_numbers_that_a_cast_made_negative_round_down(dtype):
    x = pt.vector("x", dtype=dtype)
    signed = x.astype(dtype[1:])
    results = [*divided(signed, np.array(7, dtype[1:])), *divided(signed + 1, 3)]
    compare_onnx_and_py([x], results, [special_values(dtype)])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_an_array_of_constant_divisors_may_hold_zeros(dtype):
    divisors = np.resize(special_values(dtype), 5)
    x = pt.vector("x", dtype=dtype)
    compare_onnx_and_py([x], divided(x, pt.constant(divisors)), [np.full(5, 7, dtype)])


@pytest.mark.parametrize("dtype", SIGNED)
def test_the_smallest_number_divided_by_minus_one_wraps_around(dtype):
    smallest = np.iinfo(dtype).min
    x, y = pt.vector("x", dtype=dtype), pt.vector("y", dtype=dtype)
    program = export_onnx([x, y], divided(x, y), verify=False)
    quotient, remainder = program(np.array([smallest], dtype), np.array([-1], dtype))
    assert (quotient[0], remainder[0]) == (smallest, 0)


@pytest.mark.parametrize("dtype", FLOATS)
def test_every_pair_of_floats_divides(dtype):
    x = pt.tensor("x", dtype=dtype, shape=(None, 1))
    y = pt.tensor("y", dtype=dtype, shape=(1, None))
    values = special_values(dtype)
    compare_onnx_and_py([x, y], divided(x, y), [values[:, None], values[None]], signed_zeros=True)


@pytest.mark.parametrize("divisor", [-1.0, 0.1, 0.0, -0.0, np.inf, -np.inf, np.nan])
def test_every_float_divides_by_a_constant(divisor):
    x = pt.vector("x")
    y = pt.constant(np.array(divisor))
    compare_onnx_and_py([x], divided(x, y), [special_values("float64")], signed_zeros=True)


@pytest.mark.parametrize("dtype", UNSIGNED)
def test_unsigned_division_by_a_constant_is_one_node(dtype):
    x = pt.vector("x", dtype=dtype)
    y = pt.constant(np.array(3, dtype))
    for result, operator in zip(divided(x, y), ["Div", "Mod"], strict=True):
        assert op_types(export_onnx([x], result, target="standard", verify=False)) == [operator]


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (2, 3)])
def test_division_and_power_take_any_shape(shape):
    x = pt.tensor("x", dtype="int64", shape=(None,) * len(shape))
    value = np.full(shape, -7)
    compare_onnx_and_py([x], [*divided(x, x - 5), x ** abs(x)], [value])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_powers_are_exact_and_wrap_around(dtype):
    """Python's integers are the reference, reduced to the range of the dtype."""
    bases = special_values(dtype)
    exponents = np.array([0, 1, 2, 3, 5, 31, 39, 63, 100], dtype)
    x = pt.tensor("x", dtype=dtype, shape=(None, 1))
    y = pt.tensor("y", dtype=dtype, shape=(1, None))
    found = export_onnx([x, y], x**y, verify=False)(bases[:, None], exponents[None])
    bits = 8 * np.dtype(dtype).itemsize
    wrapped = [[pow(int(b), int(e), 2**bits) for e in exponents] for b in bases]
    expected = np.array(wrapped, dtype="uint64").astype(f"uint{bits}").view(dtype)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.each_value
@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 7, 64])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64"])
def test_constant_powers_are_exact_and_wrap_around(dtype, exponent):
    x = pt.vector("x", dtype=dtype)
    y = pt.constant(np.array(exponent, dtype))
    compare_onnx_and_py([x], x**y, [special_values(dtype)])


@pytest.mark.parametrize("dtype", SIGNED)
def test_negative_powers_are_rounded_to_zero(dtype):
    """NumPy refuses them; only 1 and -1 have a reciprocal that is an integer."""
    bases, exponents = np.array([-3, -1, 0, 1, 2], dtype), np.array([-1, -2, -7], dtype)
    x = pt.tensor("x", dtype=dtype, shape=(None, 1))
    y = pt.tensor("y", dtype=dtype, shape=(1, None))
    found = export_onnx([x, y], x**y, verify=False)(bases[:, None], exponents[None])
    np.testing.assert_array_equal(found, [[0] * 3, [-1, 1, -1], [0] * 3, [1] * 3, [0] * 3])


def pairs(dtype: str) -> st.SearchStrategy:
    operand = hnp.arrays(dtype, 40, elements=elements(dtype))
    return st.tuples(operand, operand)


@pytest.mark.slow
@holds_for(xy=st.sampled_from(INTEGERS).flatmap(pairs))
def test_integer_ops_agree_on_any_values(xy):
    x, y = (pt.vector(name, dtype=v.dtype) for name, v in zip("xy", xy, strict=True))
    results = [*divided(x, y), x + y, x - y, x * y, x & y, x | y, x ^ y, ~x, pt.sign(x)]
    seven = pt.constant(np.array(7, x.dtype))
    results += [pt.maximum(x, y), pt.minimum(x, y), pt.abs(x), pt.clip(x, y, seven), pt.sqr(x)]
    compare_onnx_and_py([x, y], results, xy)


@pytest.mark.slow
@holds_for(xy=st.sampled_from(FLOATS).flatmap(pairs))
def test_float_division_agrees_on_any_values(xy):
    x, y = (pt.vector(name, dtype=v.dtype) for name, v in zip("xy", xy, strict=True))
    compare_onnx_and_py([x, y], divided(x, y), xy, signed_zeros=True)


@pytest.mark.slow
@holds_for(xy=st.sampled_from(INTEGERS).flatmap(pairs))
def test_powers_agree_on_any_values(xy):
    base, exponent = xy[0], xy[1] & xy[1].dtype.type(127)
    x, y = (pt.vector(name, dtype=base.dtype) for name in "xy")
    compare_onnx_and_py([x, y], Elemwise(ps.pow)(x, y), [base, exponent])
