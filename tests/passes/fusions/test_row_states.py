"""Vectors of loops become rows where a product and a sum are then one Gemm."""

import numpy as np
import pytensor.tensor as pt
import pytest

from tests.conftest import compare_onnx_and_py
from tests.dispatch.loop_cases import scan
from tests.rewriting.loops.test_products import operators_in_loop


def elman(dtype, step, n_others=0):
    """Return the inputs and the states of a recurrent network with scalars beside its vectors."""
    x, u, h = pt.matrix("x", dtype=dtype), pt.matrix("u", dtype=dtype), pt.vector("h", dtype=dtype)
    a = pt.scalar("a", dtype=dtype)
    return [x, u, h, a], scan(step, [x, x[:, 0]], [h, *[None] * n_others], [u, a])


def values(dtype, length, n_units=3):
    rng = np.random.default_rng(length)
    shapes = [(length, n_units), (n_units, n_units), (n_units,), ()]
    return [rng.normal(size=shape).astype(dtype) for shape in shapes]


def plain(e, first, h, u, a):
    return pt.tanh(h @ u + e) * a + first


@pytest.mark.parametrize(("length", "n_units"), [(0, 3), (1, 3), (6, 3), (4, 1), (3, 0)])
def test_a_product_and_a_sum_are_one_operator(length, n_units):
    inputs, h = elman("float32", plain)
    if n_units == 0:
        inputs[0] = inputs[0].type("x")
        h = scan(
            lambda e, h, u, a: pt.tanh(h @ u + e) * a,
            [inputs[0]],
            [inputs[2]],
            inputs[1:2] + inputs[3:],
        )
    arrays = values("float32", length, n_units)
    program = compare_onnx_and_py(inputs, [h, h[-1:]], arrays, rtol=1e-5)
    assert operators_in_loop(program)[0] == "Gemm"


@pytest.mark.parametrize(("n_units", "operator"), [(3, "Gemm"), (128, "MatMul")])
def test_the_length_of_a_state_tells_the_size_of_its_matrix_in_float64(n_units, operator):
    (x, u), h = (pt.matrix(name, shape=(None, n_units)) for name in "xu"), pt.vector("h")
    states = scan(lambda e, h, u: pt.tanh(h @ u + e), [x], [h], [u])
    e, matrix, first, _ = values("float64", 4, n_units)
    # A small matrix, so that steps do not amplify the rounding of sums in another order.
    program = compare_onnx_and_py([x, u, h], states, [e, matrix / n_units, first])
    assert operator in operators_in_loop(program)


def test_last_states_and_traces_keep_their_shapes():
    inputs, h = elman("float32", plain)
    compare_onnx_and_py(
        inputs, [h[-1], h[:2], h[::-1], h.sum(axis=0)], values("float32", 5), rtol=1e-5
    )


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite(number):
    inputs, h = elman("float32", plain)
    arrays = values("float32", 5)
    arrays[0][2, 1] = number
    compare_onnx_and_py(inputs, h, arrays, rtol=1e-5)


def test_elementwise_operators_accept_rows():
    def step(e, first, h, u, a):
        x = pt.tanh(h @ u + e)
        results = [f(x) for f in (pt.sin, pt.cos, pt.tan, pt.arcsin, pt.arctan, pt.sinh, pt.erf)]
        results += [pt.floor(3 * x), pt.ceil(3 * x), pt.round(3 * x), pt.clip(x, -0.5, a)]
        results += [pt.maximum(x, a), pt.minimum(x, e), pt.sign(x), pt.isinf(1 / x), x**2, a**x]
        results += [pt.switch((x > a) ^ (x > e), x, e), pt.softplus(x), pt.sqrt(abs(x)), -x]
        return x * a + first, *results

    inputs, [h, *others] = elman("float32", step, 21)
    program = compare_onnx_and_py(inputs, [h, *others], values("float32", 5), rtol=1e-4, atol=1e-5)
    assert operators_in_loop(program)[0] == "Gemm"


def sorted_state(e, first, h, u, a):
    return pt.sort(h @ u + e) * a + first


def outer_product(e, first, h, u, a):
    return (h @ u + e) @ pt.outer(h, e) + a + first


@pytest.mark.parametrize("step", [sorted_state, outer_product])
def test_vectors_that_something_needs_as_they_are_stay(step):
    inputs, h = elman("float32", step)
    program = compare_onnx_and_py(inputs, h, values("float32", 4), rtol=1e-4)
    assert "Gemm" not in operators_in_loop(program)
