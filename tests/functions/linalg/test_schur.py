"""Schur forms of matrices of any size and any batch."""

import numpy as np
import pytensor.tensor as pt
import pytest
import scipy.linalg

from tests.conftest import compare_onnx_and_py, sweep_rest
from tests.functions.linalg.matrices import generator
from tests.functions.linalg.nonsymmetric import HARD, NONSYMMETRIC, pairs, turned
from tests.functions.linalg.spectra import assert_errors, residual, skewness, wide


@pytest.fixture(scope="module")
def decompose(compiled):
    x = pt.matrix("x")
    return compiled([x], pt.linalg.schur(x))


@pytest.fixture(scope="module")
def decompose_batch(compiled):
    x = pt.tensor3("x")
    return compiled([x], pt.linalg.schur(x))


def assert_standard(t):
    """Assert that a matrix is quasi-triangular with blocks as LAPACK's ``dlanv2`` makes them."""
    assert not np.tril(t, -2).any()
    (firsts,) = np.nonzero(np.diag(t, -1))
    assert (np.diff(firsts) > 1).all()
    for i in firsts:
        assert t[i, i] == t[i + 1, i + 1]
        assert np.sign(t[i, i + 1]) == -np.sign(t[i + 1, i])


def assert_decomposed(decompose, a):
    errors = []
    for t, z in (decompose(a), scipy.linalg.schur(a)):
        assert t.dtype == z.dtype == a.dtype
        assert_standard(t)
        scale = np.ldexp(1.0, -np.frexp(np.abs(a).max(initial=0))[1])
        exact_t, exact_z = wide(t * scale, z)
        errors.append([residual(exact_z @ exact_t @ exact_z.T, a * scale), skewness(exact_z)])
    assert_errors(*errors, a)


@pytest.mark.few(3)
@pytest.mark.parametrize("name", sweep_rest(NONSYMMETRIC, HARD))
def test_backward_errors_are_lapacks(name, decompose):
    for n in (1, 2, 3, 10, 17):
        assert_decomposed(decompose, NONSYMMETRIC[name](n))


@pytest.mark.slow
@pytest.mark.parametrize("name", sweep_rest(NONSYMMETRIC, HARD))
def test_backward_errors_of_large_matrices_are_lapacks(name, decompose):
    for n in (33, 100):
        assert_decomposed(decompose, NONSYMMETRIC[name](n))


def test_elements_that_become_tiny_are_no_divisors(decompose):
    a = turned(pairs(10)) + 20 * np.eye(10)
    assert_decomposed(decompose, a)


@pytest.mark.slow
def test_errors_of_a_batch_are_lapacks(decompose_batch):
    a = np.stack([NONSYMMETRIC[name](6) for name in NONSYMMETRIC])
    t, z = decompose_batch(a)
    for form, vectors, matrix in zip(t, z, a, strict=True):
        assert_decomposed(lambda _, found=(form, vectors): found, matrix)


def test_empty_matrices_are_decomposed(decompose, decompose_batch):
    assert [x.shape for x in decompose(np.zeros((0, 0)))] == [(0, 0)] * 2
    for shape in ((0, 3, 3), (2, 0, 0)):
        assert [x.shape for x in decompose_batch(np.zeros(shape))] == [shape] * 2


def test_triangular_matrices_are_kept(decompose):
    a = np.triu(generator(3).normal(size=(5, 5)))
    t, z = decompose(a)
    np.testing.assert_array_equal(t, a)
    np.testing.assert_array_equal(z, np.eye(5))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_non_finite_elements_give_nan_everywhere(value, decompose, decompose_batch):
    a = np.eye(4)
    a[3, 1] = value
    assert all(np.isnan(x).all() for x in decompose(a))
    t, z = decompose_batch(np.stack([a, np.eye(4)]))
    assert np.isnan(t[0]).all()
    assert np.isnan(z[0]).all()
    np.testing.assert_array_equal(t[1], np.eye(4))


def test_matrices_that_are_not_square_are_refused(decompose):
    with pytest.raises(ValueError, match="expected square matrix"):
        decompose(np.ones((2, 3)))


SORTS = {
    "lhp": lambda w: w.real < 0,
    "rhp": lambda w: w.real >= 0,
    "iuc": lambda w: np.abs(w) <= 1,
    "ouc": lambda w: np.abs(w) > 1,
}
# Their eigenvalues are next to the imaginary axis or to the unit circle, except for rounding.
UNSORTED = ("orthogonal", "orthogonal with both signs", "cyclic", "skew", "rank-deficient")


def eigenvalues(t):
    """Return those of a matrix in standard form, in its order."""
    beside = np.sqrt(np.maximum(-np.diag(t, 1) * np.diag(t, -1), 0))
    return np.diag(t) + 1j * (np.append(beside, 0) - np.append(0, beside))


@pytest.fixture(scope="module")
def decompose_sorted(compiled):
    x = pt.matrix("x")
    results = [result for sort in SORTS for result in pt.linalg.schur(x, sort=sort)]
    return compiled([x], results)


@pytest.mark.parametrize(
    "name", sweep_rest([name for name in NONSYMMETRIC if name not in UNSORTED], HARD)
)
@pytest.mark.slow
def test_selected_eigenvalues_come_first(name, decompose_sorted):
    for n in (0, 1, 2, 3, 4, 9):
        a = NONSYMMETRIC[name](n)
        a = a / np.abs(a).max(initial=0) * 1.5 if a.any() else a
        found = decompose_sorted(a)
        for i, (sort, is_selected) in enumerate(SORTS.items()):
            t, z = found[2 * i : 2 * i + 2]
            assert (np.diff(is_selected(eigenvalues(t)).astype(int)) <= 0).all()
            assert_decomposed(lambda _, found=(t, z): found, a)
            if name != "random" or n == 0:
                continue
            _, vectors, count = scipy.linalg.schur(a, sort=sort)
            assert count == is_selected(eigenvalues(t)).sum()
            expected = vectors[:, :count] @ vectors[:, :count].T
            np.testing.assert_allclose(z[:, :count] @ z[:, :count].T, expected, atol=1e-12)


@pytest.mark.slow
def test_projections_to_sorted_eigenvectors_are_pytensors():
    x = pt.tensor3("x")
    a = generator(8).normal(size=(3, 6, 6))
    results = []
    for schur in (pt.linalg.schur(x, sort="lhp"), pt.linalg.schur(x, output="complex", sort="lhp")):
        t, z = schur
        weights = pt.lt(pt.diagonal(t, axis1=1, axis2=2).real, 0.0)
        results.append(pt.matmul(z * weights[:, None], z.conj().mT).real)
    compare_onnx_and_py([x], results, [a], rtol=1e-10, atol=1e-11)


def test_exchanges_of_eigenvalues_that_cannot_be_told_apart_give_nan(decompose_sorted):
    gap = 1e-15
    blocks = [np.array([[1 + shift, 5.0], [-1e-14, 1 + shift]]) for shift in (gap, -gap)]
    a = np.block([[blocks[0], np.ones((2, 2))], [np.zeros((2, 2)), blocks[1]]])
    for t in decompose_sorted(a)[::2]:
        if not np.isnan(t).any():
            assert_standard(t)
