"""Fourier transforms of all sizes and norms agree with NumPy on drawn arrays."""

from functools import cache

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import strategies as st
from pytensor.tensor.fft import irfft, irfft_op, rfft, rfft_op
from pytensor.tensor.fourier import fft

from tests.properties import holds_for

# Of the operator, of one stage and of several, and of a convolution.
SIZES = st.integers(1, 12) | st.sampled_from([30, 64, 90, 128, 67, 131, 134])
NORMS = {None: "backward", "ortho": "ortho", "no_norm": "backward"}
TOLERANCES = {"float64": 2e-14, "float32": 1e-5}


def as_numbers(pairs):
    return pairs[..., 0] + 1j * pairs[..., 1]


def close(found, expected, dtype):
    assert found.shape == expected.shape
    size = np.linalg.norm(expected) if expected.size else 1.0
    assert np.linalg.norm(found - expected) <= TOLERANCES[dtype] * size


@st.composite
def signals(draw, axes=1):
    """Draw a batch of real arrays, and a size for each of its axes."""
    dtype = draw(st.sampled_from(sorted(TOLERANCES)))
    sizes = SIZES if axes == 1 else st.integers(1, 6)
    shape = [draw(st.integers(0, 3)), *(draw(sizes) for _ in range(axes))]
    seed = draw(st.integers(0, 2**32 - 1))
    scale = 10.0 ** draw(st.integers(-5, 5))
    value = scale * np.random.default_rng(seed).normal(size=shape)
    return dtype, value.astype(dtype), [draw(sizes) for _ in range(axes)]


@cache
def real_transforms(dtype):
    x = pt.matrix("x", dtype=dtype)
    results = [rfft(x, norm=norm) for norm in NORMS]
    results += [irfft(rfft(x), is_odd=is_odd) for is_odd in (False, True)]
    return pytensor.function([x], results, mode="ONNX")


@pytest.mark.slow
@holds_for(drawn=signals())
@pytest.mark.slow
def test_real_transforms_there_and_back(drawn):
    dtype, x, _ = drawn
    if x.shape[1] == 1:
        # The even size of one number is zero, which is an error.
        x = np.repeat(x, 2, axis=1)
    *spectra, even, odd = real_transforms(dtype)(x)
    wide, own = x.astype("float64"), x.shape[1]
    for found, norm in zip(spectra, NORMS.values(), strict=True):
        close(as_numbers(found), np.fft.rfft(wide, norm=norm), dtype)
    spectrum = np.fft.rfft(wide)
    close(even, np.fft.irfft(spectrum, 2 * (own // 2)), dtype)
    close(odd, np.fft.irfft(spectrum, 2 * (own // 2) + 1), dtype)


@cache
def plane_transforms(dtype):
    x, m, n = pt.tensor3("x", dtype=dtype), pt.lscalar("m"), pt.lscalar("n")
    spectrum = rfft_op(x, pt.stack([m, n]))
    back = irfft_op(spectrum, pt.stack([m, n]))
    return pytensor.function([x, m, n], [spectrum, back], mode="ONNX")


@pytest.mark.slow
@holds_for(drawn=signals(axes=2))
def test_transforms_of_planes_of_other_sizes(drawn):
    dtype, x, sizes = drawn
    spectrum, back = plane_transforms(dtype)(x, *sizes)
    expected = np.fft.rfft2(x.astype("float64"), sizes)
    close(as_numbers(spectrum), expected, dtype)
    # The Op of PyTensor does not divide by the size.
    close(back, np.fft.irfft2(expected, sizes, norm="forward"), dtype)


@cache
def complex_transforms(dtype):
    z, n = pt.matrix("z", dtype=dtype), pt.lscalar("n")
    return pytensor.function([z, n], [fft(z, None, 1), fft(z, n, 1), fft(z.T, n, 0)], mode="ONNX")


@holds_for(drawn=signals())
@pytest.mark.slow
def test_complex_transforms(drawn):
    dtype, x, (n,) = drawn
    z = (x + 1j * x[:, ::-1] ** 2).astype({"float64": "complex128", "float32": "complex64"}[dtype])
    whole, cut, turned = complex_transforms(z.dtype.name)(z, n)
    wide = z.astype("complex128")
    close(whole, np.fft.fft(wide), dtype)
    close(cut, np.fft.fft(wide, n), dtype)
    close(turned, np.fft.fft(wide.T, n, axis=0), dtype)


@cache
def gradients(dtype):
    x, w = pt.matrix("x", dtype=dtype), pt.tensor3("w", dtype=dtype)
    return pytensor.function([x, w], pt.grad((w * rfft(x)).sum(), x), mode="ONNX")


@pytest.mark.slow
@holds_for(drawn=signals())
def test_gradients_are_transforms_of_the_weights(drawn):
    dtype, x, _ = drawn
    count, n = x.shape
    rng = np.random.default_rng(n)
    weights = rng.normal(size=(count, n // 2 + 1, 2)).astype(dtype)
    angles = 2 * np.pi / n * (np.outer(np.arange(n // 2 + 1), np.arange(n)) % n)
    expected = weights[..., 0] @ np.cos(angles) - weights[..., 1] @ np.sin(angles)
    close(gradients(dtype)(x, weights), expected, dtype)


@holds_for(drawn=signals(), number=st.sampled_from([np.inf, -np.inf, np.nan]))
def test_numbers_that_are_not_finite_reach_all_results_of_their_row(drawn, number):
    dtype, x, _ = drawn
    if len(x) < 2:
        x = np.ones((2, 5), dtype)
    x[0, -1] = number
    z = x.astype({"float64": "complex128", "float32": "complex64"}[dtype])
    whole, *_ = complex_transforms(z.dtype.name)(z, 3)
    assert not np.isfinite(whole[0]).any()
    close(whole[1:], np.fft.fft(z[1:].astype("complex128")), dtype)
