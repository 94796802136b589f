"""Multiply sparse matrices with dense ones: gather, multiply, and add at the places."""

import operator
from collections.abc import Sequence

import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.sparse.math import Dot, StructuredDot, TrueDot, Usmm
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.encodings.registry import Tensors
from pytensor_onnx.ops.sparse_matrices import ScaledRowSums, SegmentSum, Take
from pytensor_onnx.rewriting.sparse_matrices.conversions import from_dense
from pytensor_onnx.rewriting.sparse_matrices.merging import in_format, summed_entries
from pytensor_onnx.rewriting.sparse_matrices.parts import (
    ENCODING,
    Compressed,
    dense_of,
    is_sparse,
    same_size,
)
from pytensor_onnx.rewriting.sparse_matrices.rows import take_rows


@ENCODING.rewrites(Dot)
def dot(op: Dot, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return the dense product."""
    return [[dense_product(*node.inputs, *inputs, dtype=node.outputs[0].type.dtype)]]


@ENCODING.rewrites(StructuredDot, TrueDot)
def structured_dot(
    op: StructuredDot | TrueDot, node: Apply, inputs: Sequence[Tensors]
) -> list[Tensors]:
    """Return the product, sparse if the result is."""
    (result,) = node.outputs
    dtype = result.type.dtype
    if all(map(is_sparse, node.inputs)):
        x, y = (Compressed.of(v, t) for v, t in zip(node.inputs, inputs, strict=True))
        products = products_of_entries(x, y, dtype)
        return [summed_entries(result.type.format, *products, (x.n_rows, y.n_cols)).tensors]
    product = dense_product(*node.inputs, *inputs, dtype=dtype)
    return [from_dense(product, result.type.format).tensors if is_sparse(result) else [product]]


@ENCODING.rewrites(Usmm)
def scaled_product_and_sum(op: Usmm, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return ``alpha * x @ y + z``."""
    (alpha,), x, y, (z,) = inputs
    dtype = node.outputs[0].type.dtype
    product = dense_product(node.inputs[1], node.inputs[2], x, y, dtype=dtype)
    return [[product * pt.cast(alpha, dtype) + pt.cast(z, dtype)]]


def dense_product(
    x: Variable, y: Variable, x_tensors: Tensors, y_tensors: Tensors, *, dtype: str
) -> TensorVariable:
    """Return the product of two operands as a dense array; at least one of them is sparse."""
    if is_sparse(x) and is_sparse(y):
        a, b = Compressed.of(x, x_tensors), Compressed.of(y, y_tensors)
        return dense_of(*products_of_entries(a, b, dtype), a.n_rows, b.n_cols)
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
    # A check copies its operand, so that the smaller one is checked.
    if x.type.ndim == 2:
        cols = same_size(a.cols, sizes, "dimension mismatch")
        return ScaledRowSums()(a.data, a.rows, x, cols, a.n_rows)
    gathered = a.data * Take()(same_size(x, sizes, "dimension mismatch"), a.cols)
    return SegmentSum()(gathered, a.rows, a.n_rows)


def products_of_entries(
    x: Compressed, y: Compressed, dtype: str
) -> tuple[TensorVariable, TensorVariable, TensorVariable]:
    """Return all products of an entry of one matrix with an entry of another, and their places.

    Each entry ``x[i, k]`` meets the entries of row ``k`` of ``y``, as in Gustavson, Two fast
    algorithms for sparse matrices: multiplication and permuted transposition, ACM TOMS 4 (1978).
    """
    y = in_format(y, "csr")
    inner = same_size(x.cols, [(x.n_cols, y.n_rows)], "dimension mismatch")
    met = take_rows(y, inner)
    factors = (Take()(x.data, met.row_of), Take()(y.data, met.entries))
    data = operator.mul(*(pt.cast(factor, dtype) for factor in factors))
    return data, Take()(x.rows, met.row_of), Take()(y.cols, met.entries)
