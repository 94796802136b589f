"""QR factors and singular values of complex matrices of any size and any batch."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.linalg

from tests.conftest import PY, compare_onnx_and_py
from tests.functions.linalg.matrices import generator
from tests.functions.linalg.spectra import SPECTRA
from tests.functions.linalg.test_complex_elimination import assert_as_small, error, shaken, turned
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
