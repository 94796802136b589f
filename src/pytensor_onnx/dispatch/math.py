"""Lower products of vectors and matrices."""

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply
from pytensor.tensor.blas import BatchedDot, Dot22, Dot22Scalar, Gemm, Gemv
from pytensor.tensor.math import Dot

from pytensor_onnx.dispatch.basic import onnx_funcify
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.dims import dims_of
from pytensor_onnx.ops.outer_products import OuterProductSum


@onnx_funcify.register(Dot)
@onnx_funcify.register(Dot22)
@onnx_funcify.register(BatchedDot)
def lower_dot(
    op: Dot | Dot22 | BatchedDot, node: Apply, onnx: Builder, x: ir.Value, y: ir.Value
) -> ir.Value:
    """Multiply matrices in the dtype of the result; for bool, combine by any."""
    dtype = node.outputs[0].type.dtype
    if dtype == "bool":
        product = onnx.MatMul(onnx.cast(x, "int32"), onnx.cast(y, "int32"))
        return onnx.Greater(product, 0)
    return onnx.MatMul(onnx.cast(x, dtype), onnx.cast(y, dtype))


@onnx_funcify.register(OuterProductSum)
def lower_outer_product_sum(
    op: OuterProductSum, node: Apply, onnx: Builder, x: ir.Value, y: ir.Value
) -> ir.Value:
    """Multiply all rows of both arrays at once."""
    rows, others = (dims_of(operand) or () for operand in (x, y))
    onnx.equate_sizes(zip(rows[:-1], others[:-1], strict=False))
    last = node.inputs[0].type.ndim - 1
    columns = onnx.Transpose(onnx.Flatten(x, axis=last), perm=[1, 0])
    return onnx.MatMul(columns, onnx.Flatten(y, axis=last))


@onnx_funcify.register(Dot22Scalar)
def lower_dot22_scalar(
    op: Dot22Scalar, node: Apply, onnx: Builder, x: ir.Value, y: ir.Value, scale: ir.Value
) -> ir.Value:
    """Multiply matrices and scale the product."""
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
    """Return ``beta * z + alpha * x @ y``; a ``beta`` of zero drops ``z``, even if it is NaN.

    A constant factor of one adds no node. Matrices of equal shape that are added to the product
    with a factor of one or minus one are a Gemm.
    """
    if isinstance(op, Gemm):
        sign = _sign(alpha, beta, node.outputs[0].type.dtype)
        if sign is not None:
            return _gemm(onnx, z, x, y, sign)
    product = _scaled(onnx, alpha, onnx.MatMul(x, y))
    if beta.const_value is None:
        scaled = onnx.Where(onnx.Equal(beta, 0), 0, onnx.Mul(beta, z))
    elif np.all(beta.const_value.numpy() == 0):
        return product
    else:
        scaled = _scaled(onnx, beta, z)
    return onnx.Add(scaled, product)


def _sign(alpha: ir.Value, beta: ir.Value, dtype: str) -> float | None:
    """Return the factor of a product that is a Gemm, which runtimes have for two dtypes."""
    if dtype not in ("float32", "float64") or alpha.const_value is None or beta.const_value is None:
        return None
    sign, other = (float(np.squeeze(x.const_value.numpy())) for x in (alpha, beta))  # type: ignore[union-attr]
    return sign if abs(sign) == 1 and other == 1 else None


def _gemm(onnx: Builder, z: ir.Value, x: ir.Value, y: ir.Value, alpha: float) -> ir.Value:
    """Return ``z + alpha * x @ y`` by one operator, which transposes the factors."""
    operands: list[ir.Value | None] = []
    attributes: dict[str, int] = {}
    for factor, name in ((x, "transA"), (y, "transB")):
        producer = factor.producer()
        if producer is not None and producer.op_type == "Transpose":
            operands.append(producer.inputs[0])
            attributes[name] = 1
        else:
            operands.append(factor)
    return onnx.Gemm(*operands, z, alpha=alpha, **attributes)


def _scaled(onnx: Builder, factor: ir.Value, x: ir.Value) -> ir.Value:
    if factor.const_value is not None and np.all(factor.const_value.numpy() == 1):
        return x
    return onnx.Mul(factor, x)
