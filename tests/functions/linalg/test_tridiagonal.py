"""LU factors of tridiagonal matrices, and systems with them."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.tensor.linalg.solvers.tridiagonal import (
    tridiagonal_lu_factor,
    tridiagonal_lu_solve,
)

from tests.conftest import compare_onnx_and_py
from tests.functions.linalg import matrices
from tests.functions.linalg.test_complex_elimination import shaken


def tridiagonal(*shape: int) -> np.ndarray:
    a = np.random.default_rng(9).normal(size=shape)
    return np.triu(np.tril(a, 1), -1)


CASES = [
    ((), "float64"),
    ((3,), "float32"),
    pytest.param((), "complex128", marks=pytest.mark.slow),
    pytest.param((3,), "complex64", marks=pytest.mark.slow),
]


def values_of(dtype: str, value: np.ndarray) -> np.ndarray:
    return (shaken(value) if dtype.startswith("complex") else value).astype(dtype)


@pytest.mark.slow
@pytest.mark.parametrize(("batch", "dtype"), CASES)
def test_factors_and_solutions_are_pytensors(batch, dtype):
    a, c = (pt.tensor(name, dtype=dtype, shape=(None,) * (2 + len(batch))) for name in "ac")
    b = pt.tensor("b", dtype=dtype, shape=(None,) * (1 + len(batch)))
    factors = tridiagonal_lu_factor(a)
    results = [
        *factors,
        tridiagonal_lu_solve(factors, b, b_ndim=1),
        tridiagonal_lu_solve(factors, c, b_ndim=2, transposed=True),
    ]
    values = [tridiagonal(*batch, 12, 12), np.ones((*batch, 12)), np.ones((*batch, 12, 2))]
    tolerance = 1e-10 if dtype in {"float64", "complex128"} else 1e-3
    compare_onnx_and_py(
        [a, b, c],
        results,
        [values_of(dtype, value) for value in values],
        rtol=tolerance,
        atol=tolerance if dtype.startswith("complex") else 0,
    )


def test_two_systems_share_the_factors():
    a, b = pt.matrix("a"), pt.vector("b")
    results = [
        pt.linalg.solve(a, b, assume_a="tridiagonal"),
        pt.linalg.solve(a, 2 * b, assume_a="tridiagonal", transposed=True),
    ]
    program = compare_onnx_and_py([a, b], results, [tridiagonal(8, 8), np.ones(8)], rtol=1e-10)
    called = [node.op_type for node in program.model.graph]
    assert sum(name.startswith("LUFactorTridiagonal") for name in called) == 1


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_residuals_are_lapacks(dtype):
    a, b = pt.matrix("a", dtype=dtype), pt.matrix("b", dtype=dtype)
    solution = tridiagonal_lu_solve(tridiagonal_lu_factor(a), b, b_ndim=2)
    solve = pytensor.function([a, b], solution, mode="ONNX")
    for n in (1, 2, 3, 10, 100):
        value = values_of(dtype, tridiagonal(n, n))
        sides = values_of(dtype, np.random.default_rng(n).normal(size=(n, 2)))
        for scale in (1.0, 1e150, 1e-150):
            expected = np.linalg.solve(value, sides)
            found = solve(value * scale, sides) * scale
            errors = [matrices.residual(value, x, sides) for x in (found, expected)]
            matrices.assert_as_small(*errors)
    np.testing.assert_array_equal(solve(np.full((1, 1), 2.0), np.ones((1, 2))), [[0.5, 0.5]])
    assert not np.isfinite(solve(np.zeros((3, 3)), np.ones((3, 2)))).any()
