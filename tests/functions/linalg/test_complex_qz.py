"""Schur forms of pairs of complex matrices of any size and any batch."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.linalg

from tests.conftest import compare_onnx_and_py
from tests.functions.linalg.matrices import generator
from tests.functions.linalg.test_complex_elimination import shaken, turned
from tests.functions.linalg.test_qz import EPS, classes, is_selected

L = pt.linalg


def normal(n, seed=0):
    return shaken(generator(n + seed).normal(size=(2, n, n)))


@pytest.fixture(scope="module")
def decompose():
    a, b = pt.ztensor3("a"), pt.ztensor3("b")
    return pytensor.function([a, b], L.qz(a, b, return_eigenvalues=True), mode="ONNX")


def errors(a, b, aa, bb, q, z):
    """Return the backward errors and the losses of orthogonality."""
    found = [
        np.linalg.norm(q @ form @ z.conj().T - given) / (np.linalg.norm(given) or 1)
        for given, form in ((a, aa), (b, bb))
    ]
    return [*found, *(np.linalg.norm(x.conj().T @ x - np.eye(len(x))) for x in (q, z))]


def assert_standard(aa, bb, alpha, beta):
    """Assert that the forms are triangular, with the eigenvalues of LAPACK."""
    assert not np.tril(aa, -1).any()
    assert not np.tril(bb, -1).any()
    np.testing.assert_array_equal(np.diag(aa), alpha)
    np.testing.assert_array_equal(np.diag(bb), beta)
    assert (beta.imag == 0).all()
    assert (beta.real >= 0).all()


@pytest.mark.parametrize(
    "n",
    [
        *(1, 2, 3, 10),
        pytest.param(33, marks=pytest.mark.sweep),
        pytest.param(100, marks=pytest.mark.slow),
    ],
)
@pytest.mark.slow
def test_backward_errors_are_lapacks(n, decompose):
    names, a, b = zip(*list(classes(n))[:: 80 if n == 100 else 1], strict=True)
    a, b = np.stack([turned(x) for x in a]) * np.exp(0.7j), np.stack([shaken(x) for x in b])
    scales = [np.ldexp(1.0, -np.frexp(np.abs(x).max(axis=(1, 2), initial=0))[1]) for x in (a, b)]
    # LAPACK is exact by chance where both matrices have the form already.
    usual = errors(*(pencil := normal(n)), *scipy.linalg.qz(*pencil))
    for i, (name, *given) in enumerate(zip(names, a, b, *decompose(a, b), strict=True)):
        x, y, aa, bb, alpha, beta, q, z = given
        assert_standard(aa, bb, alpha, beta)
        scaled = [m * scale[i] for m, scale in zip((x, y), scales, strict=True)]
        forms = [m * scale[i] for m, scale in zip((aa, bb), scales, strict=True)]
        lapack = errors(*scaled, *scipy.linalg.qz(*scaled))
        for error, *expected in zip(errors(*scaled, *forms, q, z), lapack, usual, strict=True):
            assert error <= max(10 * max(expected), 30 * EPS), f"{name}: {error / EPS:.3g} eps"


def test_large_and_small_matrices_have_the_eigenvalues_of_scipy(decompose):
    a, b = normal(6)
    for scale, other in ((1e150, 1.0), (1e-150, 1e-150), (1.0, 1e-150)):
        _, _, alpha, beta, _, _ = decompose(a[None] * scale, b[None] * other)
        found = alpha[0] / scale / (beta[0] / other)
        expected = scipy.linalg.eigvals(a, b)
        np.testing.assert_allclose(np.sort(found), np.sort(expected), rtol=1e-11)


def test_eigenvalues_of_singular_matrices_are_infinite(decompose):
    for n in (2, 3, 10, 17):
        a, b = normal(n)
        b[:, n // 2 :] = 0
        beta = decompose(a[None], b[None])[3]
        assert (beta == 0).sum() == n - n // 2


def test_matrices_of_zeros_stay_zeros(decompose):
    a, zero = normal(5)[0], np.zeros((5, 5))
    aa, bb, alpha, beta, q, z = decompose(np.stack([a, zero, zero]), np.stack([zero, a, zero]))
    assert not np.concatenate([bb[0], aa[1], aa[2], bb[2]]).any()
    assert not np.concatenate([beta[0], alpha[1], alpha[2], beta[2]]).any()
    assert (alpha[0] != 0).all()
    for i, form in enumerate((aa[0], bb[1])):
        np.testing.assert_allclose(q[i] @ form @ z[i].conj().T, a, atol=1e-13)


def test_empty_and_non_finite_matrices(decompose):
    for shape in ((0, 3, 3), (2, 0, 0)):
        found = [x.shape for x in decompose(np.zeros(shape), np.zeros(shape))]
        assert found == [shape, shape, shape[:2], shape[:2], shape, shape]
    a = np.stack([np.eye(4) + 0j] * 4)
    b = a.copy()
    a[0, 2, 1], b[1, 0, 3], b[2, 1, 1] = np.nan, complex(0, np.inf), -np.inf
    for x in decompose(a, b):
        assert np.isnan(x[:3]).all()
        assert np.isfinite(x[3]).all()
    with pytest.raises(ValueError, match=r"square|dimensions"):
        decompose(np.ones((1, 2, 2)), np.ones((1, 3, 3)))


@pytest.mark.parametrize(
    "sort",
    [
        *(pytest.param(sort, marks=pytest.mark.slow) for sort in ("lhp", "ouc")),
        *(pytest.param(sort, marks=pytest.mark.sweep) for sort in ("rhp", "iuc")),
    ],
)
def test_selected_eigenvalues_come_first(sort):
    a, b = pt.ztensor3("a"), pt.ztensor3("b")
    results = L.qz(a, b, output="real", sort=sort, return_eigenvalues=True)
    decompose = pytensor.function([a, b], results, mode="ONNX")
    for n in (1, 2, 5, 12):
        x, y = normal(n)
        aa, bb, alpha, beta, q, z = (part[0] for part in decompose(x[None], y[None]))
        assert_standard(aa, bb, alpha, beta)
        usual = errors(x, y, *scipy.linalg.qz(x, y))
        for error, expected in zip(errors(x, y, aa, bb, q, z), usual, strict=True):
            assert error <= 10 * max(expected, EPS)
        chosen = is_selected(alpha, beta.real, sort)
        assert (np.diff(chosen.astype(int)) <= 0).all()
        vectors = scipy.linalg.ordqz(x, y, sort)[5]
        count = chosen.sum()
        projection = vectors[:, :count] @ vectors[:, :count].conj().T
        np.testing.assert_allclose(z[:, :count] @ z[:, :count].conj().T, projection, atol=1e-11)


@pytest.mark.slow
def test_single_precision_and_real_matrices_are_pytensors():
    a, b = pt.tensor3("a", dtype="complex64"), pt.cmatrix("b")
    values = [x.astype("complex64") for x in (normal(4), normal(4)[0])]
    aa, bb, alpha, beta, q, z = L.qz(a, b, return_eigenvalues=True)
    results = [(alpha / beta).sum(axis=-1), q @ q.conj().mT]
    results += [q @ x @ z.conj().mT for x in (aa, bb)]
    compare_onnx_and_py([a, b], results, values, rtol=1e-3, atol=1e-3)
    real = pt.matrix("real")
    aa, bb, q, z = L.qz(b.astype("complex128"), real)
    both = pytensor.function([b, real], [q @ x @ z.conj().T for x in (aa, bb)], mode="ONNX")
    given = values[1], normal(4)[1].real
    for found, value in zip(both(*given), given, strict=True):
        np.testing.assert_allclose(found, value, atol=1e-13)
