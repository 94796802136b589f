"""Products of vectors and matrices."""

from __future__ import annotations

import pytensor.tensor as pt
from pytensor.tensor.type import TensorType
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.errors import UnsupportedCase
from pytensor_onnx.importing.registry.axis_sizes import sizes_of_letters
from pytensor_onnx.importing.registry.known_values import like
from pytensor_onnx.importing.registry.operator_imports import onnx_import
from pytensor_onnx.ops.networks.kept_operator import MICROSOFT


@onnx_import("MatMul")
def matmul(a: TensorVariable, b: TensorVariable) -> TensorVariable:
    """Multiply matrices, batches of matrices, or vectors."""
    if a.type.ndim <= 2 and b.type.ndim <= 2:
        return pt.dot(a, b)
    return pt.matmul(a, b)


@onnx_import("Gemm")
def gemm(
    a: TensorVariable,
    b: TensorVariable,
    c: TensorVariable | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,  # noqa: N803  (name of the attribute)
    transB: int = 0,  # noqa: N803
    broadcast: int = 1,
) -> TensorVariable:
    """Multiply two matrices by a number, and add a multiple of a third."""
    product = pt.dot(a.T if transA else a, b.T if transB else b)
    product = product if alpha == 1 else product * like(product, alpha)
    if c is None:
        return product
    return product + (c if beta == 1 else c * like(product, beta))


@onnx_import("FusedMatMul", "TransposeMatMul", domain=MICROSOFT)
def fused_matmul(
    a: TensorVariable,
    b: TensorVariable,
    *,
    alpha: float = 1.0,
    transA: int = 0,  # noqa: N803
    transB: int = 0,  # noqa: N803
    transBatchA: int = 0,  # noqa: N803
    transBatchB: int = 0,  # noqa: N803
) -> TensorVariable:
    """Multiply batches of matrices by a number, each transposed or not."""
    if transBatchA:
        a = pt.moveaxis(a, 0, -2)
    if transBatchB:
        b = pt.moveaxis(b, 0, -2)
    product = matmul(a.mT if transA else a, b.mT if transB else b)
    return product if alpha == 1 else product * like(product, alpha)


def _types_of_einsum(*operands: TensorVariable, equation: str) -> list[TensorType] | None:
    """Return the type of the result, None for equations without a result or with an ellipsis."""
    shape = sizes_of_letters(equation, [v.type.shape for v in operands])
    return None if shape is None else [TensorType(operands[0].type.dtype, shape)]


@onnx_import("Einsum", types=_types_of_einsum)
def einsum(*operands: TensorVariable, equation: str) -> TensorVariable:
    """Multiply and sum over named axes."""
    return pt.einsum(equation.replace(" ", ""), *operands)


@onnx_import("MatMulInteger")
@onnx_import("MatMulInteger16", domain=MICROSOFT)
def matmul_integer(
    a: TensorVariable,
    b: TensorVariable,
    a_zero: TensorVariable | None = None,
    b_zero: TensorVariable | None = None,
) -> TensorVariable:
    """Multiply integers in int32, after the subtraction of zero points of rows and columns."""
    a, b = a.astype("int32"), b.astype("int32")
    if a_zero is not None:
        a = a - _of_rows(a_zero.astype("int32"))
    if b_zero is not None:
        b = b - b_zero.astype("int32")
    return matmul(a, b)


def _of_rows(zero: TensorVariable) -> TensorVariable:
    return zero[:, None] if zero.type.ndim == 1 and zero.type.shape != (1,) else zero


@onnx_import("CDist", domain=MICROSOFT)
def distances(
    a: TensorVariable, b: TensorVariable, *, metric: str = "sqeuclidean"
) -> TensorVariable:
    """Return the distance, or its square, of each row of one matrix from each of another."""
    if metric not in ("euclidean", "sqeuclidean"):
        raise UnsupportedCase(f"its metric is {metric}, for which ONNX Runtime has no kernel")
    squares = pt.sqr(a[:, None, :] - b[None, :, :]).sum(axis=2)
    return squares if metric == "sqeuclidean" else pt.sqrt(squares)
