"""Eigenvalues and eigenvectors of symmetric matrices of any size and any batch."""

import numpy as np
import pytensor.tensor as pt
import pytest
import scipy.linalg

from pytensor_onnx import export_onnx
from tests.conftest import compare_onnx_and_py
from tests.functions.linalg.matrices import LARGE, generator, symmetric, with_eigenvalues
from tests.functions.linalg.spectra import SPECTRA, assert_errors, residual, skewness, wide


@pytest.fixture(scope="module")
def decompose(compiled):
    x = pt.matrix("x")
    return compiled([x], pt.linalg.eigh(x))


@pytest.fixture(scope="module")
def decompose_batch(compiled):
    x = pt.tensor3("x")
    return compiled([x], pt.linalg.eigh(x))


@pytest.mark.slow
def test_matrices_of_no_and_one_element_are_decomposed(decompose, decompose_batch):
    assert [x.shape for x in decompose(np.zeros((0, 0)))] == [(0,), (0, 0)]
    for a in (0.0, -3.0, 1e-310, 1e308):
        w, v = decompose(np.array([[a]]))
        assert w == a
        assert abs(v) == 1
    for shape in ((0, 3, 3), (2, 0, 0)):
        w, v = decompose_batch(np.zeros(shape))
        assert w.shape == shape[:2]
        assert v.shape == shape


@pytest.mark.parametrize("name", SPECTRA)
def test_backward_errors_are_lapacks(name, decompose):
    for n in (2, 3, 10, 33, 64):
        assert_decomposed(decompose, symmetric(SPECTRA[name](n)))


@pytest.mark.parametrize("n", LARGE)
def test_backward_errors_of_large_matrices_are_lapacks(n, decompose):
    assert_decomposed(decompose, with_eigenvalues(np.logspace(0, -12, n)))


def test_errors_of_a_batch_are_lapacks(decompose_batch):
    a = np.stack([symmetric(SPECTRA[name](10)) for name in SPECTRA])
    w, v = decompose_batch(a)
    for values, vectors, matrix in zip(w, v, a, strict=True):
        assert_decomposed(lambda _, found=(values, vectors): found, matrix)


def assert_decomposed(decompose, a):
    errors = []
    for w, v in (decompose(a), scipy.linalg.eigh(a)):
        assert w.dtype == v.dtype == a.dtype
        assert (np.diff(w) >= 0).all()
        exact_w, exact_v = wide(w, v)
        product = a @ exact_v - exact_v * exact_w
        errors.append([residual(product + a, a), skewness(exact_v)])
    assert_errors(*errors, a)


def test_exact_eigenvalues_are_exact(decompose):
    w, _ = decompose(np.diag([2.0, -1.0, 1e-20, 3.0]))
    np.testing.assert_allclose(w, [-1.0, 1e-20, 2.0, 3.0], rtol=1e-15)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_non_finite_elements_give_nan_everywhere(value, decompose, decompose_batch):
    a = np.eye(4)
    a[3, 1] = value
    assert all(np.isnan(x).all() for x in decompose(a))
    w, v = decompose_batch(np.stack([a, np.eye(4)]))
    assert np.isnan(w[0]).all()
    assert np.isnan(v[0]).all()
    np.testing.assert_allclose(w[1], 1, rtol=1e-15)


def test_matrices_that_are_not_square_are_refused(decompose):
    with pytest.raises(ValueError, match="expected square matrix"):
        decompose(np.ones((2, 3)))


@pytest.mark.slow
def test_gradients_are_pytensors():
    x = pt.matrix("x")
    w, v = pt.linalg.eigh(x)
    # The signs of eigenvectors are not determined, those of their squares are.
    weights = np.arange(16.0).reshape(4, 4)
    value = (w**2 * weights[0]).sum() + (v**2 * weights).sum()
    a = symmetric(generator(4).normal(size=(4, 4)))
    gradients = [pt.grad(value, x), pt.grad(pt.linalg.eigvalsh(x)[0], x)]
    compare_onnx_and_py([x], gradients, [a], rtol=1e-10, atol=1e-11)


@pytest.mark.slow
def test_vectors_are_verified_with_their_signs():
    x, y = pt.matrix("x"), pt.tensor3("y", dtype="float32")
    w, v = pt.linalg.eigh(x)
    program = export_onnx([x, y], [v, w, v @ pt.exp(v), pt.linalg.eigh(y)[1]])
    assert program.verification.verdict in ("equal", "within rounding")
    found = program(np.diag([3.0, 2.0]), np.zeros((0, 1, 1), "float32"))[0]
    # All weights of elements are positive.
    np.testing.assert_allclose(found, [[0, 1], [1, 0]], atol=1e-15)


@pytest.mark.slow
@pytest.mark.parametrize("lower", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_pairs_of_matrices_have_pytensors_values(lower):
    a, b = pt.matrix("a"), pt.matrix("b")
    w, v = pt.linalg.eigh(a, b, lower=lower)
    values = pt.linalg.eigvalsh(a, b, lower=lower)
    gradients = pt.grad((w**2).sum() + (v**2).sum(), [a, b])
    rng = generator(7)
    root = rng.normal(size=(4, 4))
    matrices = [rng.normal(size=(4, 4)), root @ root.T + np.eye(4)]
    results = [w, v**2, values, *gradients]
    program = compare_onnx_and_py([a, b], results, matrices, rtol=1e-9, atol=1e-10)
    assert np.isnan(program(matrices[0], -np.eye(4))[0]).all()
