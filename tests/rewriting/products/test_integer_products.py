"""Integers wrap around, and no rewrite takes them through float64."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import strategies as st

from tests.conftest import compare_onnx_and_py, op_types
from tests.properties import holds_for

MULTIPLIER, INCREMENT = 6364136223846793005, 2**60 + 1
VALUES = {"int64": [1, -7, 2**62 + 3, -(2**63)], "uint64": [1, 7, 2**63 + 5, 2**64 - 1]}
FORMS = {
    "product": lambda x, y, a, b: x * a,
    "negated": lambda x, y, a, b: -(x * a),
    "generator": lambda x, y, a, b: ((x * a + b) * a + b) * a + b,
    "product of products": lambda x, y, a, b: (x * a) * (y * b),
    "product of sums": lambda x, y, a, b: (x + a) * b,
    "product of a sum of products": lambda x, y, a, b: (x * a + y) * b,
    "sum of sums": lambda x, y, a, b: (x + a) - (b - y),
    "common factor": lambda x, y, a, b: x * a - y * a,
    "common operand": lambda x, y, a, b: a * x - b * x + x,
    "quotient": lambda x, y, a, b: (x * a) // b,
    "remainder": lambda x, y, a, b: (x * a) % b + x // a // b,
    "true quotient": lambda x, y, a, b: (x * a) / b,
    "sum": lambda x, y, a, b: (x * a).sum() + y.sum() * b,
    "product of all": lambda x, y, a, b: (x * a).prod(),
    "mean": lambda x, y, a, b: (x * a).mean(),
    "dot": lambda x, y, a, b: (x * a).dot(y * b),
    "square": lambda x, y, a, b: pt.sqr(x * a) + x**2 * b,
    "absolute": lambda x, y, a, b: abs(x * a) + pt.sign(y * b),
    "chosen": lambda x, y, a, b: pt.switch(x * a > b, x * a, y + b),
    "sum of equal numbers": lambda x, y, a, b: (x * 0 + a).sum() + pt.full_like(y, b).prod(),
}


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", VALUES)
@pytest.mark.parametrize("form", FORMS)
def test_constants_above_2_to_the_53_are_exact(form, dtype):
    x, y = (pt.vector(name, dtype=dtype) for name in "xy")
    a, b = (pt.constant(np.array(c, dtype)) for c in (MULTIPLIER, INCREMENT))
    values = np.array(VALUES[dtype], dtype)
    compare_onnx_and_py([x, y], FORMS[form](x, y, a, b), [values, values[::-1].copy()])


@pytest.mark.parametrize("dtype", VALUES)
def test_every_row_of_constants_is_exact(dtype):
    x = pt.vector("x", dtype=dtype)
    factors = pt.constant(np.array(VALUES[dtype], dtype))
    compare_onnx_and_py([x], x * factors * 2 + factors, [np.array(VALUES[dtype], dtype)])


@pytest.mark.parametrize("dtype", VALUES)
def test_a_linear_congruential_generator_in_a_loop(dtype):
    seed, n = pt.scalar("seed", dtype=dtype), pt.lscalar("n")
    a, b = (pt.constant(np.array(c, dtype)) for c in (MULTIPLIER, INCREMENT))
    states = pytensor.scan(
        lambda s: s * a + b, outputs_info=[seed], n_steps=n, return_updates=False
    )
    compare_onnx_and_py([seed, n], states, [np.array(1, dtype), 9])


def test_small_constants_are_still_multiplied():
    x = pt.lvector("x")
    program = compare_onnx_and_py([x], x * 3 * 5 * 7, [np.array([2**62, -1, 5])])
    assert op_types(program) == ["Mul"]


@pytest.mark.slow
@holds_for(
    dtype=st.sampled_from(["int64", "uint64", "int32", "uint32", "int16"]),
    steps=st.lists(
        st.tuples(st.sampled_from("*+-r"), st.integers(0, 2**64 - 1)), min_size=1, max_size=5
    ),
)
def test_any_chain_of_constants_wraps_around(dtype, steps):
    bits = np.iinfo(dtype).bits
    x = pt.vector("x", dtype=dtype)
    result, modulus = x, 2**bits
    values = [0, 1, 3, int(np.iinfo(dtype).max), int(np.iinfo(dtype).min)]
    expected = list(values)
    for kind, number in steps:
        c = np.array(number % modulus, "uint64").astype(dtype)
        k = int(c)
        if kind == "*":
            result, expected = result * c, [e * k for e in expected]
        elif kind == "+":
            result, expected = c + result, [e + k for e in expected]
        elif kind == "-":
            result, expected = result - c, [e - k for e in expected]
        else:
            result, expected = c - result, [k - e for e in expected]
    found = pytensor.function([x], result, mode="ONNX")(np.array(values, dtype))
    wrapped = np.array([e % modulus for e in expected], "uint64").astype(dtype)
    np.testing.assert_array_equal(found, wrapped)
