"""Products of vectors and matrices."""

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply
from pytensor.tensor.blas import BatchedDot, Dot22, Dot22Scalar, Gemm, Gemv
from pytensor.tensor.math import Dot

from pytensor_onnx.builder import Builder
from pytensor_onnx.dims import dims_of
from pytensor_onnx.dispatch.basic import onnx_funcify


@onnx_funcify.register(Dot)
@onnx_funcify.register(Dot22)
@onnx_funcify.register(BatchedDot)
def lower_dot(
    op: Dot | Dot22 | BatchedDot, node: Apply, onnx: Builder, x: ir.Value, y: ir.Value
) -> ir.Value:
    """Multiply matrices in the dtype of the result; for bool, any product of a row is enough."""
    dtype = node.outputs[0].type.dtype
    _equate_dims(onnx, x, y, batched=isinstance(op, BatchedDot))
    if dtype == "bool":
        product = onnx.MatMul(onnx.cast(x, "int32"), onnx.cast(y, "int32"))
        return onnx.Greater(product, 0)
    return onnx.MatMul(onnx.cast(x, dtype), onnx.cast(y, dtype))


@onnx_funcify.register(Dot22Scalar)
def lower_dot22_scalar(
    op: Dot22Scalar, node: Apply, onnx: Builder, x: ir.Value, y: ir.Value, scale: ir.Value
) -> ir.Value:
    """Multiply matrices and scale the product."""
    _equate_dims(onnx, x, y)
    return _scaled(onnx, scale, onnx.MatMul(x, y))


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
    """Return ``beta * z + alpha * x @ y``, in which a factor of zero takes away NaN as well.

    A factor that is the constant one leaves no node.
    """
    _equate_dims(onnx, x, y)
    product = _scaled(onnx, alpha, onnx.MatMul(x, y))
    if beta.const_value is None:
        scaled = onnx.Where(onnx.Equal(beta, 0), 0, onnx.Mul(beta, z))
    elif np.all(beta.const_value.numpy() == 0):
        return product
    else:
        scaled = _scaled(onnx, beta, z)
    return onnx.Add(scaled, product)


def _equate_dims(onnx: Builder, x: ir.Value, y: ir.Value, *, batched: bool = False) -> None:
    """Note that the sizes which meet in a product are equal."""
    rows, columns = dims_of(x), dims_of(y)
    if rows and columns and not onnx.in_branch and not onnx.in_function:
        onnx.scope.equate_dims(rows[-1], columns[-2] if len(columns) > 1 else columns[-1])
        if batched:
            onnx.scope.equate_dims(rows[0], columns[0])


def _scaled(onnx: Builder, factor: ir.Value, x: ir.Value) -> ir.Value:
    if factor.const_value is not None and np.all(factor.const_value.numpy() == 1):
        return x
    return onnx.Mul(factor, x)
