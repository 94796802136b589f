"""Conditions under which PyTensor's rewrites of shapes and indices preserve the result."""

import numpy as np
from pytensor.graph.basic import Apply, Constant
from pytensor.scalar.basic import ScalarConstant
from pytensor.tensor.basic import Alloc, AllocDiag, Eye
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.rewriting.reshape import local_join_dims, local_split_dims
from pytensor.tensor.rewriting.shape import (
    local_useless_reshape,
)
from pytensor.tensor.rewriting.subtensor import (
    local_adv_idx_to_slice,
    local_convert_negative_indices,
    local_read_of_write_same_indices,
    local_subtensor_merge_integer,
    local_subtensor_merge_slice,
    local_useless_slice,
    local_write_of_write_same_indices,
)
from pytensor.tensor.rewriting.subtensor_lift import (
    local_extract_diag_lift,
    local_extract_diag_of_alloc_diag,
    local_extract_diag_of_eye,
    local_subtensor_of_batch_dims,
    local_subtensor_SpecifyShape_lift,
)
from pytensor.tensor.rewriting.uncanonicalize import local_dimshuffle_subtensor
from pytensor.tensor.shape import SpecifyShape
from pytensor.tensor.subtensor import Subtensor, indices_from_subtensor
from pytensor.tensor.type import TensorType

from pytensor_onnx.compat.pytensor import is_shape_i_of_x, unpack_shape_vector
from pytensor_onnx.rewriting.engine.predicates import guard, integer_of, made_by


def is_known_to_have_elements(node: Apply) -> bool:
    """Return whether no static size of a result is zero.

    PyTensor divides by the known sizes of a reshape to get the unknown one.
    """
    return 0 not in node.outputs[0].type.shape


def keeps_its_sizes(node: Apply) -> bool:
    """Return whether an array is reshaped to its own sizes.

    If all sizes but one agree, the last one agrees as well, unless their product may be zero.
    """
    (x, shape), sizes = node.inputs, node.outputs[0].type.shape
    if x.type.ndim != len(sizes):
        return False
    if 0 not in sizes and sizes.count(None) <= 1:
        return True
    return all(
        is_shape_i_of_x(size, x, axis) or integer_of(size) == -1
        for axis, size in enumerate(unpack_shape_vector(shape))
    )


def reads_written_values(node: Apply) -> bool:
    """Return whether reading at the positions of a write returns the written values.

    Index arrays may contain a position twice; the last value written there remains.
    """
    source = node.inputs[0].owner
    return isinstance(node.op, Subtensor) or not getattr(
        None if source is None else source.op, "set_instead_of_inc", False
    )


def joins_writes_exactly(node: Apply) -> bool:
    """Return whether an increment may join a write at the same indices.

    `write_over_all` drops writes that a later one replaces. PyTensor adds the values that are
    written, which wraps around or rounds where both are narrower than the array.
    """
    inner = made_by(node.inputs[0], type(node.op))
    if inner is None:
        return False
    dtypes = {node.inputs[1].type.dtype, inner.inputs[1].type.dtype}
    return not node.op.set_instead_of_inc and node.outputs[0].type.dtype in dtypes


def has_no_unsigned_index(node: Apply) -> bool:
    """Return whether all indices are signed: PyTensor subtracts successive indices."""
    return not any(index.type.dtype.startswith("uint") for index in node.inputs[1:])


def adds_constants_exactly(node: Apply) -> bool:
    """Return whether sums of constant indices and known sizes fit the dtypes of the indices.

    PyTensor computes them, and products with a step, in the dtype of the index.
    """
    arrays, indices = [node.inputs[0]], node.inputs[1:]
    if (inner := made_by(node.inputs[0], Subtensor)) is not None:
        arrays, indices = [*arrays, inner.inputs[0]], [*indices, *inner.inputs[1:]]
    constants = [x for x in indices if isinstance(x, ScalarConstant)]
    sizes = [size for x in arrays for size in x.type.shape if size is not None]
    numbers = [abs(int(x.data)) for x in constants]
    largest = (max(sizes, default=0) + 1) * max(numbers, default=1) + 1
    # The negative of an unsigned index wraps around.
    dtypes = (x.type.dtype for x in constants)
    return all(d.startswith("int") and largest <= np.iinfo(d).max for d in dtypes if d != "int64")


def reads_existing_elements(node: Apply) -> bool:
    """Return whether all indices into axes of length one are 0 or -1.

    PyTensor drops such an index, and with it the error for an index out of range.
    """
    x, *indices = node.inputs
    made = made_by(x, Elemwise | Blockwise)
    if made is None:
        return False
    ones = zip(*(operand.type.broadcastable for operand in made.inputs), strict=False)
    read = indices_from_subtensor(indices, node.op.idx_list)
    for has_one, index in zip(map(all, ones), read, strict=False):
        is_first = isinstance(index, Constant) and np.isin(index.data, (0, -1)).all()
        if has_one and not isinstance(index, slice) and not is_first:
            return False
    return True


def has_constant_starts(node: Apply) -> bool:
    """Return whether slices begin at their start, which PyTensor uses for a slice of one element.

    A negative start may lie before the first element, and a negative step without a start begins at
    the last element.
    """
    source = made_by(node.inputs[0], Subtensor)
    if source is None:
        return False
    read = indices_from_subtensor(source.inputs[1:], source.op.idx_list)
    slices = [index for index in read if isinstance(index, slice)]
    numbers = [n for s in slices for n in (s.start, s.step) if n is not None]
    return all(isinstance(n, Constant) and n.data >= 0 for n in numbers)


def leaves_known_sizes(node: Apply) -> bool:
    """Return whether all specified sizes beside the indexed ones are numbers or variables.

    PyTensor's rewrite fails for the others, which are None.
    """
    source = made_by(node.inputs[0], SpecifyShape)
    if source is None:
        return False
    sizes = source.inputs[1 + len(node.op.idx_list) :]
    return all(isinstance(size.type, TensorType) for size in sizes)


def commutes_with_diagonal(node: Apply) -> bool:
    """Return whether the diagonal of a result is the result for the diagonals of its operands.

    PyTensor leaves the new axis at the position of the first of the two axes; it belongs at the
    end. For an allocated array, it gives a diagonal beyond the corner a negative size.
    """
    x, op = node.inputs[0], node.op
    if (op.axis1, op.axis2) != (x.type.ndim - 2, x.type.ndim - 1):
        return False
    if (diagonal := made_by(x, AllocDiag)) is not None:
        return abs(op.offset) <= abs(diagonal.op.offset)
    return op.offset == 0 or made_by(x, Alloc | Eye) is None


GUARDS = (
    guard(
        local_useless_reshape,
        keeps_its_sizes,
        family="shape",
        purpose="correctness",
        identity="reshape(x, x.shape) = x",
        requires="all sizes agree, also beside a zero",
        measured="docs/project/upstream.md#sizes-beside-a-zero-are-inferred-from-the-number-of-elements",
    ),
    guard(
        local_subtensor_SpecifyShape_lift,
        leaves_known_sizes,
        family="indexing",
        purpose="correctness",
        identity="specify_shape(x, s)[i] = specify_shape(x[i], s[1:])",
        requires="the other sizes are given, where PyTensor fails",
        measured="docs/project/upstream.md#an-element-beside-an-unspecified-size-fails-to-rewrite",
    ),
    guard(
        local_join_dims,
        is_known_to_have_elements,
        family="shape",
        purpose="correctness",
        identity="join_dims(x) = reshape(x, sizes)",
        requires="no static size of zero",
        measured="docs/project/upstream.md#sizes-beside-a-zero-are-inferred-from-the-number-of-elements",
    ),
    guard(
        local_split_dims,
        is_known_to_have_elements,
        family="shape",
        purpose="correctness",
        identity="split_dims(x) = reshape(x, sizes)",
        requires="no static size of zero",
        measured="docs/project/upstream.md#sizes-beside-a-zero-are-inferred-from-the-number-of-elements",
    ),
    guard(
        local_read_of_write_same_indices,
        reads_written_values,
        family="indexing",
        purpose="correctness",
        identity="set(x, y, i)[i] = y",
        requires="no position twice in i",
        measured="docs/project/upstream.md#a-read-at-the-positions-of-a-write-ignores-equal-positions",
    ),
    guard(
        local_write_of_write_same_indices,
        joins_writes_exactly,
        family="indexing",
        purpose="correctness",
        identity="inc(inc(x, a, i), b, i) = inc(x, a + b, i)",
        requires="a + b has the dtype of x",
        measured="docs/project/upstream.md#two-increments-are-added-in-their-own-dtype",
    ),
    guard(
        local_adv_idx_to_slice,
        has_no_unsigned_index,
        family="indexing",
        purpose="correctness",
        identity="x[arange] = x[slice]",
        requires="signed indices",
        measured="docs/project/upstream.md#unsigned-indices-that-descend-are-a-slice-with-a-positive-step",
    ),
    guard(
        local_subtensor_merge_slice,
        adds_constants_exactly,
        family="indexing",
        purpose="correctness",
        identity="x[a:b][c:d] = x[a + c : a + d]",
        requires="sums of constants and sizes fit their dtype",
        measured="docs/project/upstream.md#constant-indices-of-int8-are-added-in-int8",
    ),
    guard(
        local_subtensor_merge_integer,
        adds_constants_exactly,
        family="indexing",
        purpose="correctness",
        identity="x[a:b][i] = x[a + i]",
        requires="sums of constants and sizes fit their dtype",
        measured="docs/project/upstream.md#constant-indices-of-int8-are-added-in-int8",
    ),
    guard(
        local_useless_slice,
        adds_constants_exactly,
        family="indexing",
        purpose="correctness",
        identity="x[0:n] = x",
        requires="sums of constants and sizes fit their dtype",
        measured="docs/project/upstream.md#constant-indices-of-int8-are-added-in-int8",
    ),
    guard(
        local_convert_negative_indices,
        adds_constants_exactly,
        family="indexing",
        purpose="correctness",
        identity="x[-1] = x[n - 1]",
        requires="sums of constants and sizes fit their dtype",
        measured="docs/project/upstream.md#constant-indices-of-int8-are-added-in-int8",
    ),
    guard(
        local_subtensor_of_batch_dims,
        reads_existing_elements,
        family="indexing",
        purpose="correctness",
        identity="f(x, y)[i] = f(x[i], y[i])",
        requires="i is 0 or -1 at axes of size one",
        measured="docs/project/upstream.md#an-index-out-of-range-of-an-axis-of-length-one-is-dropped",
    ),
    guard(
        local_dimshuffle_subtensor,
        has_constant_starts,
        family="indexing",
        purpose="correctness",
        identity="x[a:a+1] squeezed = x[a]",
        requires="nonnegative constant starts and steps",
        measured="docs/project/upstream.md#a-reversed-slice-of-one-row-is-another-row",
    ),
)

# PyTensor runs these in one pass.
take_diagonals = [
    guard(
        rewrite,
        commutes_with_diagonal,
        family="linalg",
        purpose="correctness",
        identity="diagonal(f(x)) = f(diagonal(x))",
        requires="the last two axes, and a diagonal within the corner",
        measured="docs/project/upstream.md#diagonals-have-another-order-of-axes-or-a-negative-size",
    ).guarded()
    for rewrite in (
        local_extract_diag_of_alloc_diag,
        local_extract_diag_of_eye,
        local_extract_diag_lift,
    )
]
