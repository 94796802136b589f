"""Fourier transforms of all sizes, against NumPy's in more digits."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx import export_onnx
from pytensor_onnx.ops.signal import FourierTransform
from tests.conftest import op_types

# By the operator, one matrix, two and three stages, and a convolution.
SIZES = [
    1,
    2,
    3,
    7,
    64,
    128,
    1024,
    30,
    97,
    360,
    1000,
    2310,
    4096,
    30_000,
    131,
    1009,
    2 * 1009,
    9999,
]
TOLERANCES = {"float64": 2e-15, "float32": 2e-6}


def pairs_of(numbers, dtype="float64"):
    return np.stack([numbers.real, numbers.imag], axis=-1).astype(dtype)


def error(pairs, expected):
    found = pairs[..., 0] + 1j * pairs[..., 1]
    return np.linalg.norm(found - expected) / np.linalg.norm(expected)


def references(value, inverse):
    numbers = value[..., 0].astype("longdouble") + 1j * value[..., 1]
    return np.fft.ifft(numbers, norm="forward") if inverse else np.fft.fft(numbers)


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n", SIZES)
def test_known_sizes(n, dtype):
    pairs = pt.tensor("pairs", dtype=dtype, shape=(n, 2))
    results = [FourierTransform(n, inverse)(pairs) for inverse in (False, True)]
    value = np.random.default_rng(n).normal(size=(n, 2)).astype(dtype)
    found = pytensor.function([pairs], results, mode="ONNX")(value)
    for inverse, result in zip((False, True), found, strict=True):
        assert result.dtype == dtype
        assert error(result, references(value, inverse)) < TOLERANCES[dtype]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.few(1)
def test_sizes_that_only_a_run_knows(dtype):
    pairs = pt.tensor("pairs", dtype=dtype, shape=(None, None, 2))
    results = [FourierTransform(None, inverse)(pairs) for inverse in (False, True)]
    f = pytensor.function([pairs], results, mode="ONNX")
    for n in SIZES:
        value = np.random.default_rng(n).normal(size=(2, n, 2)).astype(dtype)
        for inverse, result in zip((False, True), f(value), strict=True):
            assert error(result, references(value, inverse)) < TOLERANCES[dtype]


@pytest.mark.parametrize("n", [6, 100, 131, 256])
@pytest.mark.parametrize("shape", [(3,), (2, 3), (0, 2)])
def test_batches(n, shape):
    pairs = pt.tensor("pairs", dtype="float64", shape=(*[None] * len(shape), n, 2))
    value = np.random.default_rng(n).normal(size=(*shape, n, 2))
    found = pytensor.function([pairs], FourierTransform(n)(pairs), mode="ONNX")(value)
    expected = pairs_of(np.fft.fft(value[..., 0] + 1j * value[..., 1]))
    np.testing.assert_allclose(found, expected, atol=1e-12, strict=True)


def test_single_frequencies_are_told_apart():
    n = 1000
    pairs = pt.tensor("pairs", dtype="float64", shape=(n, 2))
    f = pytensor.function([pairs], FourierTransform(n)(pairs), mode="ONNX")
    for k in (0, 1, 499, 500, 999):
        waves = np.exp(2j * np.pi * ((k * np.arange(n)) % n) / n)
        found = f(pairs_of(waves))
        expected = np.zeros((n, 2))
        expected[k, 0] = n
        np.testing.assert_allclose(found, expected, atol=1e-11)


def test_a_power_of_two_is_one_operator():
    pairs = pt.tensor("pairs", dtype="float64", shape=(None, 1024, 2))
    program = export_onnx([pairs], FourierTransform(1024)(pairs), opset_version=18)
    names = [node.op_type for f in program.model.functions.values() for node in f]
    assert "DFT" in (*op_types(program), *names)
    assert "equal to PyTensor" in str(program.verification)
