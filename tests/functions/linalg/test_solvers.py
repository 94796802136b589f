"""Solutions of general and structured systems, and inverses."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.linalg

from pytensor_onnx import compile_onnx, export_onnx
from tests.conftest import compare_onnx_and_py
from tests.functions.linalg import matrices
from tests.functions.linalg.matrices import GENERAL, LARGE, POSITIVE, SIZES


def operands(batch: int, b_ndim: int, dtype: str = "float64") -> list[pt.TensorVariable]:
    return [
        pt.tensor(name, dtype=dtype, shape=(None,) * (batch + ndim))
        for name, ndim in (("a", 2), ("b", b_ndim))
    ]


def solver(batch: int = 0, **options):
    a, b = operands(batch, 2)
    return compile_onnx([a, b], pt.linalg.solve(a, b, b_ndim=2, **options), verify=False)


@pytest.fixture(scope="module")
def solve():
    return solver()


@pytest.fixture(scope="module")
def solve_batch():
    return solver(batch=1)


def structured(structure: str, *shape: int) -> np.ndarray:
    a = np.random.default_rng(7).normal(size=shape) + 3 * np.eye(shape[-1])
    if structure == "pos":
        return a @ a.swapaxes(-1, -2)
    if structure in ("tridiagonal", "banded"):
        return np.triu(np.tril(a, 1), -1)
    return a


def test_tridiagonal_systems_are_solved_as_by_lapack():
    a, b = operands(0, 2)
    stack, sides = operands(1, 1)
    results = [
        pt.linalg.solve(a, b, assume_a="tridiagonal", b_ndim=2),
        pt.linalg.solve(stack, sides, assume_a="tridiagonal", b_ndim=1),
    ]
    solve = compile_onnx([a, b, stack, sides], results, verify=False)
    for n in (1, 2, 3, 17, 100):
        values = np.random.default_rng(n).normal(size=(3, n, n))
        # The first matrix exchanges rows, the second none, the third has zeros on its diagonal.
        values[1] += 4 * np.eye(n)
        values[2] *= 1 - np.eye(n)
        bands = np.triu(np.tril(values, 1), -1)
        right = np.random.default_rng(n).normal(size=(3, n, 2))
        if n % 2:
            # The zero diagonal of odd order is singular.
            bands[2, -1, -1] = 1
        for value, others, columns in zip(bands, values, right, strict=True):
            whole = np.where(value == 0, others, value)
            found, vectors = solve(whole, columns, bands, right[..., 0])
            expected = scipy.linalg.solve(value, columns, assume_a="tridiagonal")
            errors = [matrices.residual(value, x, columns) for x in (found, expected)]
            matrices.assert_as_small(*errors)
        for value, x, column in zip(bands, vectors, right[..., 0], strict=True):
            np.testing.assert_allclose(value @ x, column, atol=1e-9)
    for count in (0, 2):
        shapes = (0, 0), (0, 3), (count, 0, 0), (count, 0)
        found = solve(*map(np.ones, shapes))
        assert [x.shape for x in found] == [(0, 3), (count, 0)]
    singular = np.stack([np.zeros((2, 2)), np.eye(2)])
    found, vectors = solve(singular[0], np.ones((2, 1)), singular, np.ones((2, 2)))
    assert np.isnan(found).all()
    np.testing.assert_array_equal(vectors, [[np.nan, np.nan], [1, 1]])


@pytest.mark.slow
def test_transposed_systems_are_solved_as_by_pytensor():
    a, b = operands(0, 1)
    c, _ = operands(0, 1)
    results = [
        pt.linalg.solve(a, b, transposed=True),
        pt.linalg.solve(c, b, assume_a="sym", transposed=True),
    ]
    value = structured("gen", 20, 20)
    compare_onnx_and_py([a, c, b], results, [value, value + value.T, np.ones(20)], rtol=1e-10)


@pytest.mark.parametrize("structure", ["diagonal", "upper triangular", "lower triangular"])
def test_structures_that_are_no_option_of_the_op_are_solved(structure):
    a, b = operands(0, 1)
    value = structured("gen", 5, 5)
    result = pt.linalg.solve(a, b, assume_a=structure)
    compare_onnx_and_py([a, b], result, [value, np.arange(5.0)])


def test_empty_systems_have_empty_solutions(solve, solve_batch):
    for n, columns in ((0, 0), (0, 2), (3, 0)):
        assert solve(np.eye(n), np.ones((n, columns))).shape == (n, columns)
    for count, n, columns in ((0, 3, 2), (2, 0, 2), (2, 3, 0)):
        sides = np.ones((count, n, columns))
        assert solve_batch(np.ones((count, n, n)), sides).shape == sides.shape


@pytest.mark.parametrize("name", GENERAL)
def test_backward_errors_are_lapacks(name, solve, solve_batch):
    for n in SIZES[2:]:
        a, b = GENERAL[name](n), matrices.generator(n).normal(size=(n, 2))
        found = [solve(a, b), solve_batch(a[None], b[None])[0]]
        for x in found:
            assert_solution(x, a, b)


def assert_solution(x: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    errors = [matrices.residual(a, y, b) for y in (x, np.linalg.solve(a, b))]
    matrices.assert_as_small(*errors)


@pytest.mark.slow
@pytest.mark.parametrize("n", LARGE)
def test_backward_errors_of_large_systems_are_lapacks(n, solve):
    for name in ("random", "ill-conditioned"):
        a, b = GENERAL[name](n), matrices.generator(n).normal(size=(n, 2))
        assert_solution(solve(a, b), a, b)


def test_backward_errors_of_positive_definite_systems_are_lapacks():
    solve = solver(assume_a="pos")
    for make in POSITIVE.values():
        for n in (3, 17, 50):
            a = make(n)
            b = matrices.generator(n).normal(size=(len(a), 2))
            assert_solution(solve(a, b), a, b)


def test_errors_of_inverses_are_lapacks():
    x = pt.matrix("x")
    invert = compile_onnx([x], pt.linalg.inv(x), verify=False)
    for name in ("random", "graded rows", "indefinite", "large", "small"):
        for n in (2, 16, 33):
            a = GENERAL[name](n)
            errors = [
                matrices.relative(a @ inverse - np.eye(n), a, inverse)
                for inverse in (invert(a), np.linalg.inv(a))
            ]
            matrices.assert_as_small(*errors)


def test_singular_matrices_have_no_inverse():
    x = pt.matrix("x")
    invert = pytensor.function([x], pt.linalg.inv(x), mode="ONNX")
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        invert(np.ones((2, 2)))


@pytest.mark.parametrize("n", [1, 2, 20])
def test_unknowns_of_singular_systems_are_nan(n, solve, solve_batch):
    a = np.zeros((n, n))
    assert np.isnan(solve(a, np.ones((n, 2)))).all()
    bad, good = solve_batch(np.stack([a, np.eye(n)]), np.ones((2, n, 2)))
    assert np.isnan(bad).all()
    np.testing.assert_array_equal(good, 1)
    indefinite = solver(assume_a="pos")(-np.eye(n), np.ones((n, 2)))
    assert np.isnan(indefinite).all()


@pytest.mark.parametrize("zero", [0, 12, 24, 30, 59])
def test_a_zero_column_in_any_place_makes_unknowns_nan(zero, solve):
    rng = np.random.default_rng(zero)
    a = rng.integers(-3, 4, size=(60, 60)).astype("float64")
    a[:, zero] = 0
    assert np.isnan(solve(a, np.ones((60, 2)))).all()


@pytest.mark.parametrize("n", [10, 11, 25, 26, 60])
def test_equal_magnitudes_and_exchanged_rows_are_solved(n, solve):
    rng = np.random.default_rng(n)
    rows = rng.permutation(n)
    np.testing.assert_array_equal(solve(np.eye(n)[rows], rows[:, None] + 0.0)[rows, 0], rows)
    signs = rng.choice([-1.0, 1.0], size=(n, n))
    x = rng.normal(size=(n, 2))
    np.testing.assert_allclose(solve(signs, signs @ x), x, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("n", [3, 20])
def test_unknowns_of_systems_with_nan_are_nan(n, solve, solve_batch):
    a = structured("gen", n, n)
    a[1, 1] = np.nan
    assert np.isnan(solve(a, np.ones((n, 2)))).all()
    bad, good = solve_batch(np.stack([a, np.eye(n)]), np.ones((2, n, 2)))
    assert np.isnan(bad).all()
    np.testing.assert_array_equal(good, 1)


@pytest.mark.parametrize("structure", ["gen", "pos"])
def test_gradients_are_pytensors(structure):
    a, b = operands(0, 2)
    cost = (pt.linalg.solve(a, b, assume_a=structure) ** 2).sum()
    values = [structured("pos", 5, 5), np.ones((5, 2))]
    compare_onnx_and_py([a, b], pt.grad(cost, [a, b]), values, rtol=1e-9, atol=1e-12)


def test_products_with_inverses_and_shared_factors_are_solved():
    a, b, c = pt.matrix("a"), pt.matrix("b"), pt.matrix("c")
    results = [pt.linalg.inv(a) @ b, pt.linalg.solve(a, c), pt.linalg.solve(a.T, b)]
    values = [structured("gen", 6, 6), np.ones((6, 2)), np.eye(6)]
    program = compare_onnx_and_py([a, b, c], results, values, rtol=1e-10, atol=1e-13)
    called = [node.op_type for node in program.model.graph]
    assert sum(name.startswith("LUFactor") for name in called) == 1
    assert not any(name.startswith(("MatrixInverse", "Solve_")) for name in called)


def test_shapes_that_do_not_fit_are_refused(solve, solve_batch):
    for call, batch in ((solve, ()), (solve_batch, (2,))):
        with pytest.raises(ValueError, match="expected square matrix"):
            call(np.ones((*batch, 2, 3)), np.ones((*batch, 3, 1)))
        with pytest.raises(ValueError, match="incompatible dimensions"):
            call(np.ones((*batch, 3, 3)), np.ones((*batch, 2, 1)))
    a = pt.matrix("a", shape=(2, 3))
    with pytest.raises(ValueError, match="must be equal"):
        export_onnx([a], pt.linalg.inv(a), verify=False)
