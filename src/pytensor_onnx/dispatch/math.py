"""Products of vectors and matrices."""

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply
from pytensor.tensor.blas import BatchedDot, Dot22, Dot22Scalar, Gemm, Gemv
from pytensor.tensor.math import Dot

from pytensor_onnx.builder import Builder
from pytensor_onnx.dispatch.basic import onnx_funcify
from pytensor_onnx.inference import dims_of


@onnx_funcify.register(Dot)
@onnx_funcify.register(Dot22)
@onnx_funcify.register(BatchedDot)
def lower_dot(
    op: Dot | Dot22 | BatchedDot, node: Apply, onnx: Builder, x: ir.Value, y: ir.Value
) -> ir.Value:
    """Multiply matrices in the dtype of the result; for bool, any product of a row is enough."""
    dtype = node.outputs[0].type.dtype
    _equate_inner_dims(onnx, x, y)
    if dtype == "bool":
        product = onnx.MatMul(onnx.cast(x, "int32"), onnx.cast(y, "int32"))
        return onnx.Greater(product, 0)
    return onnx.MatMul(onnx.cast(x, dtype), onnx.cast(y, dtype))


@onnx_funcify.register(Dot22Scalar)
def lower_dot22_scalar(
    op: Dot22Scalar, node: Apply, onnx: Builder, x: ir.Value, y: ir.Value, scale: ir.Value
) -> ir.Value:
    """Multiply matrices and scale the product."""
    return onnx.Mul(onnx.MatMul(x, y), scale)


@onnx_funcify.register(Gemm)
@onnx_funcify.register(Gemv)
def lower_gemm(
    op: Gemm | Gemv,
    node: Apply,
    onnx: Builder,
    z: ir.Value,
    alpha: ir.Value,
    x: ir.Value,
    y: ir.Value,
    beta: ir.Value,
) -> ir.Value:
    """Return ``beta * z + alpha * x @ y``; a factor that is the constant one leaves no node."""
    _equate_inner_dims(onnx, x, y)
    return onnx.Add(_scaled(onnx, beta, z), _scaled(onnx, alpha, onnx.MatMul(x, y)))


def _equate_inner_dims(onnx: Builder, x: ir.Value, y: ir.Value) -> None:
    rows, columns = dims_of(x), dims_of(y)
    if rows and columns and not onnx.in_branch and not onnx.in_function:
        onnx.scope.equate_dims(rows[-1], columns[-2] if len(columns) > 1 else columns[-1])


def _scaled(onnx: Builder, factor: ir.Value, x: ir.Value) -> ir.Value:
    if factor.const_value is not None and np.all(factor.const_value.numpy() == 1):
        return x
    return onnx.Mul(factor, x)
