"""PyTensor's rewrites that save factorisations, in exported files."""

import numpy as np
import pytensor.tensor as pt
import pytest
from pytensor.assumptions.specify import assume

from pytensor_onnx import export_onnx

linalg = pt.linalg
VALUE = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -1.0], [0.5, -1.0, 2.0]])
RIGHT = np.array([[1.0, 2.0], [0.0, -1.0], [3.0, 1.0]])
FACTOR = np.linalg.cholesky(VALUE)


def triangle(a):
    """Return the lower triangle of a matrix, which PyTensor does not see in a product of `tril`."""
    return assume(pt.tril(a), lower_triangular=True)


SAVED = {
    "the factor of a product of factors": (
        lambda a, b: [linalg.cholesky(linalg.cholesky(a) @ linalg.cholesky(a).T)],
        ["Cholesky"],
        [FACTOR],
    ),
    "the product with an inverse": (
        lambda a, b: [linalg.inv(a) @ b, b.T @ linalg.inv(a)],
        ["LUFactor", "PivotToPermutations", *["SolveTriangular"] * 4],
        [np.linalg.solve(VALUE, RIGHT), np.linalg.solve(VALUE, RIGHT).T],
    ),
    "the product with the inverse of a factor": (
        lambda a, b: [linalg.inv(linalg.cholesky(a)) @ b],
        ["Cholesky", "SolveTriangular"],
        [np.linalg.solve(FACTOR, RIGHT)],
    ),
    "the solution with a factor": (
        lambda a, b: [linalg.solve(linalg.cholesky(a), b)],
        ["Cholesky", "SolveTriangular"],
        [np.linalg.solve(FACTOR, RIGHT)],
    ),
    "the solution with a triangle": (
        lambda a, b: [linalg.solve(triangle(a), b)],
        ["SolveTriangular"],
        [np.linalg.solve(np.tril(VALUE), RIGHT)],
    ),
    "the solution with a diagonal matrix": (
        lambda a, b: [linalg.solve(pt.diag(pt.diagonal(a)), b)],
        [],
        [RIGHT / np.diag(VALUE)[:, None]],
    ),
    "solutions with one matrix": (
        lambda a, b: [linalg.solve(a, b, assume_a="pos"), linalg.solve(a, 2 * b, assume_a="pos")],
        ["Cholesky", "CholeskySolve", "CholeskySolve"],
        [np.linalg.solve(VALUE, RIGHT), 2 * np.linalg.solve(VALUE, RIGHT)],
    ),
    "a factor and a solution": (
        lambda a, b: [linalg.cholesky(a), linalg.solve(a, b, assume_a="pos")],
        ["Cholesky", "CholeskySolve"],
        [FACTOR, np.linalg.solve(VALUE, RIGHT)],
    ),
    "the determinant of a triangle": (
        lambda a, b: [linalg.det(triangle(a)), linalg.det(linalg.cholesky(a))],
        ["Cholesky"],
        [np.diag(VALUE).prod(), np.diag(FACTOR).prod()],
    ),
    "the determinant of a matrix with a factor": (
        lambda a, b: [linalg.cholesky(a), linalg.det(a)],
        ["Cholesky"],
        [FACTOR, np.linalg.det(VALUE)],
    ),
    "the logarithm of a determinant": (
        lambda a, b: [pt.log(pt.abs(linalg.det(a)))],
        ["SLogDet"],
        [np.linalg.slogdet(VALUE)[1]],
    ),
    "the inverse of an inverse": (lambda a, b: [linalg.inv(linalg.inv(a))], [], [VALUE]),
    "the inverse of a diagonal matrix": (
        lambda a, b: [linalg.inv(pt.diag(pt.diagonal(a)))],
        [],
        [np.diag(1 / np.diag(VALUE))],
    ),
}


@pytest.mark.few(3)
@pytest.mark.parametrize("name", SAVED)
def test_factorisations_are_saved_for(name):
    make, called, expected = SAVED[name]
    a, b = pt.matrix("a"), pt.matrix("b")
    program = export_onnx([a, b], make(a, b), verify=False)
    functions = {function.name for function in program.model.functions.values()}
    calls = [n.op_type for n in program.model.graph if n.op_type in functions]
    assert sorted(call.split("_")[0] for call in calls) == sorted(called)
    for found, value in zip(program(VALUE, RIGHT), expected, strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-13, atol=1e-14)
