"""Eigenvalues and eigenvectors of complex matrices of any size and any batch."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx import export_onnx
from tests.conftest import compare_onnx_and_py
from tests.functions.linalg.matrices import generator
from tests.functions.linalg.spectra import assert_errors
from tests.functions.linalg.test_complex_elimination import shaken
from tests.functions.linalg.test_complex_schur import complex_matrices

L = pt.linalg


@pytest.fixture(scope="module")
def decompose():
    x = pt.ztensor3("x")
    return pytensor.function([x], L.eig(x), mode="ONNX")


@pytest.mark.parametrize(
    "n", [1, 2, 3, 10, *(pytest.param(n, marks=pytest.mark.slow) for n in (33, 100))]
)
@pytest.mark.slow
def test_residuals_are_lapacks(n, decompose):
    classes = complex_matrices(n)
    if n == 100:
        classes = {name: classes[name] for name in ("random", "non-normal")}
    a = np.stack([*classes.values()])
    a = np.concatenate([a, [shaken(a[0]), 1e150 * shaken(a[0]), 1e-150 * shaken(a[0])]])
    w, v = decompose(a)
    for i, (matrix, values, vectors) in enumerate(zip(a, w, v, strict=True)):
        try:
            # Both scales leave the residual, which a product of large matrices has no number for.
            scale = np.ldexp(1.0, -np.frexp(np.abs(matrix).max(initial=0))[1])
            found = complex_errors(matrix * scale, values * scale, vectors)
            expected = complex_errors(matrix * scale, *np.linalg.eig(matrix * scale))
            assert_errors(found, expected, matrix)
        except AssertionError as error:
            error.add_note([*classes, "shaken", "large", "small"][i])
            raise


def complex_errors(a, values, vectors):
    """Return the residual, relative to the matrix and the vectors, and the error of lengths."""
    difference = a @ vectors - vectors * values
    size = np.linalg.norm(a) * np.linalg.norm(vectors)
    lengths = np.linalg.norm(vectors, axis=0)
    return [np.linalg.norm(difference) / (size or 1), np.abs(lengths - 1).max(initial=0)]


def test_values_and_vectors_have_their_order_and_phase(decompose):
    a = shaken(generator(3).normal(size=(7, 7)))
    w, v = decompose(np.stack([a, np.diag(np.arange(7.0))]))
    assert (np.diff(w.real) >= 0).all()
    places = np.abs(v).argmax(axis=1)
    largest = np.take_along_axis(v, places[:, None], axis=1)
    assert (largest.imag == 0).all()
    assert (largest.real > 0).all()
    values, vectors = np.linalg.eig(a)
    order = values.real.argsort()
    np.testing.assert_allclose(w[0], values[order], rtol=1e-12)
    np.testing.assert_allclose(v[0], vectors[:, order], rtol=1e-9, atol=1e-12)


def test_empty_and_non_finite_matrices(decompose):
    for shape in ((0, 3, 3), (2, 0, 0)):
        w, v = decompose(np.zeros(shape))
        assert (w.shape, v.shape) == (shape[:2], shape)
    a = np.stack([np.eye(3) + 0j] * 4)
    a[0, 1, 2], a[1, 2, 0], a[2, 0, 0] = np.nan, complex(0, np.inf), -np.inf
    w, v = decompose(a)
    assert np.isnan(w[:3]).all()
    assert np.isnan(v[:3]).all()
    np.testing.assert_array_equal(w[3], 1)
    np.testing.assert_array_equal(v[3], np.eye(3))


@pytest.mark.slow
def test_functions_and_exports_have_the_values_and_vectors_of_pytensor():
    x = pt.tensor4("x", dtype="complex64")
    w, v = L.eig(x)
    a = shaken(generator(5).normal(size=(2, 1, 4, 4))).astype("complex64")
    results = [w.sum(axis=-1), (v * w[..., None, :]) @ L.inv(v)]
    compare_onnx_and_py([x], results, [a], rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_exports_are_verified():
    x = pt.zmatrix("x")
    a = shaken(generator(5).normal(size=(3, 3)))
    program = export_onnx([x], [*L.eig(x)], verify=False)
    program.verify([a])
    assert [x.shape for x in program(np.zeros((0, 0)))] == [(0,), (0, 0)]
