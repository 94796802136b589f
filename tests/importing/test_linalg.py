"""Functions of linear algebra in files are PyTensor's Ops again, as the records show of each."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.tensor import linalg

from pytensor_onnx import export_onnx, from_onnx


def test_sizes_that_a_function_relies_on_are_no_arguments_of_its_op():
    a, b = pt.tensor("a", dtype="float64", shape=(4, 4)), pt.dvector("b")
    outputs = [linalg.solve_triangular(a, b, lower=True), linalg.cholesky(a)]
    imported = from_onnx(export_onnx([a, b], outputs, verify=False))(a, b)
    names = [type(x.owner.op.core_op).__name__ for x in imported]
    assert names == ["SolveTriangular", "Cholesky"]
    assert imported[0].owner.op.core_op.b_ndim == 1


@pytest.mark.slow
def test_imported_factors_have_gradients():
    a = pt.dmatrix("a")
    program = export_onnx([a], linalg.cholesky(a), verify=False)
    gradient = pytensor.grad(from_onnx(program)(a).sum(), a)
    expected = pytensor.grad(linalg.cholesky(a).sum(), a)
    x = np.array([[4.0, 1.0], [1.0, 3.0]])
    np.testing.assert_allclose(gradient.eval({a: x}), expected.eval({a: x}), rtol=1e-14)
