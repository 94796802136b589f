"""Elementwise operations on sparse matrices."""

import warnings
from collections.abc import Callable, Sequence

import pytensor.scalar as ps
import pytensor.tensor as pt
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.sparse.basic import ColScaleCSC, RowScaleCSC
from pytensor.sparse.math import (
    AddSparseDense,
    AddSparseSparseData,
    EqualSparseDense,
    EqualSparseSparse,
    GreaterEqualSparseDense,
    GreaterEqualSparseSparse,
    GreaterThanSparseDense,
    LessEqualSparseDense,
    LessEqualSparseSparse,
    LessThanSparseDense,
    MultiplySparseDense,
    MultiplySparseDenseVector,
    NotEqualSparseDense,
    SamplingDot,
    StructuredAddSparseDenseVector,
    StructuredDotGradCSC,
    StructuredDotGradCSR,
)
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.encodings.registry import Tensors
from pytensor_onnx.ops.sparse import EntryRows, RowProducts, SegmentSum, Take
from pytensor_onnx.rewriting.sparse.sparse_parts import (
    Compressed,
    checked_shape,
    flat_positions,
    from_dense,
    greater,
    in_precision,
    is_sparse,
    less,
    rewrites,
    same_size,
)
from pytensor_onnx.rewriting.sparse.sparse_products import grouped, in_format, summed, take_rows


def elements_at(dense: TensorVariable, x: Compressed) -> TensorVariable:
    """Return the elements of a dense matrix at the entries of a sparse one of its shape."""
    dense = checked_shape(dense, x)
    return Take()(dense.flatten(), x.places())


@rewrites(AddSparseDense)
def add_dense(op: AddSparseDense, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Add the entries to the elements at their places."""
    dtype = node.outputs[0].type.dtype
    x, dense = Compressed.of(node.inputs[0], inputs[0]), pt.cast(inputs[1][0], dtype)
    sparse = x.with_data(pt.cast(x.data, dtype))
    return [[checked_shape(dense, x) + sparse.dense()]]


@rewrites(MultiplySparseDense)
def multiply_dense(
    op: MultiplySparseDense, node: Apply, inputs: Sequence[Tensors]
) -> list[Tensors]:
    """Multiply the entries by a number, or by the elements at their places."""
    dtype = node.outputs[0].type.dtype
    x, factor = Compressed.of(node.inputs[0], inputs[0]), pt.cast(inputs[1][0], dtype)
    factors = factor if factor.type.ndim == 0 else elements_at(factor, x)
    return [x.with_data(pt.cast(x.data, dtype) * factors).tensors]


@rewrites(MultiplySparseDenseVector, ColScaleCSC)
def scale_columns(
    op: MultiplySparseDenseVector | ColScaleCSC, node: Apply, inputs: Sequence[Tensors]
) -> list[Tensors]:
    """Multiply each column by an element of a vector."""
    x, (factors,) = Compressed.of(node.inputs[0], inputs[0]), inputs[1]
    return [_scaled(x, factors, x.cols, x.n_cols)]


@rewrites(RowScaleCSC)
def scale_rows(op: RowScaleCSC, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Multiply each row by an element of a vector."""
    x, (factors,) = Compressed.of(node.inputs[0], inputs[0]), inputs[1]
    return [_scaled(x, factors, x.rows, x.n_rows)]


def _scaled(
    x: Compressed, factors: TensorVariable, axis: TensorVariable, size: TensorVariable
) -> Tensors:
    factors = same_size(factors, [(factors.shape[0], size)], "dimension mismatch")
    at_entries = pt.cast(Take()(factors, axis), x.data.type.dtype)
    return x.with_data(x.data * at_entries).tensors


@rewrites(StructuredAddSparseDenseVector)
def add_to_columns(
    op: StructuredAddSparseDenseVector, node: Apply, inputs: Sequence[Tensors]
) -> list[Tensors]:
    """Add an element of a vector to the stored entries of each column."""
    x, (terms,) = summed(Compressed.of(node.inputs[0], inputs[0])), inputs[1]
    terms = same_size(terms, [(terms.shape[0], x.n_cols)], "dimension mismatch")
    added = pt.switch(pt.neq(x.data, 0), x.data + Take()(terms, x.cols), x.data)
    return [x.with_data(added).tensors]


@rewrites(AddSparseSparseData)
def add_entries(op: AddSparseSparseData, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Add the entries of two matrices in their order, whatever their places are."""
    x, y = (Compressed.of(v, t) for v, t in zip(node.inputs, inputs, strict=True))
    sizes = [(x.data.shape[0], y.data.shape[0]), (x.shape[0], y.shape[0]), (x.shape[1], y.shape[1])]
    added = same_size(y.data, sizes, "the matrices have different shapes or numbers of entries")
    return [x.with_data(x.data + added).tensors]


@rewrites(SamplingDot)
def sample_product(op: SamplingDot, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Multiply the entries by the products of the rows of two matrices that meet there."""
    (x,), (y,), tensors = inputs
    pattern = Compressed.of(node.inputs[2], tensors)
    sizes = [(x.shape[0], pattern.n_rows), (y.shape[0], pattern.n_cols)]
    rows = same_size(pattern.rows, sizes, "dimension mismatch")
    products = products_of_rows(x, rows, y, pattern.cols)
    data = pattern.data * pt.cast(products, pattern.data.type.dtype)
    return [pattern.with_data(data).tensors]


@rewrites(StructuredDotGradCSR, StructuredDotGradCSC)
def products_at_entries(
    op: StructuredDotGradCSR | StructuredDotGradCSC, node: Apply, inputs: Sequence[Tensors]
) -> list[Tensors]:
    """Return the gradient of a product by the entries of its first factor."""
    (indices,), (indptr,) = inputs[:2]
    major = EntryRows()(indptr, indices)
    is_by_rows = isinstance(op, StructuredDotGradCSR)
    rows, cols = (major, indices) if is_by_rows else (indices, major)
    dtype = node.outputs[0].type.dtype
    if any(map(is_sparse, node.inputs)):
        b, gradient = (
            Compressed.of(v, x) if is_sparse(v) else from_dense(x[0], "csr")
            for v, x in zip(node.inputs[2:], inputs[2:], strict=True)
        )
        return [[pt.cast(products_of_sparse_rows(gradient, rows, b, cols), dtype)]]
    (b,), (gradient,) = inputs[2:]
    return [[pt.cast(products_of_rows(gradient, rows, b, cols), dtype)]]


def products_of_sparse_rows(
    x: Compressed, rows: TensorVariable, y: Compressed, others: TensorVariable
) -> TensorVariable:
    """Return the inner products of rows of one sparse matrix with rows of another."""
    y = in_format(y, "csr")
    same = same_size(others, [(x.n_cols, y.n_cols)], "dimension mismatch")
    met = take_rows(y, same)
    met_rows, met_cols = Take()(rows, met.row_of), Take()(y.indices, met.entries)
    places = [flat_positions(met_rows, met_cols, x.n_cols), x.places()]
    groups = grouped(pt.concatenate(places))
    count = met.entries.shape[0]
    dtype = ps.upcast(x.data.type.dtype, y.data.type.dtype)
    elements = SegmentSum()(pt.cast(x.data, dtype), groups.group_of[count:], groups.count)
    factors = Take()(pt.cast(y.data, dtype), met.entries)
    products = factors * Take()(elements, groups.group_of[:count])
    return SegmentSum()(products, met.row_of, rows.shape[0])


def products_of_rows(
    x: TensorVariable, rows: TensorVariable, y: TensorVariable, cols: TensorVariable
) -> TensorVariable:
    """Return the inner products of rows of one matrix with rows of another."""
    same = same_size(rows, [(x.shape[1], y.shape[1])], "dimension mismatch")
    dtype = ps.upcast(x.type.dtype, y.type.dtype)
    dtype = dtype if dtype.startswith(("float", "complex")) else "int64"
    return RowProducts()(in_precision(x, dtype), same, in_precision(y, dtype), cols)


Comparison = Callable[[TensorVariable, TensorVariable], TensorVariable]

_WITH_DENSE: dict[type[Op], Comparison] = {
    EqualSparseDense: pt.eq,
    NotEqualSparseDense: pt.neq,
    LessThanSparseDense: pt.lt,
    LessEqualSparseDense: pt.le,
    GreaterThanSparseDense: pt.gt,
    GreaterEqualSparseDense: pt.ge,
}
# True for two zeros: SciPy returns the opposite of the other comparison, also for NaN.
_OPPOSITES: dict[type[Op], Comparison] = {
    EqualSparseSparse: pt.neq,
    LessEqualSparseSparse: greater,
    GreaterEqualSparseSparse: less,
}


@rewrites(*_WITH_DENSE)
def compare_with_dense(op: Op, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Compare the elements of a sparse and a dense matrix."""
    x, (dense,) = Compressed.of(node.inputs[0], inputs[0]), inputs[1]
    result = _WITH_DENSE[type(op)](x.dense(), checked_shape(dense, x))
    return [[pt.cast(result, "uint8")]]


@rewrites(*_OPPOSITES)
def compare_all_elements(op: Op, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Compare all elements, with a warning: zeros are equal, so that most results are stored."""
    x, y = (Compressed.of(v, t) for v, t in zip(node.inputs, inputs, strict=True))
    sizes = " x ".join("?" if n is None else str(n) for n in node.inputs[0].type.shape)
    warnings.warn(
        f"{node.inputs[0]} is made dense ({sizes}) for {type(op).__name__}, which is true for two "
        "zeros: the opposite comparison has entries for few elements",
        UserWarning,
        stacklevel=2,
    )
    opposite = _OPPOSITES[type(op)](x.dense(), checked_shape(y.dense(), x))
    result = pt.cast(~opposite, "uint8")
    return [from_dense(result, node.outputs[0].type.format).tensors]
