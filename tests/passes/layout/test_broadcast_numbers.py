"""Numbers beside arrays whose last axes have size one get axes, and results keep their bits."""

import numpy as np
import pytensor.tensor as pt
import pytest
from pytensor import scan

from pytensor_onnx import export_onnx
from tests.conftest import compare_onnx_and_py, op_types

SPECIAL = [np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-30, -3.5, 2.0]


def special_values(shape, dtype="float32"):
    return np.resize(np.array(SPECIAL, dtype), shape)


def shapes_of_constants(program):
    return sorted(list(v.shape) for v in program.model.graph.initializers.values())


@pytest.mark.parametrize(
    ("shape", "rank"),
    [((32, 16, 1, 1), 3), ((None, None, 1, 1), 3), ((512, 1), 2), ((None, 1), 2), ((1, 512, 1), 2)],
)
def test_a_constant_number_gets_the_axes_as_it_is_stored(shape, rank):
    x = pt.tensor("x", shape=shape, dtype="float32")
    program = export_onnx([x], x * np.float32(0.3))
    assert op_types(program) == ["Mul"]
    assert shapes_of_constants(program) == [[1] * rank]


@pytest.mark.parametrize("shape", [(32, 16), (4, 4, 1), (1, 1, 1), (None,), (None, 1, None)])
def test_a_number_stays_beside_other_and_small_arrays(shape):
    x = pt.tensor("x", shape=shape, dtype="float32")
    assert shapes_of_constants(export_onnx([x], x * np.float32(0.3))) == [[]]


def test_a_computed_number_gets_the_axes_once():
    x, rate = pt.tensor("x", shape=(None, None, 1, 1)), pt.scalar("rate")
    results = [x * rate, pt.maximum(x, rate), pt.switch(pt.isnan(x), rate, x)]
    values = [special_values((16, 24, 1, 1), "float64"), np.array(0.7)]
    program = compare_onnx_and_py([x, rate], results, values, rtol=0, signed_zeros=True)
    assert op_types(program).count("Reshape") == 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [(16, 24), (0, 24), (1, 1), (1, 300)])
def test_results_keep_their_bits(size, dtype):
    x = pt.tensor("x", shape=(None, None, 1, 1), dtype=dtype)
    flat = pt.matrix("flat", dtype=dtype)

    def results(x):
        number = np.array(0.3, dtype)
        return [x + number, number - x, x / number, x * 3, pt.clip(x, 0.1, 2), x < number]

    value = special_values((*size, 1, 1), dtype)
    program = compare_onnx_and_py([x], results(x), [value], signed_zeros=True)
    plain = export_onnx([flat], results(flat))(value[:, :, 0, 0])
    for found, expected in zip(program(value), plain, strict=True):
        np.testing.assert_array_equal(found[:, :, 0, 0], expected)
        assert np.array_equal(np.signbit(found[:, :, 0, 0]), np.signbit(expected))


@pytest.mark.slow
def test_a_number_gets_axes_in_a_loop():
    x = pt.tensor("x", shape=(None, 1))
    step = pt.scalar("step")

    states = scan(lambda y, s: pt.sin(y) * s + 0.5, [], x, [step], n_steps=3, return_updates=False)
    value = special_values((300, 1), "float64")
    compare_onnx_and_py([x, step], states[-1], [value, np.array(0.4)])
