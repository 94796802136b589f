"""LU factorisations, permutations and determinants."""

import numpy as np
import pytensor.tensor as pt
import pytest
import scipy.linalg
from numpy.testing import assert_allclose
from pytensor.tensor.linalg.decomposition.lu import pivot_to_permutation
from pytensor.tensor.linalg.summary import SLogDet

from pytensor_onnx import compile_onnx, export_onnx
from tests.conftest import compare_onnx_and_py
from tests.functions.linalg import matrices
from tests.functions.linalg.matrices import GENERAL, LARGE, SIZES


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(5).normal(size=shape)


@pytest.fixture(scope="module")
def factorise(compiled):
    x = pt.matrix("x")
    return compiled([x], pt.linalg.lu_factor(x))


@pytest.fixture(scope="module")
def factorise_batch(compiled):
    x = pt.tensor3("x")
    return compiled([x], pt.linalg.lu_factor(x))


def test_pivots_of_equal_magnitude_are_chosen_as_by_lapack(factorise, factorise_batch):
    for n in (2, 5, 20, 40):
        for seed in range(5):
            a = np.random.default_rng(seed).integers(-1, 2, size=(n, n)) + 3.0 * np.eye(n)[::-1]
            factors, pivots, failed = scipy.linalg.lapack.dgetrf(a)
            if failed:
                continue
            for found, positions in (
                factorise(a),
                [array[0] for array in factorise_batch(a[None])],
            ):
                np.testing.assert_array_equal(positions, pivots)
                np.testing.assert_allclose(found, factors, atol=1e-10)


@pytest.mark.slow
def test_factors_of_singular_matrices_are_scipys():
    x, y = pt.matrix("x"), pt.tensor3("y")
    a = np.array([[0.0, 1, 2], [0, 3, 4], [0, 3, 5]])
    results = [*pt.linalg.lu(x), *pt.linalg.lu(y), *pt.linalg.lu_factor(x)]
    compare_onnx_and_py([x, y], results, [a, np.stack([a, np.eye(3)])])


def test_empty_matrices_and_batches_have_empty_factors(factorise, factorise_batch):
    assert [array.shape for array in factorise(np.zeros((0, 0)))] == [(0, 0), (0,)]
    for shape in ((0, 3, 3), (2, 0, 0)):
        assert [y.shape for y in factorise_batch(np.zeros(shape))] == [shape, shape[:2]]


@pytest.mark.parametrize("name", GENERAL)
def test_backward_errors_are_lapacks(name, factorise, factorise_batch):
    for n in SIZES[1:]:
        a = GENERAL[name](n)
        expected = scipy.linalg.lapack.dgetrf(a)[:2]
        batch = [array[0] for array in factorise_batch(a[None])]
        if not np.all(np.diagonal(expected[0])):
            assert np.isnan(factorise(a)[0]).all()
            assert np.isnan(batch[0]).all()
            continue
        for found in (factorise(a), batch):
            assert_factors(a, found, expected)


@pytest.mark.slow
@pytest.mark.parametrize("n", LARGE)
def test_backward_errors_of_large_matrices_are_lapacks(n, factorise):
    for name in ("random", "ill-conditioned"):
        a = GENERAL[name](n)
        assert_factors(a, factorise(a), scipy.linalg.lapack.dgetrf(a)[:2])


def assert_factors(a, found, expected) -> None:
    errors = [error_of_factors(a, *factors) for factors in (found, expected)]
    matrices.assert_as_small(*errors)
    assert np.abs(np.tril(found[0], -1)).max(initial=0) <= 1 + 1e-15


def error_of_factors(a: np.ndarray, factors: np.ndarray, pivots: np.ndarray) -> float:
    rows = a.copy()
    for i, pivot in enumerate(pivots):
        rows[[i, pivot]] = rows[[pivot, i]]
    wide = factors.astype("longdouble")
    lower = np.tril(wide, -1) + np.eye(len(a))
    return matrices.relative(lower @ np.triu(wide) - rows, a)


@pytest.mark.parametrize("inverse", [True, False])
def test_permutations_of_pivots_are_pytensors(inverse):
    pivots = pt.vector("pivots", dtype="int32")
    value = np.array([3, 1, 5, 3, 5, 5], "int32")
    result = pivot_to_permutation(pivots, inverse=inverse)
    program = compare_onnx_and_py([pivots], result, [value])
    assert program(np.zeros(0, "int32"))[0].shape == (0,)


@pytest.mark.slow
def test_systems_with_factors_are_solved_as_by_pytensor():
    a, b, c = pt.matrix("a"), pt.vector("b"), pt.matrix("c")
    factors = pt.linalg.lu_factor(a)
    results = [
        pt.linalg.lu_solve(factors, b),
        pt.linalg.lu_solve(factors, c, trans=True),
    ]
    compare_onnx_and_py([a, b, c], results, [normal(6, 6), normal(6), normal(6, 2)], rtol=1e-10)


@pytest.mark.slow
def test_determinants_are_pytensors():
    x, y = pt.matrix("x"), pt.tensor3("y")
    sign, logarithm = SLogDet()(x)
    results = [pt.linalg.det(x), sign, logarithm, pt.linalg.det(y), *pt.linalg.slogdet(y)]
    values = [normal(20, 20), normal(3, 5, 5)]
    program = compare_onnx_and_py([x, y], results, values, rtol=1e-11)
    for value, found in zip(
        (np.zeros((0, 0)), np.zeros((2, 2)), np.ones((20, 20)), np.eye(3)[[1, 0, 2]]),
        ((1, 1, 0), (0, 0, -np.inf), (0, 0, -np.inf), (-1, -1, 0)),
        strict=True,
    ):
        np.testing.assert_array_equal(program(value, values[1])[:3], found)
    assert np.isnan(program(np.full((3, 3), np.nan), values[1])[:3]).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_determinants_within_range_have_partial_products_beyond_it(dtype):
    x = pt.tensor3("x", dtype=dtype)
    big = 1e30 if dtype == "float32" else 1e250
    pivots = [[*[big] * 6, *[1 / big] * 5, 3 / big], [7 / big, *[1 / big] * 5, *[-big] * 6]]
    value = np.array([np.diag(pivot) for pivot in [*pivots, [big] * 11 + [0]]], dtype)
    det = compile_onnx([x], pt.linalg.det(x), verify=False)
    assert_allclose(det(value), [3, 7, 0], rtol=32 * np.finfo(dtype).eps)
    assert_allclose(det(value[:2, :2, :2]), [np.inf, 0])
    largest = np.finfo(dtype).max
    ends = [np.diag([x, y, y, y]) for x, y in ((0, largest), (largest, 0.5), (np.inf, 0))]
    assert_allclose(det(np.array(ends, dtype)), [0, largest / 8, np.nan], rtol=1e-6)


@pytest.mark.slow
def test_gradients_are_pytensors():
    x = pt.matrix("x")
    lower, upper = pt.linalg.lu(x)[1:]
    factors = pt.linalg.lu_factor(x)[0]
    gradients = [
        pt.grad(pt.linalg.det(x), x),
        pt.grad(pt.linalg.slogdet(x)[1], x),
        pt.grad(pt.sin(lower).sum() + pt.sin(upper).sum(), x),
        pt.grad(pt.sin(factors).sum(), x),
    ]
    compare_onnx_and_py([x], gradients, [normal(5, 5)], rtol=1e-9, atol=1e-11)


@pytest.mark.few(1)
def test_matrices_that_are_not_square_are_refused(factorise, factorise_batch):
    for solve, shape in ((factorise, (2, 3)), (factorise_batch, (2, 3, 2))):
        with pytest.raises(ValueError, match="dimension"):
            solve(np.ones(shape))
    det = compile_onnx([x := pt.matrix("x")], pt.linalg.det(x), verify=False)
    with pytest.raises(ValueError, match="expected square matrix"):
        det(np.ones((2, 3)))
    x = pt.matrix("x", shape=(2, 3))
    with pytest.raises(ValueError, match="must be equal"):
        export_onnx([x], pt.linalg.lu_factor(x)[0], verify=False)


def test_files_are_verified_on_square_matrices():
    x = pt.matrix("x")
    program = export_onnx([x], [*pt.linalg.lu_factor(x), *pt.linalg.lu(x)])
    assert len({*program.model.graph.inputs[0].shape}) == 1
