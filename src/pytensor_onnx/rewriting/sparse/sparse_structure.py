"""Operations whose result has entries at places that depend on the values of the operands.

Their entries are sorted by place; a place has one entry, and none where the result is zero.
"""

import operator
from collections.abc import Callable, Sequence

import pytensor.scalar as ps
import pytensor.tensor as pt
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.sparse.basic import CSMGrad, EnsureSortedIndices, Remove0
from pytensor.sparse.math import (
    AddSparseSparse,
    GreaterThanSparseSparse,
    LessThanSparseSparse,
    MultiplySparseSparse,
    NotEqualSparseSparse,
)
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.encodings.registry import Tensors
from pytensor_onnx.ops.sparse import EntryRows, SegmentSum, Take
from pytensor_onnx.rewriting.sparse.complex_entries import greater, less
from pytensor_onnx.rewriting.sparse.merging import (
    by_place,
    compressed,
    grouped,
    sorted_entries,
    without_zeros,
)
from pytensor_onnx.rewriting.sparse.sparse_parts import (
    Compressed,
    flat_positions,
    rewrites,
    same_size,
)

Function = Callable[[TensorVariable, TensorVariable], TensorVariable]


# Infinity times a zero that is not stored is NaN.
_FUNCTIONS: dict[type[Op], Function] = {
    AddSparseSparse: operator.add,
    MultiplySparseSparse: operator.mul,
    NotEqualSparseSparse: pt.neq,
    LessThanSparseSparse: less,
    GreaterThanSparseSparse: greater,
}
"""Function of two numbers, zero for two zeros, by the Op that applies it to two matrices."""


@rewrites(*_FUNCTIONS)
def combine(op: Op, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Apply a function of two numbers to the elements of two matrices."""
    x, y = (Compressed.of(v, t) for v, t in zip(node.inputs, inputs, strict=True))
    result = node.outputs[0].type
    dtype = ps.upcast(x.data.type.dtype, y.data.type.dtype)
    sizes = [(x.shape[0], y.shape[0]), (x.shape[1], y.shape[1])]
    rows = pt.concatenate([same_size(x.rows, sizes, "inconsistent shapes"), y.rows])
    cols = pt.concatenate([x.cols, y.cols])
    shape = [x.n_rows, x.n_cols]
    groups = by_place(result.format, rows, cols, shape)
    count = x.data.shape[0]
    places = (groups.group_of[:count], groups.group_of[count:])
    sums = (
        SegmentSum()(pt.cast(z.data, dtype), at, groups.count)
        for z, at in zip((x, y), places, strict=True)
    )
    data = pt.cast(_FUNCTIONS[type(op)](*sums), result.dtype)
    kept = pt.neq(data, 0)
    firsts = groups.firsts[kept]
    rows, cols = Take()(rows, firsts), Take()(cols, firsts)
    return [compressed(result.format, data[kept], rows, cols, shape).tensors]


@rewrites(CSMGrad)
def gradient_at_entries(op: CSMGrad, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return the elements of a gradient at the entries of a matrix."""
    _, indices, indptr, shape, g_data, g_indices, g_indptr, _ = (x[0] for x in inputs)
    # The larger size serves both formats, which the Op does not know.
    n_minor = pt.cast(pt.max(shape), "int64")
    own, other = (
        flat_positions(EntryRows()(pointers, minor), minor, n_minor)
        for pointers, minor in ((indptr, indices), (g_indptr, g_indices))
    )
    groups = grouped(pt.concatenate([own, other]))
    count = indices.shape[0]
    sums = SegmentSum()(g_data, groups.group_of[count:], groups.count)
    return [[Take()(sums, groups.group_of[:count])]]


@rewrites(EnsureSortedIndices)
def sort_indices(op: EnsureSortedIndices, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Sort the entries of each row or column."""
    x = Compressed.of(node.inputs[0], inputs[0])
    return [sorted_entries(x.format, x.data, x.rows, x.cols, [x.n_rows, x.n_cols]).tensors]


@rewrites(Remove0)
def remove_zeros(op: Remove0, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Drop the entries that are zero."""
    return [without_zeros(Compressed.of(node.inputs[0], inputs[0])).tensors]
