"""Lower products of vectors and matrices."""

from typing import Any

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply
from pytensor.tensor.blas import BatchedDot, Dot22, Dot22Scalar, Gemm, Gemv
from pytensor.tensor.math import Dot

from pytensor_onnx.dispatch.registry.basic import onnx_funcify
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.operators.dims import dims_of
from pytensor_onnx.ops.products import OuterProductSum


@onnx_funcify.register(Dot)
@onnx_funcify.register(Dot22)
@onnx_funcify.register(BatchedDot)
def lower_dot(
    op: Dot | Dot22 | BatchedDot, node: Apply, build: Builder, x: ir.Value, y: ir.Value
) -> ir.Value:
    """Multiply matrices in the dtype of the result; for bool, combine by any."""
    dtype = node.outputs[0].type.dtype
    if dtype == "bool":
        product = build.MatMul(build.cast(x, "int32"), build.cast(y, "int32"))
        return build.Greater(product, 0)
    return build.MatMul(build.cast(x, dtype), build.cast(y, dtype))


@onnx_funcify.register(OuterProductSum)
def lower_outer_product_sum(
    op: OuterProductSum, node: Apply, build: Builder, x: ir.Value, y: ir.Value
) -> ir.Value:
    """Multiply all rows of both arrays at once."""
    rows, others = (dims_of(operand) or () for operand in (x, y))
    build.equate_sizes(zip(rows[:-1], others[:-1], strict=False))
    last = node.inputs[0].type.ndim - 1
    columns = build.Transpose(build.Flatten(x, axis=last), perm=[1, 0])
    return build.MatMul(columns, build.Flatten(y, axis=last))


@onnx_funcify.register(Dot22Scalar)
def lower_dot22_scalar(
    op: Dot22Scalar, node: Apply, build: Builder, x: ir.Value, y: ir.Value, scale: ir.Value
) -> ir.Value:
    """Multiply matrices and scale the product."""
    return _scaled(build, scale, build.MatMul(x, y))


@onnx_funcify.register(Gemm)
@onnx_funcify.register(Gemv)
def lower_gemm(
    op: Gemm | Gemv,
    node: Apply,
    build: Builder,
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
            return _gemm(build, z, x, y, sign)
    product = _scaled(build, alpha, build.MatMul(x, y))
    if beta.const_value is None:
        scaled = build.Where(build.Equal(beta, 0), 0, build.Mul(beta, z))
    elif np.all(beta.const_value.numpy() == 0):
        return product
    else:
        scaled = _scaled(build, beta, z)
    return build.Add(scaled, product)


def _sign(alpha: ir.Value, beta: ir.Value, dtype: str) -> float | None:
    """Return ``alpha`` of a Gemm, which runtimes implement for float32 and float64 only."""
    if dtype not in ("float32", "float64") or alpha.const_value is None or beta.const_value is None:
        return None
    sign, other = (float(np.squeeze(x.const_value.numpy())) for x in (alpha, beta))  # type: ignore[union-attr]
    return sign if abs(sign) == 1 and other == 1 else None


def _gemm(build: Builder, z: ir.Value, x: ir.Value, y: ir.Value, alpha: float) -> ir.Value:
    """Return ``z + alpha * x @ y`` by one operator, which transposes the factors."""
    operands: list[ir.Value | None] = []
    attributes: dict[str, Any] = {"alpha": alpha}
    for factor, name in ((x, "transA"), (y, "transB")):
        producer = factor.producer()
        if producer is not None and producer.op_type == "Transpose":
            operands.append(producer.inputs[0])
            attributes[name] = 1
        else:
            operands.append(factor)
    return build.op("Gemm", *operands, z, **attributes)


def _scaled(build: Builder, factor: ir.Value, x: ir.Value) -> ir.Value:
    if factor.const_value is not None and np.all(factor.const_value.numpy() == 1):
        return x
    return build.Mul(factor, x)
