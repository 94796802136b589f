"""Cholesky factors of any size and any batch."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx import compile_onnx, export_onnx
from pytensor_onnx.functions.linalg.blocks import BLOCK
from tests.functions.linalg import matrices
from tests.functions.linalg.matrices import LARGE, NOT_POSITIVE, POSITIVE, SIZES


def positive(*shape: int) -> np.ndarray:
    a = np.random.default_rng(0).normal(size=shape)
    return a @ a.swapaxes(-1, -2) + np.eye(shape[-1])


def factorised(batch: int = 0, dtype: str = "float64"):
    x = pt.tensor("x", dtype=dtype, shape=(None,) * (2 + batch))
    return compile_onnx([x], pt.linalg.cholesky(x), verify=False)


@pytest.fixture(scope="module")
def factorise():
    return factorised()


@pytest.fixture(scope="module")
def factorise_batch():
    return factorised(batch=1)


def test_one_triangle_is_read_at_any_size(factorise):
    for n in (1, 2, 9, 10, 11, 24, 25, 26, 49, 50, 51):
        a = positive(n, n)
        given = np.where(np.tri(n, dtype=bool), a, np.nan)
        np.testing.assert_allclose(factorise(given), np.linalg.cholesky(a), rtol=0, atol=1e-12)


@pytest.mark.slow
def test_empty_matrices_and_batches_have_empty_factors(factorise, factorise_batch):
    assert factorise(np.zeros((0, 0))).shape == (0, 0)
    for shape in ((0, 3, 3), (2, 0, 0), (0, 0, 0)):
        assert factorise_batch(np.zeros(shape)).shape == shape
    of_several_axes = factorised(batch=2)
    for shape in ((2, 0, 3, 3), (2, 3, 0, 0), (1, 2, 1, 1)):
        np.testing.assert_array_equal(of_several_axes(np.ones(shape)), np.ones(shape))


@pytest.mark.parametrize("name", POSITIVE)
def test_backward_errors_are_lapacks(name, factorise, factorise_batch):
    for n in SIZES:
        a = POSITIVE[name](n)
        expected = np.linalg.cholesky(a)
        for found in (factorise(a), *factorise_batch(np.stack([a, np.eye(len(a))]))[:1]):
            assert_factor(found, a, expected)


@pytest.mark.slow
@pytest.mark.parametrize("n", LARGE)
def test_backward_errors_of_large_matrices_are_lapacks(n, factorise):
    a = POSITIVE["ill-conditioned"](n)
    assert_factor(factorise(a), a, np.linalg.cholesky(a))


@pytest.mark.parametrize("n", [1, 4, BLOCK, BLOCK + 1, 2 * BLOCK, 64])
def test_models_of_a_known_size_load_and_run(n):
    """ONNX Runtime knows all choices by size when it loads such a model."""
    matrix = pt.matrix("matrix", shape=(n, n), dtype="float64")
    value = positive(n, n)
    found = compile_onnx([matrix], pt.linalg.cholesky(matrix), verify=False)(value)
    assert_factor(found, value, np.linalg.cholesky(value))


def test_backward_errors_in_float32_are_lapacks():
    factorise = factorised(dtype="float32")
    for name in ("random", "graded"):
        for n in (3, 50):
            a = POSITIVE[name](n).astype("float32")
            assert_factor(factorise(a), a, np.linalg.cholesky(a))


def assert_factor(found: np.ndarray, a: np.ndarray, expected: np.ndarray) -> None:
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(np.triu(found, 1), 0)
    # Products of large matrices in long double take seconds.
    wide = "longdouble" if len(a) <= max(SIZES) else "float64"
    errors = [
        matrices.relative(factor @ factor.T - a, a)
        for factor in (found.astype(wide), expected.astype(wide))
    ]
    matrices.assert_as_small(*errors, dtype=str(a.dtype))


@pytest.mark.parametrize("name", NOT_POSITIVE)
def test_matrices_that_are_not_positive_definite_give_nan_everywhere(
    name, factorise, factorise_batch
):
    for n in (1, 2, 17, 25, 40):
        a = NOT_POSITIVE[name](n)
        if n == 1 and name == "indefinite":
            a = -np.ones((1, 1))
        assert np.isnan(factorise(a)).all()
        bad, good = factorise_batch(np.stack([a, np.eye(n)]))
        assert np.isnan(bad).all()
        np.testing.assert_array_equal(good, np.eye(n))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_non_finite_elements_give_nan_everywhere(value, factorise, factorise_batch):
    for n, i, j in ((3, 1, 0), (20, 18, 2), (20, 19, 18), (30, 28, 2), (30, 29, 28)):
        a = positive(n, n)
        a[i, j] = value
        assert np.isnan(factorise(a)).all()
        bad, good = factorise_batch(np.stack([a, np.eye(n)]))
        assert np.isnan(bad).all()
        np.testing.assert_array_equal(good, np.eye(n))


def test_an_error_is_raised_if_asked_for():
    x = pt.matrix("x")
    with pytest.warns(FutureWarning):
        factor = pt.linalg.cholesky(x, on_error="raise")
    factorise = pytensor.function([x], factor, mode="ONNX")
    np.testing.assert_array_equal(factorise(np.eye(2)), np.eye(2))
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        factorise(-np.eye(2))


@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (17, 16)])
def test_matrices_that_are_not_square_are_refused(shape, factorise, factorise_batch):
    with pytest.raises(ValueError, match="Input array is expected to be square"):
        factorise(np.ones(shape))
    with pytest.raises(ValueError, match="Input array is expected to be square"):
        factorise_batch(np.ones((2, *shape)))
    x = pt.matrix("x", shape=shape)
    with pytest.raises(ValueError, match="must be equal"):
        export_onnx([x], pt.linalg.cholesky(x), verify=False)


def test_the_file_has_a_loop_over_blocks_and_no_size():
    x, batch = pt.matrix("x"), pt.tensor3("batch")
    results = [pt.linalg.cholesky(x), pt.linalg.cholesky(batch)]
    program = export_onnx([x, batch], results, verify=False)
    loops = {
        function.name: sum(node.op_type == "Loop" for node in function.all_nodes())
        for function in program.model.functions.values()
    }
    assert loops == {
        "Cholesky_lower_float64": 1,
        "Cholesky_lower_float64_batch1": 3,
        "EliminateFew_float64": 0,
        "EliminateRows_float64": 0,
        "RowsBelow_float64": 0,
    }
    assert len(program.proto.SerializeToString()) < 80_000
