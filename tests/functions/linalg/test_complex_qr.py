"""QR factors and singular values of complex matrices of any size and any batch."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.linalg

from pytensor_onnx import UnsupportedOpError, export_onnx
from tests.conftest import PY, compare_onnx_and_py
from tests.functions.linalg.matrices import generator
from tests.functions.linalg.spectra import SPECTRA
from tests.functions.linalg.test_complex_lu import assert_as_small, error, shaken, turned
from tests.functions.linalg.test_qr import every_mode

EPS = np.finfo("float64").eps
L = pt.linalg


def skewness(q):
    return np.linalg.norm(q.conj().T @ q - np.eye(q.shape[1]))


@pytest.fixture(scope="module")
def factorise():
    x = pt.ztensor3("x")
    results = [*L.qr(x), *L.svd(x, full_matrices=False), L.svd(x, compute_uv=False)]
    return pytensor.function([x], results, mode="ONNX")


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (3, 5), (6, 4), (17, 17)])
def test_backward_errors_are_lapacks(shape, factorise):
    a = np.stack([shaken(make(max(shape)))[: shape[0], : shape[1]] for make in SPECTRA.values()])
    q, r, u, s, v, values = factorise(a)
    least = 10 * max(shape) * EPS
    for name, matrix, *found in zip(SPECTRA, a, q, r, u, s, v, values, strict=True):
        if not matrix.any():
            continue
        (q0, r0, u0, s0, v0, alone) = found
        assert not np.tril(r0, -1).any()
        assert (np.diag(r0).imag == 0).all()
        assert (np.diff(s0) <= 0).all()
        np.testing.assert_allclose(alone, s0, rtol=0, atol=1e-14 * max(shape) * s0[0])
        scaled = matrix / np.abs(matrix).max()
        expected = np.linalg.qr(scaled)
        assert_as_small(error(matrix.T, r0.T, q0.T), max(error(scaled, *expected), least / 10))
        assert_as_small(skewness(q0), max(skewness(expected[0]), least / 10))
        lefts, sizes, rights = np.linalg.svd(scaled, full_matrices=False)
        usual = error(scaled, lefts * sizes, rights)
        assert_as_small(error(scaled, u0 * (s0 / np.abs(matrix).max()), v0), max(usual, least / 10))
        assert max(skewness(u0), skewness(v0.conj().T)) <= 10 * least, name


@pytest.mark.slow
def test_signs_and_options_are_pytensors():
    x = pt.zmatrix("x")
    u, s, v = L.svd(x, full_matrices=True)
    qr = [*L.qr(x), *L.qr(x, mode="economic"), L.qr(x.T, mode="r")]
    svd = [s, u @ u.conj().T, v @ v.conj().T]
    eigvalsh = [L.eigvalsh(x @ x.conj().T, None), L.eigvalsh(x.T @ x.conj(), None, lower=False)]
    a = shaken(generator(2).normal(size=(5, 3)))
    for results in (qr, svd, eigvalsh):
        compare_onnx_and_py([x], results, [a], rtol=1e-11, atol=1e-12)


def test_every_mode_with_pivoting_is_lapacks_for_any_shape():
    x = pt.zmatrix("x")
    results = [*every_mode(x, pivoting=True), *L.qr(x, mode="raw")]
    value = shaken(generator(2).normal(size=(3, 3)))
    program = compare_onnx_and_py([x], results, [value], rtol=1e-12, atol=1e-13)
    reference = pytensor.function([x], results, mode=PY)
    for shape in ((1, 1), (2, 4), (5, 3), (1, 4), (4, 1), (12, 9), (0, 3), (3, 0)):
        a = shaken(generator(5).normal(size=shape) * np.logspace(0, 3, shape[1]))
        if not a.size:
            orders = [y for y in program(a) if y.dtype == "int32"]
            assert [y.shape for y in orders] == [shape[1:]] * 4
            continue
        for found, expected in zip(program(a), reference(a), strict=True):
            assert found.shape == expected.shape
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11 * np.abs(a).max())


def test_pivoted_factors_of_hard_matrices_have_lapacks_errors():
    x = pt.ztensor3("x")
    factorise = pytensor.function([x], L.qr(x, pivoting=True), mode="ONNX")
    names = [name for name in SPECTRA if SPECTRA[name](10).any()]
    a = np.stack([shaken(SPECTRA[name](10)) for name in names])
    for name, matrix, q, r, order in zip(names, a, *factorise(a), strict=True):
        scaled = matrix / np.abs(matrix).max()
        lapacks = scipy.linalg.qr(scaled, pivoting=True)
        usual = error(scaled[:, lapacks[2]], *lapacks[:2])
        assert sorted(order) == list(range(10)), name
        upper = r / np.abs(matrix).max()
        assert_as_small(error(scaled[:, order], q, upper), max(usual, 10 * EPS))
        assert_as_small(skewness(q), max(skewness(lapacks[0]), 10 * EPS))
        rests = np.cumsum(np.abs(upper[::-1]) ** 2, axis=0)[::-1]
        assert (np.diag(rests) >= rests.max(axis=1) * (1 - 1e-10) - 1e-28).all(), name


def test_empty_and_non_finite_matrices(factorise):
    for shape in ((0, 2, 3), (2, 0, 0)):
        k = min(shape[1:])
        found = [x.shape[1:] for x in factorise(np.zeros(shape))]
        rows, columns = shape[1:]
        assert found == [(rows, k), (k, columns), (rows, k), (k,), (k, columns), (k,)]
    u, s, v = factorise(np.array([[[1.0, np.nan], [0, 1]], np.eye(2)]))[2:5]
    assert all(np.isnan(x[0]).all() and np.isfinite(x[1]).all() for x in (u, s, v))


def test_eigenvalues_of_hermitian_matrices_are_accurate():
    x = pt.zmatrix("x")
    find = pytensor.function([x], L.eigvalsh(x, None), mode="ONNX")
    for n in (1, 2, 9):
        a = turned(SPECTRA["indefinite"](n))
        np.testing.assert_allclose(find(a), np.linalg.eigvalsh(a), atol=1e-14)


eigh, eigvalsh = pt.linalg.eigh, pt.linalg.eigvalsh


def hermitian(rng, *shape):
    a = rng.normal(size=(*shape, shape[-1])) + 1j * rng.normal(size=(*shape, shape[-1]))
    return a + a.conj().swapaxes(-1, -2)


@pytest.fixture(scope="module")
def decompose():
    x = pt.tensor4("x", dtype="complex128")
    return pytensor.function([x], eigh(x), mode="ONNX")


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


def test_files_are_verified_and_keep_complex64():
    x = pt.matrix("x", dtype="complex64")
    program = export_onnx([x], eigh(x))
    a = hermitian(generator(4), 5).astype("complex64")
    w, v = program(a)
    assert (w.dtype, v.dtype) == ("float32", "complex64")
    np.testing.assert_allclose(a @ v, v * w, rtol=0, atol=1e-5)


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
