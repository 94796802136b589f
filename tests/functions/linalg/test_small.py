"""Cholesky factors and triangular systems of at most three rows, a number that is known."""

import numpy as np
import pytensor.tensor as pt
import pytest
import scipy.linalg

from pytensor_onnx import compile_onnx
from tests.conftest import compare_onnx_and_py
from tests.functions.linalg import matrices
from tests.functions.linalg.matrices import NOT_POSITIVE, POSITIVE, generator, random_positive

SIZES = (1, 2, 3)
RTOL = {"float32": 1e-5, "float64": 1e-13}


def without_loop(program) -> bool:
    functions = program.model.functions.values()
    return not any(node.op_type == "Loop" for f in functions for node in f.all_nodes())


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_factors_are_those_of_the_triangle_that_is_read(dtype):
    inputs, results, values = [], [], []
    for n in SIZES:
        for batch in ((), (4,), (2, 1)):
            for lower in (True, False):
                x = pt.tensor(dtype=dtype, shape=(*(None for _ in batch), n, n))
                inputs.append(x)
                results.append(pt.linalg.cholesky(x, lower=lower))
                value = random_positive(n) * np.ones((*batch, 1, 1))
                read = np.tri(n, dtype=bool) if lower else np.tri(n, dtype=bool).T
                values.append(np.where(read, value, np.nan).astype(dtype))
    program = compare_onnx_and_py(inputs, results, values, rtol=RTOL[dtype])
    assert without_loop(program)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_solutions_are_those_of_the_triangle_that_is_read(dtype):
    inputs, results, values = [], [], []
    cases = [(n, lower, unit) for n in SIZES for lower in (True, False) for unit in (True, False)]
    for n, lower, unit in cases:
        for batch, b_ndim in (((), 1), ((2,), 2)):
            free = (None,) * len(batch)
            a = pt.tensor(dtype=dtype, shape=(*free, n, n))
            b = pt.tensor(dtype=dtype, shape=(*free, n, None)[: len(free) + b_ndim])
            options = {"lower": lower, "unit_diagonal": unit, "b_ndim": b_ndim}
            inputs += [a, b]
            results.append(pt.linalg.solve_triangular(a, b, **options))
            value = generator(n).normal(size=(*batch, n, n)) + 3 * np.eye(n)
            read = np.tri(n, k=-unit, dtype=bool) if lower else np.tri(n, k=-unit, dtype=bool).T
            values.append(np.where(read, value, np.nan).astype(dtype))
            sides = generator(n).normal(size=(*batch, n, 2)[: len(batch) + b_ndim])
            values.append(sides.astype(dtype))
    program = compare_onnx_and_py(inputs, results, values, rtol=RTOL[dtype], atol=1e-6)
    assert without_loop(program)


@pytest.mark.parametrize("n", SIZES)
def test_errors_are_lapacks_and_failures_nan(n):
    a, b = pt.tensor("a", shape=(None, n, n)), pt.tensor("b", shape=(None, n, 2))
    factor = pt.linalg.cholesky(a)
    results = [factor, pt.linalg.solve_triangular(factor, b, lower=True, b_ndim=2)]
    run = compile_onnx([a, b], results, verify=False)
    classes = {name: make for name, make in POSITIVE.items() if name != "Hilbert"}
    values = np.stack([make(n) for make in classes.values()])
    sides = generator(n).normal(size=(len(values), n, 2))
    for value, side, found, x in zip(values, sides, *run(values, sides), strict=True):
        expected = np.linalg.cholesky(value)
        errors = [matrices.relative(y @ y.T - value, value) for y in (found, expected)]
        matrices.assert_as_small(*errors)
        solution = scipy.linalg.solve_triangular(found, side, lower=True)
        errors = [matrices.residual(found, y, side) for y in (x, solution)]
        matrices.assert_as_small(*errors)
    for x in run(np.ones((0, n, n)), np.ones((0, n, 2))):
        assert len(x) == 0
    if n == 1:
        # PyTensor writes the factor as a root, and takes those of zero and infinity as well.
        return
    failures = [make(n) for make in NOT_POSITIVE.values()]
    infinite, unknown = random_positive(n), random_positive(n)
    infinite[-1, -1], unknown[-1, 0] = np.inf, np.nan
    values = np.stack([*failures, infinite, unknown, np.eye(n)])
    factors, solutions = run(values, np.ones((len(values), n, 2)))
    assert np.isnan(factors[:-1]).all()
    assert np.isnan(solutions[:-1]).all()
    np.testing.assert_array_equal(factors[-1], np.eye(n))


def test_shapes_that_do_not_fit_and_zeros_on_the_diagonal():
    a, b = pt.matrix("a", shape=(3, 3)), pt.matrix("b")
    # The loop is written out where both sizes are known.
    solve = compile_onnx([a, b], pt.linalg.solve_triangular(a, b, lower=True), verify=False)
    with pytest.raises(ValueError, match="shapes of a and b are incompatible"):
        solve(np.eye(3), np.ones((4, 2)))
    x = pt.matrix("x", shape=(3, None))
    factorise = compile_onnx([x], pt.linalg.cholesky(x), verify=False)
    with pytest.raises(ValueError, match="Input array is expected to be square"):
        factorise(np.ones((3, 4)))
    c = pt.matrix("c", shape=(3, None))
    solve = compile_onnx([a, c], pt.linalg.solve_triangular(a, c, lower=True), verify=False)
    assert without_loop(solve)
    assert np.isnan(solve(np.diag([1.0, 1, 0]), np.ones((3, 2)))).all()
    assert solve(np.eye(3), np.ones((3, 0))).shape == (3, 0)


def test_larger_matrices_of_known_size_share_the_functions_of_unknown_size():
    inputs = [pt.matrix(shape=(n, n)) for n in (4, 8, 20)]
    factors = [pt.linalg.cholesky(x) for x in inputs]
    solutions = [pt.linalg.solve_triangular(f, f[0], lower=True) for f in factors]
    values = [random_positive(n) for n in (4, 8, 20)]
    program = compare_onnx_and_py(inputs, [*factors, *solutions], values, rtol=1e-11)
    names = [f.name for f in program.model.functions.values()]
    assert sum(name.startswith("Cholesky_") for name in names) == 1
