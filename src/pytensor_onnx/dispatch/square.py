"""Record that matrices are square, for Ops whose Python implementations take others as well."""

from collections.abc import Sequence

import onnx_ir as ir
from pytensor.graph.op import Op
from pytensor.tensor.linalg.decomposition.lu import LU, LUFactor

from pytensor_onnx.graph.builder import Builder


def record_square_matrices(op: Op, onnx: Builder, inputs: Sequence[ir.Value]) -> None:
    """Record that the matrices of an LU factorisation have as many rows as columns.

    Verification would otherwise compare the factors of matrices that are not square.
    """
    if isinstance(op, LU | LUFactor) and not onnx.in_branch and not onnx.in_function:
        (a,) = inputs
        rows, columns = onnx.dims(a)[-2:]
        onnx.scope.equate_dims(rows, columns)
        onnx.scope.name_dims(a)
