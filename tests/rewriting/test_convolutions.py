"""Convolutions of signals and images in every mode and dtype, with gradients."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.tensor.signal import convolve1d, convolve2d

from tests.conftest import compare_onnx_and_py

MODES = ("full", "valid", "same")


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "uint16", "bool"])
def test_signals_of_all_sizes(dtype):
    x, y = pt.vector("x", dtype=dtype), pt.vector("y", dtype=dtype)
    f = pytensor.function([x, y], [convolve1d(x, y, mode=mode) for mode in MODES[:2]], mode="ONNX")
    for n, k in ((1, 1), (5, 1), (9, 4), (4, 9), (5, 5)):
        a, b = (5 * normal(n)).astype(dtype), (5 * normal(k, seed=1)).astype(dtype)
        for found, mode in zip(f(a, b), MODES, strict=False):
            expected = np.convolve(a, b, mode)
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5, strict=True)


def test_modes_batches_and_mixed_dtypes():
    x, y, z = pt.matrix("x"), pt.vector("y", dtype="float32"), pt.vector("z", shape=(3,))
    results = [convolve1d(x, y, mode=mode) for mode in MODES] + [convolve1d(z, x, mode="full")]
    values = [normal(2, 7), normal(4).astype("float32"), normal(3)]
    compare_onnx_and_py([x, y, z], results, values, atol=1e-14)


def test_images():
    x, y = pt.tensor3("x"), pt.matrix("y", shape=(3, 2))
    results = [convolve2d(x, y, mode=mode, method="direct") for mode in MODES]
    compare_onnx_and_py([x, y], results, [normal(2, 6, 7), normal(3, 2)], atol=1e-13)


def test_gradients():
    x, y = pt.vector("x"), pt.vector("y")
    costs = [(convolve1d(x, y, mode=mode) ** 2).sum() for mode in ("full", "valid")]
    results = [gradient for cost in costs for gradient in pt.grad(cost, [x, y])]
    compare_onnx_and_py([x, y], results, [normal(9), normal(4)], atol=1e-12)


def test_infinities_reach_the_results_that_use_them():
    x, y = pt.vector("x"), pt.vector("y")
    values = [np.array([1.0, np.inf, 2.0, 3.0]), np.array([1.0, np.nan, 1.0])]
    compare_onnx_and_py([x, y], convolve1d(x, y, mode="full"), values)


def test_empty_signals_are_errors():
    x, y = pt.vector("x"), pt.vector("y")
    f = pytensor.function([x, y], convolve1d(x, y, mode="full"), mode="ONNX")
    for sizes in ((0, 2), (2, 0), (0, 0)):
        with pytest.raises(ValueError, match="an array to convolve is empty"):
            f(*map(np.ones, sizes))
