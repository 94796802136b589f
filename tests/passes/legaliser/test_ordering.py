"""TopK and Unique next to NaN, in every variant, whatever emits them."""

import numpy as np
import pytest

from tests.passes.conftest import bare

NAN, INF = np.nan, np.inf
X = np.array([[2, NAN, INF, -1, NAN, 2], [0.0, -0.0, 5, NAN, -INF, 1], [1, 2, 3, 4, 5, 6]])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("k", [0, 1, 3])
def test_the_smallest_elements_come_in_stable_order_with_nan_last(dtype, axis, k):
    x = X.astype(dtype)
    model = bare(
        lambda build, x: build.TopK(x, build.ints([k]), axis=axis, largest=0, outputs=2), x
    )
    model.legalise()
    values, positions = model.run()
    expected = np.take(np.argsort(x, axis=axis, kind="stable"), range(k), axis=axis)
    np.testing.assert_array_equal(positions, expected)
    np.testing.assert_array_equal(values, np.take_along_axis(x, expected, axis))


@pytest.mark.parametrize("k", [1, 4, 6])
def test_the_largest_elements_come_with_nan_first(k):
    x = X[0]
    model = bare(lambda build, x: build.TopK(x, build.ints([k]), axis=0, outputs=2), x)
    model.legalise()
    values, positions = model.run()
    np.testing.assert_array_equal(positions, [1, 4, 2, 0, 5, 3][:k])
    np.testing.assert_array_equal(values, x[positions])


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "uint64", "float64"])
@pytest.mark.parametrize("shape", [(3, 0), (0, 3), (0, 0), (5, 2)])
def test_unique_slices_may_be_empty(axis, dtype, shape):
    x = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
    model = bare(lambda build, x: build.Unique(x, axis=axis, outputs=4), x, shapes=[("n", "m")])
    model.legalise()
    expected = np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    for a, b in zip(model.run(), expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_guards_are_left_out_where_all_elements_are_said_to_be_finite():
    model = bare(lambda build, x: build.TopK(x, build.ints([2]), outputs=2), X)
    assert model.legalise(assume_finite=True) == []
    assert model.operators() == ["TopK"]
