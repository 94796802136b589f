"""Exported graphs give the same at every level of the runtime's optimization.

The graphs are near the patterns in `tests/targets/test_optimizer.py` that change results.
"""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx import export_onnx, nn
from tests.conftest import called, compare_onnx_and_py, op_types
from tests.levels import assert_same_at_every_level

RNG = np.random.default_rng(0)
PADDING = ((0, 0), (0, 0), (1, 1), (1, 1))


def padded(image):
    return pt.pad(image, PADDING)


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("assume_finite", [False, True])
@pytest.mark.parametrize("in_function", [False, True])
def test_zeros_around_an_image_are_values_of_a_pool(in_function, assume_finite, dtype):
    image = pt.tensor("image", dtype=dtype, shape=(None, 2, 6, 6))
    value = (RNG.normal(size=(3, 2, 6, 6)) - 6).astype(dtype)
    pooled = nn.max_pool(called(padded, image) if in_function else padded(image), 3)
    program = compare_onnx_and_py([image], pooled, [value], assume_finite=assume_finite)
    assert program(value)[0].max() == 0
    assert_same_at_every_level(program.proto, {"image": value}, program(value))
    assert op_types(program).count("Max") == assume_finite


def deviation(x):
    return x - x.mean(axis=-1, keepdims=True)


def normalized(x, square, epsilon, sign=1):
    d = sign * deviation(x)
    return d / pt.sqrt(square(d).mean(axis=-1, keepdims=True) + epsilon) * 2.0 + 0.5


FLOAT_GRAPHS = {
    "fourth power": lambda x, e: normalized(x, lambda d: d**4, 0.1),
    "power of two": lambda x, e: normalized(x, lambda d: 2.0**d, 0.1),
    "variable added": lambda x, e: normalized(x, pt.sqr, e),
    "vector added": lambda x, e: normalized(x, pt.sqr, np.linspace(0.1, 1, 8).astype(x.dtype)),
    "mean less values": lambda x, e: normalized(x, pt.sqr, 0.1, sign=-1),
    "root mean square": lambda x, e: x / pt.sqrt((x**2).mean(axis=-1, keepdims=True) + 0.1) * 3.0,
    "root of mean squares and a variable": lambda x, e: (
        x / pt.sqrt((x**2).mean(axis=-1, keepdims=True) + e) * 3.0
    ),
    "nearly the root of two": lambda x, e: 0.5 * x * (1 + pt.erf(x / 1.414226)),
    "nearly one": lambda x, e: 0.5 * x * (1.000009 + pt.erf(x / np.sqrt(2))),
    "nearly the root of two over pi": lambda x, e: (
        0.5 * x * (1 + pt.tanh(0.797892 * x * (1 + 0.044715 * x * x)))
    ),
    "power in nearly that": lambda x, e: 0.5 * x * (1 + pt.tanh(0.797892 * (x + 0.044715 * x**3))),
    "reciprocal": lambda x, e: np.ones((1, 1, 1), x.dtype) / (1 + abs(x)) * x,
    "reciprocal near one": lambda x, e: (1 + 1e-9) / pt.exp(x) * x,
}


@pytest.mark.parametrize(
    ("dtype", "in_function"), [("float32", False), ("float32", True), ("float64", False)]
)
@pytest.mark.slow
def test_graphs_near_wrong_patterns_of_floats_keep_their_results(dtype, in_function):
    x, e = pt.matrix("x", dtype=dtype), pt.scalar("e", dtype=dtype)
    feeds = {"x": RNG.normal(size=(5, 8)).astype(dtype), "e": np.array(0.3, dtype)}
    results = [
        called(graph, abs(x) + i, e) if in_function else graph(abs(x) + i, e)
        for i, graph in enumerate(FLOAT_GRAPHS.values())
    ]
    results = [-result.astype(dtype) for result in results]
    rtol = 3e-6 if dtype == "float32" else 1e-13
    # Deviations from a mean are small differences, in another order of terms than PyTensor's.
    program = compare_onnx_and_py([x, e], results, list(feeds.values()), rtol=rtol, atol=4 * rtol)
    assert_same_at_every_level(program.proto, feeds, program(*feeds.values()), rtol=rtol)


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
def test_whole_quotients_of_one_are_factors(dtype):
    i, j = (pt.vector(name, dtype=dtype) for name in "ij")
    feeds = {"i": np.array([1, 3, 2, 1], dtype), "j": np.array([10, 35, 15, 5], dtype)}
    quotients = [(1 // i) * j, j * (1 // (i + 1)), called(lambda i, j: (1 // i) * j, i, j)]
    program = compare_onnx_and_py([i, j], quotients, list(feeds.values()))
    assert_same_at_every_level(program.proto, feeds, program(*feeds.values()))


def test_defaults_of_inputs_are_no_constants():
    total = pytensor.shared(1.5, name="total")
    x = pt.vector("x")
    program = export_onnx([x], x * pt.sqrt(total), updates={total: total + 1}, verify=False)
    assert sorted(op_types(program)) == ["Add", "Mul", "Sqrt"]
