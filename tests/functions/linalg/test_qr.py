"""QR factorisation of matrices of any shape and any batch."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.linalg

from pytensor_onnx import compile_onnx, export_onnx
from tests.conftest import PY, compare_onnx_and_py
from tests.functions.linalg.matrices import LARGE, generator
from tests.functions.linalg.spectra import SPECTRA, assert_errors, residual, skewness, wide

MODES = ("full", "economic", "r", "raw")
SHAPES = ((1, 1), (3, 5), (5, 3), (40, 33), (33, 40), (1, 4), (4, 1))


@pytest.fixture(scope="module")
def factorise(compiled):
    x = pt.matrix("x")
    return compiled([x], pt.linalg.qr(x))


def every_mode(x, **options):
    results = [pt.linalg.qr(x, mode=mode, **options) for mode in MODES]
    return [y for result in results for y in (result if isinstance(result, list) else [result])]


@pytest.mark.parametrize("pivoting", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_every_mode_is_lapacks_for_any_shape(pivoting):
    x = pt.matrix("x")
    results = every_mode(x, pivoting=pivoting)
    program = compare_onnx_and_py([x], results, [np.eye(3)[:, ::-1]], rtol=1e-12, atol=1e-13)
    reference = pytensor.function([x], results, mode=PY)
    for shape in SHAPES:
        a = generator(5).normal(size=shape) * np.logspace(0, 3, shape[1])
        for found, value in zip(program(a), reference(a), strict=True):
            assert found.shape == value.shape
            assert found.dtype == value.dtype
            np.testing.assert_allclose(found, value, rtol=1e-9, atol=1e-11 * np.abs(a).max())


def test_a_batch_is_factorised_as_its_matrices(factorise):
    x = pt.tensor("x", shape=(None,) * 4)
    of_batch = compile_onnx([x], pt.linalg.qr(x, pivoting=True, mode="economic"), verify=False)
    a = generator(1).normal(size=(2, 3, 6, 4))
    q, r, order = of_batch(a)
    for i in np.ndindex(2, 3):
        expected = scipy.linalg.qr(a[i], pivoting=True, mode="economic")
        np.testing.assert_array_equal(order[i], expected[2])
        np.testing.assert_allclose(q[i], expected[0], rtol=0, atol=1e-14)
        np.testing.assert_allclose(r[i], expected[1], rtol=0, atol=1e-14)
    for shape in ((0, 2, 3, 3), (2, 1, 0, 3), (1, 2, 3, 0), (1, 1, 0, 0)):
        q, r, order = of_batch(np.zeros(shape))
        k = min(shape[2:])
        assert q.shape == (*shape[:3], k)
        assert r.shape == (*shape[:2], k, shape[3])
        assert order.shape == (*shape[:2], shape[3])


def test_a_matrix_without_columns_has_the_identity_as_its_factor(factorise):
    q, r = factorise(np.zeros((3, 0)))
    np.testing.assert_array_equal(q, np.eye(3))
    assert r.shape == (3, 0)
    assert [x.shape for x in factorise(np.zeros((0, 2)))] == [(0, 0), (0, 2)]


@pytest.mark.parametrize("name", SPECTRA)
def test_backward_errors_are_lapacks(name, factorise):
    for n in (2, 3, 10, 33, 64):
        assert_factors(factorise, SPECTRA[name](n))


@pytest.mark.parametrize("n", LARGE)
def test_backward_errors_of_large_matrices_are_lapacks(n, factorise):
    assert_factors(factorise, SPECTRA["ill-conditioned"](n))


def test_backward_errors_of_other_shapes_are_lapacks(factorise):
    for shape in ((100, 7), (7, 100), (90, 60)):
        assert_factors(factorise, generator(2).normal(size=shape))


def test_backward_errors_in_float32_are_lapacks():
    x = pt.fmatrix("x")
    factorise = compile_onnx([x], pt.linalg.qr(x), verify=False)
    for name in ("random", "rank-deficient", "graded columns"):
        for n in (3, 50):
            assert_factors(factorise, SPECTRA[name](n).astype("float32"))


def assert_factors(factorise, a):
    errors = []
    for q, r in (factorise(a), scipy.linalg.qr(a)):
        assert q.dtype == r.dtype == a.dtype
        np.testing.assert_array_equal(np.tril(r, -1), 0)
        exact_q, exact_r = wide(q, r)
        errors.append([residual(exact_q @ exact_r, a), skewness(exact_q)])
    assert_errors(*errors, a)


def test_diagonal_elements_have_lapacks_signs(factorise):
    for a in (np.diag([1.0, -2.0, 0.0]), -np.eye(4), SPECTRA["triangular"](6), np.ones((3, 3))):
        np.testing.assert_allclose(factorise(a)[1], scipy.linalg.qr(a)[1], rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_non_finite_elements_give_nan(value, factorise):
    a = generator(6).normal(size=(6, 6))
    a[2, 0] = value
    q, r = factorise(a)
    assert np.isnan(q).any()
    assert np.isnan(r[:, 1:]).any()


def test_the_file_has_few_loops_and_no_size():
    x = pt.matrix("x")
    program = export_onnx([x], pt.linalg.qr(x), verify=False)
    nodes = [node for f in program.model.functions.values() for node in f.all_nodes()]
    assert sum(node.op_type in ("Loop", "Scan") for node in nodes) == 3
    assert len(program.proto.SerializeToString()) < 60_000


def test_gradients_are_pytensors():
    x = pt.matrix("x", shape=(5, 3))
    q, r = pt.linalg.qr(x, mode="economic")
    weights = generator(1).normal(size=(5, 3))
    value = (q * weights).sum() + (r**2 * weights[:3]).sum()
    a = generator(3).normal(size=(5, 3))
    compare_onnx_and_py([x], pt.grad(value, x), [a], rtol=1e-9, atol=1e-10)
