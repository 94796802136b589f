"""Multiply sparse matrices with dense ones: gather, multiply, and add at the places."""

import operator
from collections.abc import Sequence

import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.sparse.math import Dot, StructuredDot, TrueDot, Usmm
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.encodings.registry import Tensors
from pytensor_onnx.ops.sparse import ScaledRowSums, SegmentSum, Take
from pytensor_onnx.rewriting.sparse.merging import in_format, summed_entries
from pytensor_onnx.rewriting.sparse.selected_rows import take_rows
from pytensor_onnx.rewriting.sparse.sparse_conversions import from_dense
from pytensor_onnx.rewriting.sparse.sparse_parts import (
    Compressed,
    dense_of,
    in_precision,
    is_sparse,
    rewrites,
    same_size,
)


@rewrites(Dot)
def dot(op: Dot, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return the dense product."""
    return [[dense_product(*node.inputs, *inputs, dtype=node.outputs[0].type.dtype)]]


@rewrites(StructuredDot, TrueDot)
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


@rewrites(Usmm)
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
        return matrix_times_dense(Compressed.of(x, x_tensors), y_tensors[0], dtype)
    return matrix_times_dense(Compressed.of(y, y_tensors).transposed, x_tensors[0].T, dtype).T


def matrix_times_dense(a: Compressed, x: TensorVariable, dtype: str) -> TensorVariable:
    """Return the product with a vector or a dense matrix.

    The products of each row are added in the order of its entries, as SciPy does.
    """
    if x.type.ndim == 2 and x.type.shape[1] == 1:
        return matrix_times_dense(a, x[:, 0], dtype)[:, None]
    data, x = (in_precision(factor, dtype) for factor in (a.data, x))
    sizes = [(a.n_cols, x.shape[0])]
    # A check copies its operand, so that the smaller one is checked.
    if x.type.ndim == 2:
        cols = same_size(a.cols, sizes, "dimension mismatch")
        return ScaledRowSums()(data, a.rows, x, cols, a.n_rows)
    gathered = data * Take()(same_size(x, sizes, "dimension mismatch"), a.cols)
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
