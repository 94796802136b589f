"""Multiply sparse matrices with dense ones: gather, multiply, and add at the places."""

from collections.abc import Sequence

import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.sparse.math import Dot, StructuredDot, TrueDot, Usmm
from pytensor.sparse.type import SparseTensorType
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.encodings.registry import Tensors
from pytensor_onnx.ops.sparse_matrices import SegmentSum, Take
from pytensor_onnx.rewriting.sparse_matrices.conversions import from_dense
from pytensor_onnx.rewriting.sparse_matrices.parts import ENCODING, Compressed, same_size


@ENCODING.rewrites(Dot)
def dot(op: Dot, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors] | None:
    """Return the dense product."""
    product = dense_product(*node.inputs, *inputs, dtype=node.outputs[0].type.dtype)
    return None if product is None else [[product]]


@ENCODING.rewrites(StructuredDot)
def structured_dot(
    op: StructuredDot, node: Apply, inputs: Sequence[Tensors]
) -> Sequence[Tensors] | None:
    """Return the product: dense if an operand is."""
    if is_sparse(node.outputs[0]):
        return None
    return dot(op, node, inputs)


@ENCODING.rewrites(TrueDot)
def true_dot(op: TrueDot, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors] | None:
    """Return the product as a sparse matrix."""
    (result,) = node.outputs
    product = dense_product(*node.inputs, *inputs, dtype=result.type.dtype)
    return None if product is None else [from_dense(product, result.type.format).tensors]


@ENCODING.rewrites(Usmm)
def scaled_product_and_sum(
    op: Usmm, node: Apply, inputs: Sequence[Tensors]
) -> list[Tensors] | None:
    """Return ``alpha * x @ y + z``."""
    (alpha,), x, y, (z,) = inputs
    dtype = node.outputs[0].type.dtype
    product = dense_product(node.inputs[1], node.inputs[2], x, y, dtype=dtype)
    if product is None:
        return None
    return [[product * pt.cast(alpha, dtype) + pt.cast(z, dtype)]]


def is_sparse(variable: Variable) -> bool:
    """Return whether a variable is a sparse matrix."""
    return isinstance(variable.type, SparseTensorType)


def dense_product(
    x: Variable, y: Variable, x_tensors: Tensors, y_tensors: Tensors, *, dtype: str
) -> TensorVariable | None:
    """Return the product of two operands, of which at least one is sparse, as a dense array."""
    if is_sparse(x) and is_sparse(y):
        return None
    if is_sparse(x):
        matrix = Compressed.of(x, x_tensors)
        return matrix_times_dense(matrix.with_data(pt.cast(matrix.data, dtype)), y_tensors[0])
    matrix = Compressed.of(y, y_tensors).transposed
    product = matrix_times_dense(matrix.with_data(pt.cast(matrix.data, dtype)), x_tensors[0].T)
    return product.T


def matrix_times_dense(a: Compressed, x: TensorVariable) -> TensorVariable:
    """Return the product with a vector or a dense matrix, in the dtype of the sparse one.

    The products of each row are added in the order of its entries, as SciPy does.
    """
    if x.type.ndim == 2 and x.type.shape[1] == 1:
        return matrix_times_dense(a, x[:, 0])[:, None]
    x, sizes = pt.cast(x, a.data.type.dtype), [(a.n_cols, x.shape[0])]
    # What is checked is copied.
    if x.type.ndim == 1:
        gathered = a.data * Take()(same_size(x, sizes, "dimension mismatch"), a.cols)
    else:
        gathered = a.data[:, None] * x[same_size(a.cols, sizes, "dimension mismatch")]
    return SegmentSum()(gathered, a.rows, a.n_rows)
