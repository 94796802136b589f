"""Singular values and vectors of matrices of any shape and any batch."""

import numpy as np
import pytensor.tensor as pt
import pytest

from pytensor_onnx import export_onnx
from tests.conftest import compare_onnx_and_py
from tests.functions.linalg.matrices import LARGE, generator
from tests.functions.linalg.spectra import SPECTRA, assert_errors, residual, skewness, wide


@pytest.fixture(scope="module")
def decompose(compiled):
    x = pt.matrix("x")
    return compiled([x], pt.linalg.svd(x))


@pytest.fixture(scope="module")
def decompose_batch(compiled):
    x = pt.tensor3("x")
    return compiled([x], pt.linalg.svd(x, full_matrices=False))


@pytest.mark.few(12)
@pytest.mark.parametrize("name", SPECTRA)
def test_backward_errors_are_lapacks(name, decompose):
    for n in (1, 2, 3, 10, 33, 64):
        assert_decomposed(decompose, SPECTRA[name](n))


@pytest.mark.parametrize("n", LARGE)
def test_backward_errors_of_large_matrices_are_lapacks(n, decompose):
    assert_decomposed(decompose, SPECTRA["ill-conditioned"](n))


def test_backward_errors_of_other_shapes_are_lapacks(decompose):
    for shape in ((100, 7), (7, 100), (1, 5), (5, 1), (40, 41)):
        assert_decomposed(decompose, generator(2).normal(size=shape))
        assert_decomposed(decompose, np.ones(shape))


@pytest.mark.slow
def test_a_batch_of_reduced_factors_is_decomposed(decompose_batch):
    for shape in ((4, 6, 3), (4, 3, 6)):
        a = generator(3).normal(size=shape)
        a[0] = 0.0
        a[1] = np.outer(a[1, :, 0], a[1, 0])
        u, s, vt = decompose_batch(a)
        assert u.shape == (4, shape[1], 3)
        assert vt.shape == (4, 3, shape[2])
        for i in range(4):
            assert_decomposed(lambda _, found=(u[i], s[i], vt[i]): found, a[i])
    for shape in ((0, 2, 2), (2, 0, 3), (2, 3, 0)):
        k = min(shape[1:])
        assert [x.shape for x in decompose_batch(np.zeros(shape))] == [
            (*shape[:2], k),
            (shape[0], k),
            (shape[0], k, shape[2]),
        ]


def test_matrices_without_elements_have_full_factors(decompose):
    for shape in ((0, 0), (0, 2), (3, 0)):
        u, s, vt = decompose(np.zeros(shape))
        assert s.shape == (0,)
        np.testing.assert_array_equal(np.abs(u), np.eye(shape[0]))
        np.testing.assert_array_equal(np.abs(vt), np.eye(shape[1]))


def assert_decomposed(decompose, a):
    found = decompose(a)
    expected = np.linalg.svd(a, full_matrices=found[0].shape[1] != len(found[1]))
    errors = []
    for u, s, vt in (found, expected):
        assert u.dtype == s.dtype == vt.dtype == a.dtype
        assert (np.diff(s) <= 0).all()
        assert (s >= 0).all()
        left, values, right = wide(u, s, vt)
        product = (left[:, : len(s)] * values) @ right[: len(s)]
        errors.append([residual(product, a), skewness(left), skewness(right.T)])
    assert_errors(*errors, a)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_non_finite_elements_give_nan_everywhere(value, decompose, decompose_batch):
    a = np.ones((3, 4))
    a[2, 1] = value
    assert all(np.isnan(x).all() for x in decompose(a))
    bad, good = zip(*decompose_batch(np.stack([a, np.eye(3, 4)])), strict=True)
    assert all(np.isnan(x).all() for x in bad)
    np.testing.assert_allclose(good[1], 1, rtol=1e-15)


@pytest.mark.slow
def test_gradients_are_pytensors():
    x = pt.matrix("x", shape=(5, 3))
    u, s, vt = pt.linalg.svd(x, full_matrices=False)
    # Signs of singular vectors are not determined, those of products of two are.
    weights = generator(1).normal(size=(5, 3))
    value = (s**2).sum() + ((u * [1, 2, 3]) @ vt * weights).sum()
    a = generator(3).normal(size=(5, 3))
    compare_onnx_and_py([x], pt.grad(value, x), [a], rtol=1e-9, atol=1e-10)


@pytest.mark.slow
def test_norms_and_condition_numbers_are_pytensors():
    x = pt.matrix("x")
    results = [pt.linalg.norm(x, ord=ord) for ord in (2, -2, "nuc")]
    compare_onnx_and_py([x], results, [generator(2).normal(size=(4, 6))], rtol=1e-12)


@pytest.mark.slow
def test_vectors_are_verified_with_their_signs():
    x = pt.matrix("x")
    for factors in (
        pt.linalg.svd(x, full_matrices=False),
        pt.linalg.svd(x @ x.T + pt.eye(x.shape[0])),
    ):
        assert export_onnx([x], factors).verification.verdict in ("equal", "within rounding")


def test_elements_of_any_magnitude_leave_vectors_orthonormal(decompose_batch):
    rng = generator(8)
    for n in (2, 5):
        a = rng.normal(size=(300, n, n)) * 10.0 ** rng.uniform(-300, 150, size=(300, n, n))
        u, s, vt = decompose_batch(a)
        for vectors in (u, vt.swapaxes(1, 2)):
            products = vectors.swapaxes(1, 2) @ vectors
            assert np.abs(products - np.eye(n)).max() <= 1e-14
        scale = np.abs(a).max(axis=(1, 2), keepdims=True)
        differences = (u * s[:, None] @ vt - a) / scale
        assert np.abs(differences).max() <= 1e-14
