"""Schur forms of complex matrices of any size and any batch."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.linalg

from tests.conftest import compare_onnx_and_py
from tests.functions.linalg.matrices import generator
from tests.functions.linalg.nonsymmetric import NONSYMMETRIC
from tests.functions.linalg.spectra import assert_errors
from tests.functions.linalg.test_complex_elimination import shaken, turned
from tests.functions.linalg.test_schur import SORTS, UNSORTED

L = pt.linalg


def complex_matrices(n):
    """Return one matrix of each class, with the eigenvalues of the class turned by an angle."""
    return {name: turned(make(n)) * np.exp(0.7j) for name, make in NONSYMMETRIC.items()}


@pytest.fixture(scope="module")
def decompose():
    x = pt.ztensor3("x")
    return pytensor.function([x], L.schur(x), mode="ONNX")


@pytest.fixture(scope="module")
def decompose_sorted():
    x = pt.ztensor3("x")
    results = [result for sort in SORTS for result in L.schur(x, sort=sort)]
    return pytensor.function([x], results, mode="ONNX")


def assert_decomposed(t, z, a):
    """Assert that a form is triangular and its errors are those of LAPACK."""
    assert not np.tril(t, -1).any()
    scale = np.ldexp(1.0, -np.frexp(np.abs(a).max(initial=0))[1])
    errors = [
        [
            np.linalg.norm(vectors @ (form * scale) @ vectors.conj().T - a * scale)
            / (np.linalg.norm(a * scale) or 1),
            np.linalg.norm(vectors.conj().T @ vectors - np.eye(len(a))),
        ]
        for form, vectors in ((t, z), scipy.linalg.schur(a))
    ]
    assert_errors(*errors, a)


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "n", [1, 2, 3, 10, 17, *(pytest.param(n, marks=pytest.mark.slow) for n in (33, 100))]
)
def test_backward_errors_are_lapacks(n, decompose):
    classes = complex_matrices(n)
    chosen = [classes["non-normal"]] if n == 100 else classes.values()
    a = np.stack([*chosen, shaken(NONSYMMETRIC["random"](n))])
    a = np.concatenate([a, 1e150 * a[-1:], 1e-150 * a[-1:]])
    with np.errstate(over="ignore"):
        for form, vectors, matrix in zip(*decompose(a), a, strict=True):
            assert_decomposed(form, vectors, matrix)


@pytest.mark.slow
def test_selected_eigenvalues_come_first(decompose_sorted):
    for n in (1, 2, 5, 9):
        names = [name for name in NONSYMMETRIC if name not in UNSORTED]
        a = np.stack([complex_matrices(n)[name] for name in names])
        a /= np.maximum(np.abs(a).max(axis=(1, 2), keepdims=True), 1e-300) / 1.5
        found = decompose_sorted(a)
        for i, (sort, is_selected) in enumerate(SORTS.items()):
            for name, t, z, matrix in zip(names, *found[2 * i : 2 * i + 2], a, strict=True):
                selected = is_selected(np.diag(t))
                assert (np.diff(selected.astype(int)) <= 0).all(), name
                assert_decomposed(t, z, matrix)
                if name == "random":
                    _, vectors, count = scipy.linalg.schur(matrix, sort=sort)
                    assert count == selected.sum()
                    expected = vectors[:, :count] @ vectors[:, :count].conj().T
                    projection = z[:, :count] @ z[:, :count].conj().T
                    np.testing.assert_allclose(projection, expected, atol=1e-12)


def test_empty_and_non_finite_matrices(decompose):
    for shape in ((0, 3, 3), (2, 0, 0)):
        assert [x.shape for x in decompose(np.zeros(shape))] == [shape] * 2
    for value in (np.nan, np.inf, complex(0, -np.inf)):
        a = np.eye(4) + 0j
        a[3, 1] = value
        t, z = decompose(np.stack([a, np.eye(4)]))
        assert np.isnan(t[0]).all()
        assert np.isnan(z[0]).all()
        np.testing.assert_array_equal(t[1], np.eye(4))
    with pytest.raises(ValueError, match="square"):
        decompose(np.ones((1, 2, 3)))


@pytest.mark.slow
def test_single_precision_and_both_outputs_are_pytensors():
    x = pt.tensor4("x", dtype="complex64")
    t, _ = L.schur(x, output="real")
    _, z = L.schur(x, output="complex")
    a = shaken(generator(5).normal(size=(2, 1, 4, 4))).astype("complex64")
    results = [abs(t * t.conj()).sum(axis=(-1, -2)), z @ t @ z.conj().mT, z @ z.conj().mT]
    compare_onnx_and_py([x], results, [a], rtol=1e-4, atol=1e-4)
