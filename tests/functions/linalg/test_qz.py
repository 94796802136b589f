"""Schur forms of pairs of matrices of any size and any batch."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.linalg

from pytensor_onnx import compile_onnx
from tests.conftest import compare_onnx_and_py
from tests.functions.linalg.matrices import generator
from tests.functions.linalg.nonsymmetric import NONSYMMETRIC
from tests.functions.linalg.spectra import residual, skewness

EPS = np.finfo("float64").eps
NAMES = list(NONSYMMETRIC)
OTHERS = ("random", "identity", "rank-deficient", "zero", "nilpotent")


@pytest.fixture(scope="module")
def decompose():
    a, b = pt.tensor3("a"), pt.tensor3("b")
    return compile_onnx([a, b], list(pt.linalg.qz(a, b)), verify=False)


def classes(n):
    """Return pairs of every class with five other ones and a class of its own."""
    for i, name in enumerate(NAMES):
        for other in (*OTHERS, NAMES[(7 * i + 3) % len(NAMES)]):
            yield f"{name}, {other}", NONSYMMETRIC[name](n) * 1.0, NONSYMMETRIC[other](n) * 1.0


def errors(a, b, aa, bb, q, z):
    """Return the backward errors and the losses of orthogonality."""
    found = []
    for given, form in ((a, aa), (b, bb)):
        scale = np.ldexp(1.0, -np.frexp(np.abs(given).max(initial=0))[1])
        found.append(residual(q @ (form * scale) @ z.T, given * scale))
    return [*found, skewness(q), skewness(z)]


def assert_standard(aa, bb):
    """Assert that the forms are those of LAPACK, with positive diagonal blocks beside pairs."""
    assert not np.tril(aa, -2).any()
    assert not np.tril(bb, -1).any()
    assert (np.diag(bb) >= 0).all()
    (firsts,) = np.nonzero(np.diag(aa, -1))
    assert (np.diff(firsts) > 1).all()
    for i in firsts:
        assert bb[i, i + 1] == 0
        assert bb[i, i] * (1 + 4 * EPS) >= bb[i + 1, i + 1] > 0


@pytest.mark.parametrize(
    "n",
    [
        1,
        2,
        3,
        10,
        pytest.param(33, marks=pytest.mark.slow),
        pytest.param(64, marks=pytest.mark.sweep),
    ],
)
@pytest.mark.slow
def test_backward_errors_are_lapacks(n, decompose):
    names, a, b = zip(*classes(n), strict=True)
    # LAPACK is exact by chance where both matrices have the form already.
    usual = errors(*(pencil := generator(n).normal(size=(2, n, n))), *scipy.linalg.qz(*pencil))
    for name, *pencil in zip(names, a, b, *decompose(np.stack(a), np.stack(b)), strict=True):
        assert_standard(*pencil[2:4])
        lapack = scipy.linalg.qz(*(x / (np.abs(x).max() or 1) for x in pencil[:2]))
        scaled = [x / (np.abs(x).max() or 1) for x in pencil[:2]]
        found = zip(errors(*pencil), errors(*scaled, *lapack), usual, strict=True)
        for error, *expected in found:
            assert error <= max(10 * max(expected), 30 * EPS), f"{name}: {error / EPS:.3g} eps"


def test_matrices_of_zeros_stay_zeros(decompose):
    a, zero = generator(5).normal(size=(5, 5)), np.zeros((5, 5))
    aa, bb, q, z = decompose(np.stack([a, zero, zero]), np.stack([zero, a, zero]))
    assert not np.concatenate([bb[0], aa[1], aa[2], bb[2]]).any()
    assert not np.tril(aa[0], -1).any()
    for i, form in enumerate((aa[0], bb[1])):
        np.testing.assert_allclose(q[i] @ form @ z[i].T, a, atol=1e-13)


def test_empty_and_non_finite_matrices(decompose):
    for shape in ((0, 3, 3), (2, 0, 0)):
        found = decompose(np.zeros(shape), np.zeros(shape))
        assert [x.shape for x in found] == [shape] * 4
    a = np.stack([np.eye(4)] * 4)
    b = a.copy()
    a[0, 2, 1], b[1, 0, 3], b[2, 1, 1] = np.nan, np.inf, -np.inf
    for x in decompose(a, b):
        assert np.isnan(x[:3]).all()
        assert np.isfinite(x[3]).all()


@pytest.mark.slow
def test_shapes_that_do_not_fit_are_refused(decompose):
    for shapes in (((2, 3), (2, 3)), ((2, 2), (3, 3)), ((2, 2), (2, 3))):
        with pytest.raises(ValueError, match=r"square|dimensions"):
            decompose(*(np.ones((1, *shape)) for shape in shapes))


def is_selected(alpha, beta, sort):
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.asarray(alpha, "complex128") / beta
    infinite = beta == 0
    return {
        "lhp": ~infinite & (value.real < 0),
        "rhp": ~infinite & (value.real > 0),
        "iuc": ~infinite & (np.abs(value) < 1),
        "ouc": np.where(infinite, alpha != 0, np.abs(value) > 1),
    }[sort]


@pytest.mark.parametrize(
    ("output", "sort"),
    [
        ("complex", "lhp"),
        pytest.param("real", "iuc", marks=pytest.mark.slow),
        *(pytest.param("real", sort, marks=pytest.mark.sweep) for sort in ("lhp", "rhp", "ouc")),
    ],
)
@pytest.mark.slow
def test_selected_eigenvalues_come_first(output, sort):
    a, b = pt.matrix("a"), pt.matrix("b")
    results = pt.linalg.qz(a, b, output=output, sort=sort, return_eigenvalues=True)
    decompose = pytensor.function([a, b], results, mode="ONNX")
    for n in (0, 1, 2, 3, 5, 12):
        x, y = generator(n).normal(size=(2, n, n))
        aa, bb, alpha, beta, q, z = decompose(x, y)
        for given, form in ((x, aa), (y, bb)):
            np.testing.assert_allclose(q @ form @ z.conj().T, given, atol=1e-13)
        if output == "complex":
            assert not np.tril(aa, -1).any()
            assert not np.tril(bb, -1).any()
            np.testing.assert_array_equal(np.diag(aa), alpha)
            np.testing.assert_array_equal(np.diag(bb), beta)
            assert (beta.imag == 0).all()
            beta = beta.real
        else:
            assert_standard(aa, bb)
        assert (beta > 0).all()
        assert (np.diff(is_selected(alpha, beta, sort).astype(int)) <= 0).all()
        if n:
            _, _, expected, divisor, _, vectors = scipy.linalg.ordqz(x, y, sort, output)
            found = np.sort(np.abs(alpha / beta))
            np.testing.assert_allclose(found, np.sort(np.abs(expected / divisor)), rtol=1e-9)
            count = is_selected(alpha, beta, sort).sum()
            projection = vectors[:, :count] @ vectors[:, :count].conj().T
            np.testing.assert_allclose(z[:, :count] @ z[:, :count].conj().T, projection, atol=1e-11)


def test_eigenvalues_of_singular_matrices_are_infinite(decompose):
    for n in (2, 3, 10, 17):
        x, y = generator(n).normal(size=(2, n, n))
        y[:, n // 2 :] = 0
        _, triangles, _, _ = decompose(np.stack([x, y]), np.stack([y, x]))
        assert (np.diag(triangles[0]) == 0).sum() == n - n // 2
        assert (np.diag(triangles[1]) > 0).all()


@pytest.mark.parametrize("dtype", ["float32", pytest.param("int64", marks=pytest.mark.slow)])
@pytest.mark.slow
def test_values_that_do_not_depend_on_the_form_are_pytensors(dtype):
    a, b = pt.tensor3("a", dtype=dtype), pt.matrix("b", dtype=dtype)
    aa, bb, alpha, beta, q, z = pt.linalg.qz(a, b, return_eigenvalues=True)
    values = [(10 * generator(5).normal(size=s)).astype(dtype) for s in ((2, 4, 4), (4, 4))]
    results = [(alpha / beta).sum(axis=-1).real, pt.matmul(q, q.mT)]
    results += [pt.matmul(pt.matmul(q, x), z.mT) for x in (aa, bb)]
    tolerance = 1e-3 if dtype == "float32" else 1e-10
    compare_onnx_and_py([a, b], results, values, rtol=tolerance, atol=tolerance)
