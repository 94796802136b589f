"""Eigenvalues and eigenvectors of Hermitian matrices of any size and any batch."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.linalg

from pytensor_onnx import UnsupportedOpError, export_onnx
from tests.functions.linalg.matrices import generator

eigh, eigvalsh = pt.linalg.eigh, pt.linalg.eigvalsh


def hermitian(rng, *shape):
    a = rng.normal(size=(*shape, shape[-1])) + 1j * rng.normal(size=(*shape, shape[-1]))
    return a + a.conj().swapaxes(-1, -2)


@pytest.fixture(scope="module")
def decompose():
    x = pt.tensor4("x", dtype="complex128")
    return pytensor.function([x], eigh(x), mode="ONNX")


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(2, 3, 4), (0, 1, 3), (1, 2, 1), (2, 1, 0), (1, 1, 30)])
def test_eigenvectors_solve_the_equation(shape, decompose):
    a = hermitian(generator(1), *shape)
    w, v = decompose(a)
    np.testing.assert_allclose(w, np.linalg.eigvalsh(a), rtol=0, atol=1e-13 * shape[-1])
    np.testing.assert_allclose(a @ v, w[..., None, :] * v, rtol=0, atol=1e-13 * shape[-1])
    unit = v.conj().swapaxes(-1, -2) @ v
    np.testing.assert_allclose(unit, np.broadcast_to(np.eye(shape[-1]), a.shape), atol=1e-13)
    if v.size:
        largest = np.take_along_axis(v, np.abs(v).argmax(axis=-2, keepdims=True), axis=-2)
        assert (largest.imag == 0).all()
        assert (largest.real > 0).all()


def test_repeated_eigenvalues_scales_and_values_that_are_not_finite(decompose):
    q = scipy.linalg.qr(hermitian(generator(2), 4))[0]
    repeated = q * [1.0, 1.0, 1.0, -2.0] @ q.conj().T
    diagonal = np.diag([3.0, 1.0, 2.0, 0.0]).astype(complex)
    for a in (repeated, diagonal, np.zeros((4, 4), complex), 1e300 * diagonal, 1e-300 * repeated):
        ((w,),), ((v,),) = decompose(a[None, None])
        size = np.abs(a).max(initial=1e-300)
        np.testing.assert_allclose(a / size @ v, w / size * v, rtol=0, atol=1e-14)
        np.testing.assert_allclose(v.conj().T @ v, np.eye(4), rtol=0, atol=1e-14)
    a = np.stack([diagonal, np.full((4, 4), np.nan)])
    w, v = decompose(a[None])
    assert np.isfinite(v[0, 0]).all()
    assert np.isnan([*v[0, 1], w[0, 1]]).all()


@pytest.mark.parametrize(
    ("first", "second", "lower"),
    [
        ("complex128", "complex128", True),
        pytest.param("float64", "complex128", False, marks=pytest.mark.slow),
        pytest.param("complex128", "float64", False, marks=pytest.mark.slow),
    ],
)
@pytest.mark.slow
def test_pairs_of_matrices(first, second, lower):
    rng, n = generator(3), 4
    given = [hermitian(rng, n), hermitian(rng, n) + 8 * n * np.eye(n)]
    given = [x.real if d == "float64" else x for x, d in zip(given, (first, second), strict=True)]
    a, b = (pt.matrix(dtype=x.dtype) for x in given)
    # The other triangle is not read.
    w, v = pytensor.function([a, b], eigh(a, b, lower=lower), mode="ONNX")(
        *(np.tril(x) if lower else np.triu(x) for x in given)
    )
    np.testing.assert_allclose(w, scipy.linalg.eigvalsh(*given), rtol=0, atol=1e-13)
    np.testing.assert_allclose(given[0] @ v, given[1] @ v * w, rtol=0, atol=1e-12)
    np.testing.assert_allclose(v.conj().T @ given[1] @ v, np.eye(n), rtol=0, atol=1e-13)
    values = pytensor.function([a, b], eigvalsh(a, b, lower=lower), mode="ONNX")(*given)
    np.testing.assert_allclose(values, w, rtol=0, atol=1e-13)


@pytest.mark.slow
def test_files_are_verified_and_keep_complex64():
    x = pt.matrix("x", dtype="complex64")
    program = export_onnx([x], eigh(x))
    a = hermitian(generator(4), 5).astype("complex64")
    w, v = program(a)
    assert (w.dtype, v.dtype) == ("float32", "complex64")
    np.testing.assert_allclose(a @ v, v * w, rtol=0, atol=1e-5)


@pytest.mark.slow
def test_vectors_are_moved_but_not_computed_with():
    x = pt.zmatrix("x")
    _, v = eigh(x)
    a = hermitian(generator(5), 3)
    moved = pytensor.function([x], [v, v[:, 0], v.T], mode="ONNX")(a)
    np.testing.assert_array_equal(moved[1], moved[0][:, 0])
    np.testing.assert_array_equal(moved[2], moved[0].T)
    # PyTensor takes them for real, so that it has dropped a conjugate.
    with pytest.raises(UnsupportedOpError, match="no formula of real parts"):
        export_onnx([x], v @ v.conj().T)
