"""Operations on single matrices of one to three rows are elementwise, and as accurate as LAPACK."""

from itertools import permutations

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.linalg

from pytensor_onnx import compile_onnx
from tests.conftest import compare_onnx_and_py
from tests.functions.linalg import matrices
from tests.functions.linalg.matrices import NOT_POSITIVE, generator, random_positive
from tests.functions.linalg.spectra import REGULAR, SYMMETRIC

SIZES = (1, 2, 3)
RTOL = {"float32": 1e-4, "float64": 1e-11}
TRIANGLES = (True, False)


def operations(a, b, positive):
    """Return operations on a matrix, right-hand sides and a positive definite matrix."""
    ndim, results = b.type.ndim, []
    for lower in TRIANGLES:
        factor = pt.linalg.cholesky(positive, lower=lower)
        results += [
            factor,
            pt.linalg.cho_solve((factor, lower), b, b_ndim=ndim),
            *(
                pt.linalg.solve(positive, b, assume_a=kind, lower=lower, b_ndim=ndim)
                for kind in ("pos", "sym", "her")
            ),
            *(
                pt.linalg.solve_triangular(a, b, lower=lower, unit_diagonal=unit, b_ndim=ndim)
                for unit in (True, False)
            ),
        ]
    results += [pt.linalg.solve(a, b, b_ndim=ndim), pt.linalg.inv(a)]
    return [*results, pt.linalg.det(a), *pt.linalg.slogdet(a)]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.slow
def test_results_are_those_of_pytensor(dtype):
    inputs, results, values = [], [], []
    for n in SIZES:
        for shape in ((n,), (n, 2)):
            a, p = (pt.tensor(dtype=dtype, shape=(n, n)) for _ in range(2))
            b = pt.tensor(dtype=dtype, shape=(n, None)[: len(shape)])
            inputs += [a, b, p]
            results += operations(a, b, p)
            rng = generator(10 * n)
            drawn = [rng.normal(size=(n, n)), rng.normal(size=shape), random_positive(n)]
            values += [x.astype(dtype) for x in drawn]
    program = compare_onnx_and_py(inputs, results, values, rtol=RTOL[dtype], atol=RTOL[dtype])
    # The determinant of three rows keeps within the range of floats by more than products.
    called = sorted({node.op_type for node in program.model.graph if node.domain})
    assert called == [f"Det_{dtype}"]


@pytest.mark.parametrize("n", SIZES)
def test_backward_errors_are_lapacks(n):
    a, b = pt.matrix("a", shape=(n, n)), pt.matrix("b", shape=(n, 2))
    solve = compile_onnx([a, b], [pt.linalg.solve(a, b), pt.linalg.inv(a)], verify=False)
    symmetric = compile_onnx([a, b], pt.linalg.solve(a, b, assume_a="sym"), verify=False)
    side = generator(n).normal(size=(n, 2))
    for name in sorted(REGULAR):
        value = REGULAR[name](n)
        x, inverse = solve(value, side)
        expected = scipy.linalg.solve(value, side)
        errors = [matrices.residual(value, y, side) for y in (x, expected)]
        matrices.assert_as_small(*errors)
        unit = np.eye(n)
        errors = [matrices.residual(value, y, unit) for y in (inverse, np.linalg.inv(value))]
        matrices.assert_as_small(*errors)
    for name in sorted(SYMMETRIC):
        value = SYMMETRIC[name](n)
        if abs(np.linalg.det(value)) > 0 and name in REGULAR:
            expected = scipy.linalg.solve(value, side, assume_a="sym")
            errors = [matrices.residual(value, y, side) for y in (symmetric(value, side), expected)]
            matrices.assert_as_small(*errors)


@pytest.mark.parametrize("n", SIZES)
def test_rows_are_exchanged_in_every_order(n):
    a, b = pt.matrix("a", shape=(n, n)), pt.vector("b", shape=(n,))
    results = [pt.linalg.solve(a, b), pt.linalg.inv(a), pt.linalg.det(a), *pt.linalg.slogdet(a)]
    run = compile_onnx([a, b], results, verify=False)
    side = np.arange(1.0, n + 1)
    for order in permutations(range(n)):
        value = np.triu(np.full((n, n), 0.5), 1) + 2 * np.eye(n)
        value = value[list(order)]
        x, inverse, det, sign, logarithm = run(value, side)
        np.testing.assert_allclose(x, np.linalg.solve(value, side), rtol=1e-15, atol=1e-15)
        np.testing.assert_allclose(inverse, np.linalg.inv(value), rtol=1e-15, atol=1e-15)
        np.testing.assert_allclose(det, np.linalg.det(value), rtol=1e-15)
        expected = np.linalg.slogdet(value)
        np.testing.assert_allclose([sign, logarithm], expected, rtol=1e-15)


@pytest.mark.parametrize("n", SIZES)
def test_one_triangle_is_read(n):
    a, b = pt.matrix("a", shape=(n, n)), pt.vector("b", shape=(n,))
    value, side = random_positive(n), generator(n).normal(size=n)
    inputs, results, values = [b], [], [side]
    for lower in TRIANGLES:
        a = pt.matrix(shape=(n, n))
        inputs.append(a)
        read = np.tri(n, dtype=bool) if lower else np.tri(n, dtype=bool).T
        values.append(np.where(read, value, np.nan))
        results += [pt.linalg.solve(a, b, assume_a=kind, lower=lower) for kind in ("sym", "her")]
        if lower:
            # PyTensor reads the lower triangle in any case.
            results.append(pt.linalg.solve(a, b, assume_a="pos"))
    for x in compile_onnx(inputs, results, verify=False)(*values):
        np.testing.assert_allclose(x, np.linalg.solve(value, side), rtol=1e-12)


@pytest.mark.parametrize("n", SIZES[1:])
def test_solutions_of_singular_and_indefinite_matrices_are_nan(n):
    a, b = pt.matrix("a", shape=(n, n)), pt.matrix("b", shape=(n, 2))
    solutions = [pt.linalg.solve(a, b, assume_a=kind) for kind in ("gen", "sym")]
    solutions.append(pt.linalg.solve_triangular(a, b, lower=True))
    solutions.append(pt.linalg.cho_solve((a, True), b))
    run = compile_onnx([a, b], solutions, verify=False)
    side = np.ones((n, 2))
    for i in range(n):
        value = np.eye(n)
        value[i, i] = 0
        assert all(np.isnan(x).all() for x in run(value, side))
    assert all(np.isnan(x).all() for x in run(np.ones((n, n)), side)[:2])
    positive = [pt.linalg.cholesky(a), pt.linalg.solve(a, b, assume_a="pos")]
    run = compile_onnx([a, b], positive, verify=False)
    for name in sorted(NOT_POSITIVE):
        assert all(np.isnan(x).all() for x in run(NOT_POSITIVE[name](n), side))


def test_rows_of_another_dtype_are_not_computed_with_in_it():
    x, y = pt.tensor("x", dtype="float32", shape=(2,)), pt.tensor("y", dtype="float64", shape=(2,))
    results = [pt.linalg.cholesky(pt.stack([x, y]), lower=lower) for lower in TRIANGLES]
    arrays = [np.array([100.3, 50.2], "float32"), np.array([7.0, 90.3])]
    compare_onnx_and_py([x, y], results, arrays, rtol=1e-14)


def test_one_number_is_divided_by_as_in_pytensor():
    a, b = pt.matrix("a", shape=(1, 1)), pt.vector("b", shape=(1,))
    results = [pt.linalg.solve(a, b), pt.linalg.solve(a, b, assume_a="pos")]
    solve = compile_onnx([a, b], results, verify=False)
    assert solve([[4.0]], [2.0]) == [0.5, 0.5]
    function = pytensor.function([a, b], results, mode="FAST_RUN")
    for value in (0.0, -1.0, np.inf, np.nan):
        np.testing.assert_array_equal(solve([[value]], [2.0]), function([[value]], [2.0]))


def test_inverses_of_singular_matrices_are_an_error():
    for n in SIZES:
        a = pt.matrix("a", shape=(n, n))
        invert = pytensor.function([a], pt.linalg.inv(a), mode="ONNX")
        with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
            invert(np.zeros((n, n)))
        assert np.isnan(invert(np.full((n, n), np.nan))).all()


def test_determinants_of_singular_matrices_are_zero():
    a = pt.matrix("a", shape=(2, 2))
    run = compile_onnx([a], [pt.linalg.det(a), *pt.linalg.slogdet(a)], verify=False)
    for value in ([[0.0, 3.0], [0.0, 4.0]], [[1.0, 2.0], [2.0, 4.0]], np.zeros((2, 2))):
        det, sign, logarithm = run(value)
        assert (det, sign, logarithm) == (0, 0, -np.inf)
    assert run([[1e-200, 0.0], [0.0, 1e300]])[0] == pytest.approx(1e100)


def test_no_right_hand_sides():
    for n in SIZES:
        a, b = pt.matrix("a", shape=(n, n)), pt.matrix("b", shape=(n, None))
        solve = compile_onnx([a, b], pt.linalg.solve(a, b), verify=False)
        assert solve(np.eye(n), np.ones((n, 0))).shape == (n, 0)


def test_rows_of_unknown_number_are_checked_by_the_function():
    a, b = pt.matrix("a", shape=(2, 2)), pt.vector("b")
    solve = compile_onnx([a, b], pt.linalg.solve(a, b), verify=False)
    assert solve.model.functions
    with pytest.raises(ValueError, match="incompatible dimensions"):
        solve(np.eye(2), np.ones(3))


@pytest.mark.slow
def test_a_step_of_a_kalman_filter_calls_no_function():
    ys = pt.matrix("ys", shape=(None, 2))

    def step(y, mean, cov):
        total = cov + np.eye(2)
        gain = pt.linalg.solve(total, cov, assume_a="pos").T
        return mean + gain @ (y - mean), cov - gain @ cov

    means, covs = pytensor.scan(step, [ys], [pt.zeros(2), pt.eye(2)], return_updates=False)
    program = compare_onnx_and_py([ys], [means, covs], [generator(2).normal(size=(5, 2))])
    assert not program.model.functions
