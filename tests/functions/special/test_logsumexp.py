"""Softmax and sums of exponentials, whose rows have large spreads, against mpmath."""

import mpmath as mp
import numpy as np
import pytensor.tensor as pt
import pytest
from pytensor.tensor.special import log_softmax, logsumexp, softmax

from pytensor_onnx import compile_onnx
from tests.functions.special.accuracy import DTYPES

inf, nan = np.inf, np.nan


def rows(dtype: str) -> np.ndarray:
    """Draw rows of all spreads, some with equal and some with infinite elements."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 7)) * np.exp(rng.uniform(-7, 9, (120, 1)))
    x[:20] = x[:20, :1]
    x[20:60][rng.uniform(size=(40, 7)) < 0.4] = -inf
    x[20:60, 0] = rng.normal(size=40)
    x[60:80] += 1e5
    return x.astype(dtype)


def exact(row: np.ndarray) -> tuple[mp.mpf, list[mp.mpf], list[mp.mpf]]:
    """Return the logarithm of the sum, and the results of softmax and of its logarithm."""
    x = [mp.mpf(float(v)) for v in row]
    total = max(x) + mp.log(mp.fsum(mp.exp(v - max(x)) for v in x))
    return total, [mp.exp(v - total) for v in x], [v - total for v in x]


@pytest.mark.parametrize("dtype", DTYPES)
def test_errors_are_a_few_units_of_the_exponents(dtype):
    x = pt.matrix("x", dtype=dtype)
    points, unit = rows(dtype), float(np.finfo(dtype).eps)
    results = [logsumexp(x, axis=1), softmax(x, axis=1), log_softmax(x, axis=1)]
    total, shares, logarithms = compile_onnx([x], results, verify=False)(points)
    with mp.workprec(200):
        found = [exact(row) for row in points]
        below = points.max(axis=1, keepdims=True).astype("float64") - points
        below[np.isinf(below)] = 0
        assert _largest(total, [t for t, _, _ in found], np.maximum(np.abs(total), 1)) < 1.5 * unit
        expected = [value for _, _, row in found for value in row]
        assert _largest(logarithms, expected, np.maximum(below, 1)) < 3 * unit
        expected = [share for _, row, _ in found for share in row]
        tiny = float(np.finfo(dtype).tiny)
        if dtype == "float32":  # MLAS computes zeros for subnormal shares on some processors
            normal = np.reshape([float(share) >= tiny for share in expected], shares.shape)
            assert (shares[~normal] <= tiny).all()
            expected = [share for share in expected if share >= tiny]
            shares, below = shares[normal], below[normal]
        assert _largest(shares, expected, shares * (1 + below / 4) + tiny) < 4 * unit


def _largest(values: np.ndarray, expected: list[mp.mpf], sizes: np.ndarray) -> float:
    """Return the largest error relative to a size; infinite values are equal."""
    triples = zip(values.ravel(), expected, sizes.ravel(), strict=True)
    return max(
        0.0 if mp.isinf(e) and v == float(e) else float(abs(mp.mpf(float(v)) - e) / float(s))
        for v, e, s in triples
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_infinities_and_nan(dtype):
    x = pt.matrix("x", dtype=dtype)
    points = np.array(
        [[-inf, -inf], [inf, 1], [inf, -inf], [inf, inf], [nan, 1], [inf, nan]], dtype
    )
    total, gradient, shares, logarithms = compile_onnx(
        [x],
        [
            logsumexp(x, axis=1),
            pt.grad(logsumexp(x, axis=1).sum(), x),
            softmax(x, axis=1),
            log_softmax(x, axis=1),
        ],
        verify=False,
    )(points)
    np.testing.assert_array_equal(total, np.array([-inf, inf, inf, inf, nan, nan], dtype))
    for found in (gradient, shares, logarithms):
        assert np.isnan(found[[0, 3, 4, 5]]).all()
        assert np.isnan(found[[1, 2], 0]).all()
