"""Convolutions in every mode agree with SciPy on drawn signals and images."""

from functools import cache

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import strategies as st
from pytensor.tensor.signal import convolve1d, convolve2d
from scipy.signal import convolve

from tests.properties import holds_for

MODES = ("full", "valid", "same")
FLOATS, INTEGERS = ("float64", "float32"), ("int64", "uint8", "int16")
HALVES = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0]
WHOLE = [0, 1, 2, 7, 100]
COMPLEX = {"complex128": "float64", "complex64": "float32"}


@st.composite
def pairs(draw, dtypes, rank, largest, special=False):
    """Draw a dtype and two arrays of it, whose products and their sums are exact."""
    dtype = draw(st.sampled_from(dtypes))
    return dtype, [draw(arrays(dtype, rank, largest, special)) for _ in range(2)]


@st.composite
def arrays(draw, dtype, rank, largest, special):
    shape = [draw(st.integers(1, largest)) for _ in range(rank)]
    if dtype in COMPLEX:
        shape.append(2)
    numbers = HALVES if dtype.startswith(("float", "complex")) else WHOLE
    # The numbers repeat, so that long signals are drawn at the cost of short ones.
    chosen = draw(st.lists(st.sampled_from(numbers), min_size=1, max_size=7))
    value = np.resize(np.array(chosen, COMPLEX.get(dtype, dtype)), shape)
    if special:
        places = draw(st.lists(st.integers(0, value.size - 1), max_size=2))
        value.flat[places] = draw(st.sampled_from([np.inf, -np.inf, np.nan]))
    return value.view(dtype)[..., 0] if dtype in COMPLEX else value


@cache
def signals(dtype):
    x, y = pt.vector("x", dtype=dtype), pt.vector("y", dtype=dtype)
    return pytensor.function([x, y], [convolve1d(x, y, mode=mode) for mode in MODES], mode="ONNX")


@cache
def images(dtype):
    x, y = pt.matrix("x", dtype=dtype), pt.matrix("y", dtype=dtype)
    results = [convolve2d(x, y, mode=mode, method="direct") for mode in ("full", "same")]
    return pytensor.function([x, y], results, mode="ONNX")


def centre(full, size):
    """Return the part of the size of the first array, which mode `same` returns."""
    start = (len(full) - size) // 2
    return full[start : start + size]


@pytest.mark.slow
@holds_for(drawn=pairs((*FLOATS, *INTEGERS), 1, 60))
def test_signals(drawn):
    dtype, (x, y) = drawn
    full, valid, same = signals(dtype)(x, y)
    np.testing.assert_array_equal(full, np.convolve(x, y), strict=True)
    np.testing.assert_array_equal(valid, np.convolve(x, y, "valid"), strict=True)
    np.testing.assert_array_equal(same, centre(np.convolve(x, y), len(x)), strict=True)


@pytest.mark.slow
@holds_for(drawn=pairs(sorted(COMPLEX), 1, 40))
@pytest.mark.slow
def test_complex_signals(drawn):
    dtype, (x, y) = drawn
    full, valid, _ = signals(dtype)(x, y)
    np.testing.assert_array_equal(full, np.convolve(x, y), strict=True)
    np.testing.assert_array_equal(valid, np.convolve(x, y, "valid"), strict=True)


@holds_for(drawn=pairs(FLOATS, 1, 60, special=True))
def test_infinities_and_nan_reach_the_results_that_use_them(drawn):
    dtype, (x, y) = drawn
    full, *_ = signals(dtype)(x, y)
    count = len(x) + len(y) - 1
    terms = np.zeros((len(y), count), dtype)
    used = np.zeros((len(y), count), bool)
    with np.errstate(all="ignore"):
        for i, number in enumerate(y):
            terms[i, i : i + len(x)] = number * x
            used[i, i : i + len(x)] = True
        expected = terms.sum(axis=0, where=used)
    np.testing.assert_array_equal(full, expected)


@pytest.mark.slow
@holds_for(drawn=pairs((*FLOATS, "int64"), 2, 9))
def test_images(drawn):
    dtype, (x, y) = drawn
    full, same = images(dtype)(x, y)
    expected = convolve(x, y, method="direct")
    np.testing.assert_array_equal(full, expected, strict=True)
    rows = centre(expected, x.shape[0])
    # PyTensor pads float32 by float64 for this mode.
    np.testing.assert_array_equal(same, centre(rows.T, x.shape[1]).T)


@cache
def gradients(dtype):
    x, y, w = (pt.vector(name, dtype=dtype) for name in "xyw")
    cost = (convolve1d(x, y, mode="full") * w).sum()
    return pytensor.function([x, y, w], pt.grad(cost, [x, y]), mode="ONNX")


@pytest.mark.slow
@holds_for(drawn=pairs(FLOATS, 1, 40))
def test_gradients_are_correlations_with_the_weights(drawn):
    dtype, (x, y) = drawn
    w = np.resize(np.array([1, -0.5, 2], dtype), len(x) + len(y) - 1)
    of_x, of_y = gradients(dtype)(x, y, w)
    np.testing.assert_array_equal(of_x, np.correlate(w, y, "valid"), strict=True)
    np.testing.assert_array_equal(of_y, np.correlate(w, x, "valid"), strict=True)
