"""Check the rules of docs/understanding/linear-algebra.md for factors that LAPACK leaves free."""

import numpy as np
import pytensor.tensor as pt
import pytest
import scipy.linalg

from pytensor_onnx import export_onnx
from tests.functions.linalg.matrices import generator

L = pt.linalg
DTYPES = ["float64", pytest.param("complex128", marks=pytest.mark.slow)]
NEAR = {"rtol": 0, "atol": 1e-13}


def matrices(dtype, n=5):
    parts = generator(8).normal(size=(2, 3, n, n))
    return parts[0] + 1j * parts[1] if dtype == "complex128" else parts[0]


def exported(dtype, function):
    x = pt.tensor("x", dtype=dtype, shape=(None, None, None))
    return export_onnx([x], function(x), verify=False)


def adjoint(a):
    return a.conj().swapaxes(-1, -2)


def weighted_sums(columns):
    """Return the sums whose sign files give the vectors of real matrices."""
    return np.arange(1, columns.shape[-2] + 1) ** (1 / np.pi) @ columns


def assert_largest_are_positive(columns):
    place = np.abs(columns).argmax(axis=-2, keepdims=True)
    largest = np.take_along_axis(columns, place, axis=-2)
    np.testing.assert_allclose(largest, np.abs(largest), **NEAR)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_eigh(dtype):
    a = matrices(dtype) + adjoint(matrices(dtype))
    w, v = exported(dtype, L.eigh)(a)
    np.testing.assert_allclose(a @ v, v * w[:, None, :], rtol=0, atol=1e-13)
    np.testing.assert_allclose(adjoint(v) @ v, np.broadcast_to(np.eye(5), a.shape), **NEAR)
    assert (np.diff(w) >= 0).all()
    if dtype == "float64":
        assert (weighted_sums(v) > 0).all()
    else:
        assert_largest_are_positive(v)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_eig(dtype):
    a = matrices(dtype)
    w, v = exported(dtype, L.eig)(a)
    np.testing.assert_allclose(a @ v, v * w[:, None, :], **NEAR)
    np.testing.assert_allclose(np.linalg.norm(v, axis=-2), 1, **NEAR)
    assert (np.diff(w.real) >= -1e-14).all()
    if dtype == "float64":
        sums = weighted_sums(v)
        np.testing.assert_allclose(sums, np.abs(sums), **NEAR)
    else:
        assert_largest_are_positive(v)


@pytest.mark.parametrize("dtype", DTYPES)
def test_svd(dtype):
    a = matrices(dtype)[:, :, :3]
    u, s, vt = exported(dtype, lambda x: L.svd(x, full_matrices=False))(a)
    np.testing.assert_allclose(u * s[:, None, :] @ vt, a, **NEAR)
    assert (np.diff(s) <= 0).all()
    if dtype == "float64":
        assert (weighted_sums(u) > 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_schur(dtype):
    a = matrices(dtype)
    output = "real" if dtype == "float64" else "complex"
    t, z = exported(dtype, lambda x: L.schur(x, output=output))(a)
    np.testing.assert_allclose(z @ t @ adjoint(z), a, **NEAR)
    np.testing.assert_allclose(adjoint(z) @ z, np.broadcast_to(np.eye(5), a.shape), **NEAR)
    assert (np.tril(t, -2) == 0).all()
    below, diagonal = np.diagonal(t, -1, 1, 2), np.diagonal(t, 0, 1, 2)
    is_block = below != 0
    assert is_block.any() == (dtype == "float64")
    above = np.diagonal(t, 1, 1, 2)
    assert (diagonal[:, :-1] == diagonal[:, 1:])[is_block].all()
    assert (np.sign(above) == -np.sign(below))[is_block].all()


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_qr_and_lu_are_those_of_lapack(dtype):
    a = matrices(dtype)
    found = exported(dtype, lambda x: [*L.qr(x), *L.lu(x)])(a)
    for i, matrix in enumerate(a):
        expected = [*scipy.linalg.qr(matrix), *scipy.linalg.lu(matrix)]
        for x, y in zip(found, expected, strict=True):
            np.testing.assert_allclose(x[i], y, rtol=0, atol=1e-13)
