"""Sums of a known number of elements that are multiplied by its reciprocal are means."""

import numpy as np
import pytensor.tensor as pt
import pytest

from pytensor_onnx import nn
from tests.conftest import compare_onnx_and_py

AXES = (0, 2, 3)
ATOL = 1e-7
"""Rounding of means of normal numbers, which cancel, in float32."""


def operators(program):
    return [node.op_type for node in program.model.graph]


def images(dtype, shape=(2, 3, 4, 5)):
    x = pt.tensor("x", dtype=dtype, shape=shape)
    return x, np.random.default_rng(0).normal(size=shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (2, 1, 1, 3), (3, 0, 2, 2)])
def test_a_mean_is_one_operator(dtype, shape):
    x, value = images(dtype, shape)
    program = compare_onnx_and_py([x], x.mean(axis=AXES), [value], rtol=3e-7, atol=ATOL)
    assert operators(program)[-1] == "ReduceMean"
    assert not {"ReduceSum", "Mul", "Div"} & set(operators(program))


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, 3e38, 1e-45])
def test_sums_that_overflow_underflow_or_are_not_finite(number):
    x, value = images("float32", (2, 2, 3, 3))
    value[0, 0] = number
    total = x.sum(axis=AXES)
    outputs = [total / 18, pt.join(0, total * 2, total)]
    compare_onnx_and_py([x], outputs, [value], rtol=1e-6, atol=1e-43)


def test_sums_that_are_joined_are_means_times_numbers():
    x, value = images("float32")
    y = pt.tensor("y", dtype="float32", shape=(3,))
    total = x.sum(axis=AXES)
    outputs = [total / 40, pt.join(0, y, total)]
    arrays = [value, np.array([1, np.nan, np.inf], "float32")]
    program = compare_onnx_and_py([x, y], outputs, arrays, rtol=2e-6, atol=40 * ATOL)
    assert "ReduceSum" not in operators(program)
    assert operators(program).count("Mul") == 1


def test_means_that_are_joined_stay_means():
    x, value = images("float64")
    mean, total = x.mean(axis=AXES), x.sum(axis=AXES)
    outputs = [pt.join(0, mean, 2 * mean), pt.join(0, total, mean, total)]
    compare_onnx_and_py([x], outputs, [value], rtol=1e-12)


@pytest.mark.parametrize("shape", [(0, 3, 2, 2), (2, 3, 0, 2)])
def test_means_of_nothing_are_nan(shape):
    x, value = images("float64", shape)
    compare_onnx_and_py([x], x.mean(axis=AXES), [value])


def test_other_means_stay():
    """Means of unknown sizes, over the last axes, or with sums that are used elsewhere."""
    x, value = images("float64", (2, 3, 4, 4))
    z = pt.tensor4("z", dtype="float64")
    total = x.sum(axis=AXES)
    outputs = [z.mean(axis=AXES), x.mean(axis=(2, 3)), total, total / 32, x.sum(axis=(0, 2)) / 9]
    program = compare_onnx_and_py([x, z], outputs, [value, value])
    assert "ReduceMean" not in operators(program)


def test_gradients_of_batch_norm_have_no_factors_of_means():
    x, value = images("float32", (2, 3, 8, 8))
    gamma, beta = (pt.tensor(name, dtype="float32", shape=(3,)) for name in ("gamma", "beta"))
    y, *_ = nn.batch_norm_train(x, gamma, beta, np.zeros(3, "float32"), np.ones(3, "float32"))
    gradients = pt.grad((y**3).sum(), [x, gamma, beta])
    outputs = [gradients[0], pt.join(0, *gradients[1:])]
    arrays = [value, np.array([1, 2, -1], "float32"), np.zeros(3, "float32")]
    program = compare_onnx_and_py([x, gamma, beta], outputs, arrays, rtol=1e-4, atol=1e-4)
    assert operators(program).count("ReduceMean") >= 2
