"""Each function is compiled once, which takes seconds, and then called for many cases."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tests.nn import convolution as numpy_conv
from tests.nn.test_pool import pooled, windows_of

numba = pytest.importorskip("numba", reason="the functions are compiled by Numba")

pytestmark = pytest.mark.compiled


@pytest.fixture(scope="module")
def loops():
    from numba_networks import loops as numba_loops

    @numba.njit
    def convolutions(x, w, y, filter_sizes, geometry, groups, more):
        known = numba_loops.correlate(x, w, filter_sizes, geometry, groups)
        back = numba_loops.transpose(y, w, filter_sizes, geometry, groups, more)
        return known, back, numba_loops.filter_gradient(x, y, filter_sizes, geometry, groups)

    @numba.njit
    def pools(x, gradient, window, geometry, ceil_mode):
        y = numba_loops.max_pool(x, window, geometry, ceil_mode)
        scaled = y * gradient
        return y, numba_loops.max_pool_gradient(x, scaled, window, geometry)

    return convolutions, pools


def threes(least, most):
    return st.tuples(*[st.integers(least, most)] * 3)


@st.composite
def geometries(draw, filter_sizes, padding):
    """Draw sizes of images, and strides, dilations and pads by which a window fits."""
    strides, dilations = draw(threes(1, 3)), draw(threes(1, 2))
    starts, ends = draw(threes(0, padding)), draw(threes(0, padding))
    least = [
        max(1, (k - 1) * d + 1 - sum(p))
        for k, d, *p in zip(filter_sizes, dilations, starts, ends, strict=True)
    ]
    sizes = tuple(n + more for n, more in zip(least, draw(threes(0, 3)), strict=True))
    return sizes, (strides, dilations, starts, ends)


@given(data=st.data())
@settings(max_examples=60)
def test_convolutions_are_those_of_their_definition(loops, data):
    filter_sizes, groups = data.draw(threes(1, 3)), data.draw(st.integers(1, 2))
    sizes, (strides, dilations, starts, ends) = data.draw(geometries(filter_sizes, 2))
    n, c, o = data.draw(threes(1, 2))
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, c * groups, *sizes))
    w = rng.normal(size=(o * groups, c, *filter_sizes))
    pads = list(zip(starts, ends, strict=True))
    options = pads, strides, dilations, groups
    expected = numpy_conv.correlate(x, w, *options)
    y = rng.normal(size=expected.shape)
    geometry = strides, dilations, starts, ends
    more = tuple(
        (size + sum(pad) - (k - 1) * d - 1) % s
        for size, pad, k, d, s in zip(sizes, pads, filter_sizes, dilations, strides, strict=True)
    )
    found = loops[0](x, w, y, filter_sizes, geometry, groups, more)
    expected = [
        expected,
        numpy_conv.image_gradient(y, w, sizes, *options),
        numpy_conv.filter_gradient(x, y, filter_sizes, *options),
    ]
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


@given(data=st.data())
@settings(max_examples=60)
def test_pools_are_those_of_their_definition(loops, data):
    window, ceil_mode = data.draw(threes(1, 3)), data.draw(st.booleans())
    padding = min(window) - 1
    sizes, (strides, dilations, starts, ends) = data.draw(geometries(window, padding))
    sizes = tuple(map(max, sizes, dilations))
    # Few values, so that windows hold some of them more than once.
    x = np.random.default_rng(0).integers(0, 3, (2, 2, *sizes)).astype(float)
    options = {
        "window": window,
        "stride": strides,
        "padding": list(zip(starts, ends, strict=True)),
        "dilation": dilations,
        "ceil_mode": ceil_mode,
    }
    largest = pooled(x, lambda values, _: values.max(axis=-1), **options)
    gradient = np.random.default_rng(1).normal(size=largest.shape)
    y, back = loops[1](x, gradient, window, (strides, dilations, starts, ends), ceil_mode)
    np.testing.assert_array_equal(y, largest)
    expected = np.zeros_like(x)
    for position, cells, _ in windows_of(sizes, **options):
        for image in np.ndindex(2, 2):
            first = max(cells, key=lambda cell, image=image: x[(*image, *cell)])
            expected[(*image, *first)] += (largest * gradient)[(*image, *position)]
    np.testing.assert_allclose(back, expected, rtol=1e-12, atol=1e-12)


def test_nan_is_the_largest_and_has_no_gradient(loops):
    x = np.array([1.0, np.nan, 3.0, -np.inf, -np.inf, -np.inf]).reshape(1, 1, 1, 1, 6)
    geometry = (1, 1, 2), (1, 1, 1), (0, 0, 0), (0, 0, 0)
    y, back = loops[1](x, np.ones((1, 1, 1, 1, 3)), (1, 1, 2), geometry, False)
    np.testing.assert_array_equal(y.ravel(), [np.nan, 3.0, -np.inf])
    np.testing.assert_array_equal(back.ravel(), [0, 0, 3, 0, -np.inf, 0])


@pytest.mark.parametrize(
    ("x", "w", "filter_sizes", "groups", "message"),
    [
        ((1, 2, 1, 1, 3), (1, 3, 1, 1, 2), (0, 0, 0), 1, "fit its groups"),
        ((1, 2, 1, 1, 3), (3, 1, 1, 1, 2), (0, 0, 0), 2, "fit its groups"),
        ((1, 2, 1, 1, 3), (1, 2, 1, 1, 4), (0, 0, 0), 1, "smaller than its windows"),
        ((1, 2, 1, 1, 3), (1, 2, 1, 1, 2), (1, 1, 3), 1, "keep their sizes"),
    ],
)
def test_what_does_not_fit_is_refused(loops, x, w, filter_sizes, groups, message):
    ones, zeros = (1, 1, 1), (0, 0, 0)
    geometry = ones, ones, zeros, zeros
    with pytest.raises(ValueError, match=message):
        loops[0](np.zeros(x), np.zeros(w), np.zeros(x), filter_sizes, geometry, groups, zeros)
