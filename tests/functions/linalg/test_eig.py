"""Eigenvalues, eigenvectors and triangular Schur forms of real matrices of any size and batch."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.linalg

from pytensor_onnx import compile_onnx, export_onnx
from tests.conftest import compare_onnx_and_py
from tests.functions.linalg.matrices import generator, relative
from tests.functions.linalg.nonsymmetric import NONSYMMETRIC
from tests.functions.linalg.spectra import assert_errors, residual, skewness


@pytest.fixture(scope="module")
def decompose():
    x = pt.tensor3("x")
    return compile_onnx([x], [*pt.linalg.eig(x)], verify=False)


def errors(a, values, vectors):
    """Return the residual, relative to the matrix and the vectors, and the error of lengths."""
    scale = np.ldexp(1.0, -np.frexp(np.abs(a).max(initial=0))[1])
    left = (a * scale).astype("longdouble") @ vectors
    difference = left - vectors * (values * scale).astype("clongdouble")
    parts = np.stack([difference.real, difference.imag])
    both = np.stack([vectors.real, vectors.imag])
    lengths = np.sqrt((both.astype("longdouble") ** 2).sum(axis=(0, 1)))
    return [relative(parts, a * scale, both), np.abs(lengths - 1).max(initial=0)]


@pytest.mark.parametrize(
    "n",
    [
        1,
        2,
        3,
        10,
        pytest.param(33, marks=pytest.mark.slow),
        pytest.param(64, marks=pytest.mark.slow),
    ],
)
def test_residuals_are_lapacks(n, decompose):
    matrices = np.stack([a(n) for a in NONSYMMETRIC.values()])
    w, v = decompose(matrices)
    assert w.dtype == v.dtype == "complex128"
    for name, a, values, vectors in zip(NONSYMMETRIC, matrices, w, v, strict=True):
        try:
            assert_errors(errors(a, values, vectors), errors(a, *np.linalg.eig(a)), a)
        except AssertionError as error:
            error.add_note(name)
            raise


def test_values_and_vectors_have_their_order_and_phase(decompose):
    a = generator(3).normal(size=(4, 7, 7))
    w, v = decompose(a)
    assert (np.diff(w.real) >= 0).all()
    for row in w:
        pairs = row[row.imag != 0]
        np.testing.assert_array_equal(pairs[1::2], pairs[::2].conj())
        assert (pairs.imag[::2] > 0).all()
    sums = (np.arange(1, 8) ** (1 / np.pi)) @ v
    np.testing.assert_allclose(sums.imag, 0, atol=1e-14)
    assert (sums.real > 0).all()


def test_badly_scaled_matrices_have_accurate_eigenvalues(decompose):
    a = np.array([[1.0, 1e10, 3.0], [1e-10, 1.0, 1e-12], [1e-7, 2e3, 7.0]])
    expected = np.sort(np.linalg.eigvals(a))
    np.testing.assert_allclose(decompose(a[None])[0][0], expected, rtol=1e-12, atol=1e-14)


def test_empty_and_non_finite_matrices(decompose):
    for shape in ((0, 3, 3), (2, 0, 0)):
        w, v = decompose(np.zeros(shape))
        assert w.shape == shape[:2]
        assert v.shape == shape
    a = np.stack([np.eye(3)] * 4)
    a[0, 1, 2], a[1, 2, 0], a[2, 0, 0] = np.nan, np.inf, -np.inf
    w, v = decompose(a)
    assert np.isnan(w[:3]).all()
    assert np.isnan(v[:3]).all()
    np.testing.assert_array_equal(w[3], 1)
    np.testing.assert_array_equal(v[3], np.eye(3))


def test_matrices_that_are_not_square_are_refused(decompose):
    with pytest.raises(ValueError, match="must be square"):
        decompose(np.ones((1, 2, 3)))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["int8", pytest.param("float32", marks=pytest.mark.slow)])
def test_values_that_do_not_depend_on_order_are_pytensors(dtype):
    x = pt.matrix("x", dtype=dtype)
    w, v = pt.linalg.eig(x)
    value = np.array([[4, -3, 0], [2, 1, 1], [1, 0, -2]]).astype(dtype)
    results = [w.sum(), (w**2).sum(), pt.matmul(v * w, v.conj().mT).imag]
    compare_onnx_and_py([x], results, [value], rtol=1e-5, atol=1e-4)


def test_results_are_verified():
    x = pt.matrix("x")
    program = export_onnx([x], [*pt.linalg.eig(x)])
    assert program.verification.verdict in ("equal", "within rounding")


def test_triangular_schur_forms_have_lapacks_errors():
    x = pt.matrix("x")
    decompose = pytensor.function([x], pt.linalg.schur(x, output="complex"), mode="ONNX")
    for name in NONSYMMETRIC:
        a = NONSYMMETRIC[name](8)
        scale = np.ldexp(1.0, -np.frexp(np.abs(a).max())[1])
        found = []
        for t, z in (decompose(a), scipy.linalg.schur(a, output="complex")):
            assert not np.tril(t, -1).any()
            product = z @ (t * scale) @ z.conj().T
            parts = np.stack([product.real, product.imag])
            found.append([residual(parts[0], a * scale), relative(parts[1], a * scale)])
            found[-1].append(skewness(np.block([[z.real, -z.imag], [z.imag, z.real]])))
        assert_errors(*found, a)
