import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.tensor.math import Sum

from pytensor_onnx import export_onnx
from tests.conftest import compare_onnx_and_py, op_types

LONG = 200_000
ACCURATE = 1e-6


def tenths(shape, dtype="float32"):
    """Return numbers whose rounding errors have one sign: the sum of all drifts away."""
    return np.full(shape, 0.1, dtype)


@pytest.mark.parametrize("target", ["onnxruntime", "web", "standard"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_long_sums_and_means_are_accurate_on_every_target(target, dtype):
    x = pt.vector("x", dtype=dtype)
    results = [x.mean(), x.sum() / LONG, pt.sqrt((x**2).mean()), pt.exp(x).mean()]
    rtol = ACCURATE if dtype == "float32" else 1e-3
    compare_onnx_and_py([x], results, [tenths(LONG, dtype)], rtol=rtol, target=target)


@pytest.mark.parametrize("shape", [(LONG,), (1025, 64), (64, 1025), (40, 40, 40), (8, 1, 30_000)])
@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
def test_sums_along_every_axis_are_accurate(shape, static):
    value = tenths(shape)
    x = pt.tensor("x", dtype="float32", shape=shape if static else (None,) * len(shape))
    axes = [None, *range(len(shape)), *((0, i) for i in range(1, len(shape)))]
    # A sum that stays one operator has at most 1024 terms.
    compare_onnx_and_py([x], [x.sum(axis=a) for a in axes], [value], rtol=1e-5)
    longest = int(np.argmax(shape))
    results = [x.sum(), x.mean(axis=longest, keepdims=True), x.var(), x.std(axis=longest)]
    value = value + np.linspace(0, 1, value.size, dtype="float32").reshape(shape)
    compare_onnx_and_py([x], results, [value], rtol=ACCURATE)


def test_gradients_that_sum_over_a_batch_are_accurate():
    x, b = pt.matrix("x", dtype="float32"), pt.vector("b", dtype="float32")
    gradient = pytensor.grad(pt.tanh(x + b).sum(), b)
    compare_onnx_and_py([x, b], gradient, [tenths((LONG, 2)), tenths(2)], rtol=ACCURATE)


@pytest.mark.parametrize(
    ("shape", "axis", "operators"),
    [
        ((None, 768), 1, ["ReduceSum"]),
        ((None, 64, 7, 7), (2, 3), ["ReduceSum"]),
        ((None, 64, 80, 80), (2, 3), ["ReduceSum", "ReduceSum"]),
        ((None, 10), 0, ["Cast", "ReduceSum", "Cast"]),
        ((None, None), None, ["Cast", "ReduceSum", "Cast"]),
        ((None, 64, 56, 56), (0, 2, 3), ["ReduceSum", "ReduceSum", "Cast", "ReduceSum", "Cast"]),
        ((2000,), None, ["Cast", "ReduceSum", "Cast"]),
        ((None, 1), None, ["Cast", "ReduceSum", "Cast"]),
    ],
)
def test_short_sums_are_one_operator(shape, axis, operators):
    x = pt.tensor("x", dtype="float32", shape=shape)
    assert op_types(export_onnx([x], x.sum(axis=axis), verify=False)) == operators


def test_kept_axes_cost_no_node():
    x = pt.matrix("x", dtype="float32")
    program = export_onnx([x], x.sum(axis=0, keepdims=True), verify=False)
    assert op_types(program) == ["Cast", "ReduceSum", "Cast"]


def test_a_given_accumulator_dtype_is_used():
    x = pt.matrix("x", dtype="float32")
    program = export_onnx([x], Sum(axis=0, acc_dtype="float32")(x), verify=False)
    assert op_types(program) == ["ReduceSum"]


@pytest.mark.each_value
@pytest.mark.parametrize("shape", [(0, 3, 2), (2, 0, 5), (1, 1, 1)])
@pytest.mark.parametrize("static", [(), (1,), (0, 2)])
def test_sums_of_empty_and_of_non_finite_arrays(shape, static):
    sizes = [s if i in static else None for i, s in enumerate(shape)]
    x = pt.tensor("x", dtype="float32", shape=sizes)
    results = [x.sum(axis=axis) for axis in (None, 0, 1, (0, 2), 2)]
    compare_onnx_and_py([x], results, [np.resize(np.float32([np.inf, np.nan, 1]), shape)])


def test_products_are_accumulated_in_float64():
    x = pt.matrix("x", dtype="float32")
    value = np.array([[1e30, 1e30, 1e-30, 1e-30], [1e-30, 1e-30, 1e30, 1e30]], "float32")
    compare_onnx_and_py([x], [x.prod(axis=1), x.prod()], [value])
    ones = np.full((1, LONG), 1 + 1e-6, "float32")
    compare_onnx_and_py([x], x.prod(axis=1), [ones], rtol=ACCURATE)


def test_means_that_pad_are_accurate():
    x = pt.vector("x", dtype="float32")
    with pytensor.config.change_flags(floatX="float32"):
        padded = pt.pad(x, 1, mode="mean")[[0, -1]]
    compare_onnx_and_py([x], padded, [tenths(LONG)], rtol=ACCURATE)
