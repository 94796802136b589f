"""Factors and determinants of complex matrices of any size and any batch."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.linalg

from pytensor_onnx.errors import InputError
from tests.conftest import compare_onnx_and_py
from tests.functions.linalg.matrices import GENERAL, POSITIVE, generator

EPS = np.finfo("float64").eps
L = pt.linalg


def turned(a):
    """Return a matrix whose elements have random phases, Hermitian if the matrix is symmetric."""
    angles = generator(len(a)).normal(size=len(a))
    return a * np.exp(1j * (angles[:, None] - angles))


def shaken(a):
    """Return a matrix whose elements have independent random phases."""
    return a * np.exp(1j * generator(len(a)).normal(size=a.shape))


def assert_as_small(found, expected):
    assert found <= 10 * max(expected, EPS), f"{found / EPS:.3g} eps, {expected / EPS:.3g} eps"


def error(a, *factors):
    """Return the error of a product, relative to the largest element of a matrix."""
    scale = np.abs(a).max(initial=0) or 1
    product = factors[0] / scale
    for factor in factors[1:]:
        product = product @ factor
    return np.linalg.norm(product - a / scale) / np.linalg.norm(a / scale)


@pytest.fixture(scope="module")
def factorise():
    x = pt.ztensor3("x")
    return pytensor.function([x], [L.cholesky(x), *L.lu(x), *L.lu_factor(x)], mode="ONNX")


@pytest.mark.parametrize("n", [1, 2, 3, 17, 40])
def test_backward_errors_are_lapacks(n, factorise):
    positive = [turned(make(n)) for make in POSITIVE.values() if len(make(n)) == n]
    general = [shaken(make(n)) for name, make in GENERAL.items() if name != "Wilkinson" or n > 1]
    matrices = np.stack([*positive, *general])
    with np.errstate(over="ignore"):
        roots, p, lower, upper, packed, pivots = factorise(matrices)
    for a, factor in zip(positive, roots, strict=False):
        assert not np.triu(factor, 1).any()
        assert (np.diag(factor).imag == 0).all()
        expected = np.linalg.cholesky(a)
        size = np.sqrt(np.abs(a).max())
        ours, lapacks = (
            error(a / size**2, x / size, x.conj().T / size) for x in (factor, expected)
        )
        assert_as_small(ours, lapacks)
    for a, *found in zip(matrices, p, lower, upper, packed, pivots, strict=True):
        expected = scipy.linalg.lu(a)
        ours, lapacks = (
            error(a.T, *(x.T for x in factors[::-1])) for factors in (found[:3], expected)
        )
        assert_as_small(ours, lapacks)
        both, exchanges = found[3:]
        np.testing.assert_array_equal(np.triu(both), found[2])
        np.testing.assert_array_equal(np.tril(both, -1), np.tril(found[1], -1))
        np.testing.assert_array_equal(exchanges, scipy.linalg.lu_factor(a)[1])


def test_empty_and_indefinite_matrices(factorise):
    for shape in ((0, 3, 3), (2, 0, 0)):
        found = factorise(np.zeros(shape))
        assert [x.shape for x in found] == [shape] * 5 + [shape[:2]]
    factors = factorise(np.stack([turned(np.diag([1.0, -1.0, 1.0])), np.eye(3)]))[0]
    assert np.isnan(factors[0]).all()
    np.testing.assert_array_equal(factors[1], np.eye(3))
    # The input is checked before the run, as its sizes are those of the real matrices.
    with pytest.raises(InputError, match="is 2 in x and 3 in x"):
        factorise(np.ones((1, 2, 3)))


def test_determinants_and_options_are_pytensors():
    x = pt.zmatrix("x")
    results = [
        L.det(x),
        L.det(1e100 * x[:3, :3]),
        *L.slogdet(x * 1e-200),
        *L.lu(x, permute_l=True),
        *L.lu(x, p_indices=True),
        L.cholesky(x @ x.conj().T, lower=False),
        L.lu_solve(L.lu_factor(x), x[:, :2], b_ndim=2),
    ]
    a = shaken(generator(4).normal(size=(4, 4)))
    compare_onnx_and_py([x], results, [a], rtol=1e-11, atol=1e-12)


def test_determinants_within_range_have_partial_products_beyond_it():
    x = pt.zmatrix("x")
    pivots = 1j * np.array([*[1e120] * 4, *[1e-120] * 3, 3e-120])
    result = pytensor.function([x], L.det(x), mode="ONNX")(np.diag(pivots))
    np.testing.assert_allclose(result, 3, rtol=1e-14)


def test_single_precision_is_kept():
    x = pt.tensor3("x", dtype="complex64")
    a = np.stack([turned(POSITIVE["random"](3))] * 2).astype("complex64")
    compare_onnx_and_py([x], [L.cholesky(x), L.det(x)], [a], rtol=1e-5, atol=1e-5)
