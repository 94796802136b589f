"""Functions of linear algebra in files are PyTensor's Ops again."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.tensor import linalg

from pytensor_onnx import export_onnx, from_onnx

OPERATIONS = {
    "Cholesky": lambda a, b: [linalg.cholesky(a), linalg.cholesky(a, lower=False)],
    "SolveTriangular": lambda a, b: [
        linalg.solve_triangular(a, b, lower=True),
        linalg.solve_triangular(a, b, unit_diagonal=True),
    ],
    "Solve": lambda a, b: [linalg.solve(a, b)],
    "CholeskySolve": lambda a, b: [linalg.cho_solve((a, True), b)],
    "MatrixInverse": lambda a, b: [linalg.inv(a)],
    "MatrixPinv": lambda a, b: [linalg.pinv(a)],
    "QR": lambda a, b: [*linalg.qr(a), linalg.qr(a, mode="r"), *linalg.qr(a, pivoting=True)],
    "SVD": lambda a, b: [*linalg.svd(a, full_matrices=False)],
    "Eigh": lambda a, b: [*linalg.eigh(a)],
    "Det": lambda a, b: [linalg.det(a)],
    "SLogDet": lambda a, b: [*linalg.slogdet(a)],
    "LU": lambda a, b: [*linalg.lu(a), *linalg.lu(a, p_indices=True)],
    "LUFactor": lambda a, b: [*linalg.lu_factor(a)],
    "Expm": lambda a, b: [linalg.expm(a)],
    "Schur": lambda a, b: [*linalg.schur(a)],
    "QZ": lambda a, b: [*linalg.qz(a, b)],
}


@pytest.mark.parametrize(("name", "rank"), [(name, 2 + i % 2) for i, name in enumerate(OPERATIONS)])
def test_functions_are_ops_again(name, rank):
    a, b = (pt.tensor(x, dtype="float64", shape=(None,) * rank) for x in "ab")
    outputs = OPERATIONS[name](a, b)
    program = export_onnx([a, b], outputs, verify=False)
    given = [pt.tensor(dtype="float64", shape=(None,) * rank) for _ in range(2)]
    imported = from_onnx(program)(*given)
    imported = imported if isinstance(imported, list | tuple) else [imported]
    assert {type(x.owner.op.core_op).__name__ for x in imported} == {name}
    assert [x.type.dtype for x in imported] == [x.type.dtype for x in outputs]
    again = export_onnx(given, list(imported), verify=False)
    assert len(again.model.graph) == len(program.model.graph)
    rng = np.random.default_rng(1)
    numbers = rng.normal(size=(2, 3, 3))[(0,) * (3 - rank)]
    arrays = [numbers @ np.swapaxes(numbers, -1, -2) + np.eye(3), numbers]
    quick = {"mode": "FAST_COMPILE", "on_unused_input": "ignore"}
    expected = pytensor.function([a, b], outputs, **quick)(*arrays)
    found = pytensor.function(given, list(imported), **quick)(*arrays)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_sizes_that_a_function_relies_on_are_no_arguments_of_its_op():
    a, b = pt.tensor("a", dtype="float64", shape=(4, 4)), pt.dvector("b")
    outputs = [linalg.solve_triangular(a, b, lower=True), linalg.cholesky(a)]
    imported = from_onnx(export_onnx([a, b], outputs, verify=False))(a, b)
    names = [type(x.owner.op.core_op).__name__ for x in imported]
    assert names == ["SolveTriangular", "Cholesky"]
    assert imported[0].owner.op.core_op.b_ndim == 1


def test_imported_factors_have_gradients():
    a = pt.dmatrix("a")
    program = export_onnx([a], linalg.cholesky(a), verify=False)
    gradient = pytensor.grad(from_onnx(program)(a).sum(), a)
    expected = pytensor.grad(linalg.cholesky(a).sum(), a)
    x = np.array([[4.0, 1.0], [1.0, 3.0]])
    np.testing.assert_allclose(gradient.eval({a: x}), expected.eval({a: x}), rtol=1e-14)
