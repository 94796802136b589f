"""Shapes and indices that PyTensor simplifies where the result stays what it is."""

import numpy as np
from pytensor.graph.basic import Apply, Constant
from pytensor.tensor.basic import Alloc, AllocDiag, Eye
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.rewriting.reshape import local_join_dims, local_split_dims
from pytensor.tensor.rewriting.shape import (
    _is_shape_i_of_x,
    _unpack_shape_vector,
    local_useless_reshape,
)
from pytensor.tensor.rewriting.subtensor import (
    local_adv_idx_to_slice,
    local_read_of_write_same_indices,
)
from pytensor.tensor.rewriting.subtensor_lift import (
    local_extract_diag_lift,
    local_extract_diag_of_alloc_diag,
    local_extract_diag_of_eye,
    local_subtensor_of_batch_dims,
)
from pytensor.tensor.rewriting.uncanonicalize import local_dimshuffle_subtensor
from pytensor.tensor.subtensor import Subtensor, indices_from_subtensor

from pytensor_onnx.rewriting.guards import add_guarded, register_guarded


def is_known_to_have_elements(node: Apply) -> bool:
    """Return whether no size of a result is zero by its type.

    PyTensor takes the size that it does not know of a reshape from the others: not if their product
    is zero.
    """
    return 0 not in node.outputs[0].type.shape


def keeps_its_sizes(node: Apply) -> bool:
    """Return whether an array is reshaped to its own sizes.

    Where all sizes but one agree, that one agrees as well: not if their product may be zero.
    """
    (x, shape), sizes = node.inputs, node.outputs[0].type.shape
    if x.type.ndim != len(sizes):
        return False
    if 0 not in sizes and sizes.count(None) <= 1:
        return True
    return all(
        _is_shape_i_of_x(size, x, axis) or (isinstance(size, Constant) and size.data == -1)
        for axis, size in enumerate(_unpack_shape_vector(shape))
    )


def reads_what_was_set(node: Apply) -> bool:
    """Return whether what is read at the positions of a write is what was written.

    Index arrays may name a position twice: then the last value that is set there stays.
    """
    source = node.inputs[0].owner
    return isinstance(node.op, Subtensor) or not getattr(
        None if source is None else source.op, "set_instead_of_inc", False
    )


def has_no_unsigned_index(node: Apply) -> bool:
    """Return whether indices may be negated: the step from one to the next is, backwards."""
    return not any(index.type.dtype.startswith("uint") for index in node.inputs[1:])


def reads_cells_that_exist(node: Apply) -> bool:
    """Return whether an axis of length one is read where it has its cell: PyTensor takes no other.

    An index that is dropped fails no more where it is wrong.
    """
    x, *indices = node.inputs
    if x.owner is None or not isinstance(x.owner.op, Elemwise | Blockwise):
        return False
    ones = zip(*(operand.type.broadcastable for operand in x.owner.inputs), strict=False)
    read = indices_from_subtensor(indices, node.op.idx_list)
    for has_one, index in zip(map(all, ones), read, strict=False):
        is_first = isinstance(index, Constant) and np.isin(index.data, (0, -1)).all()
        if has_one and not isinstance(index, slice) and not is_first:
            return False
    return True


def starts_where_it_says(node: Apply) -> bool:
    """Return whether slices begin with their start: PyTensor reads that for a slice of one cell.

    A negative start may lie before the first cell, and without one a negative step begins at the
    last.
    """
    source = node.inputs[0].owner
    if source is None or not isinstance(source.op, Subtensor):
        return False
    read = indices_from_subtensor(source.inputs[1:], source.op.idx_list)
    slices = [index for index in read if isinstance(index, slice)]
    numbers = [n for s in slices for n in (s.start, s.step) if n is not None]
    return all(isinstance(n, Constant) and n.data >= 0 for n in numbers)


def may_be_taken_early(node: Apply) -> bool:
    """Return whether a diagonal may be taken of the operands of what is computed.

    PyTensor leaves the new axis where the first of the two was: it belongs at the end. And of what
    it allocates, a diagonal beyond the corner gets a negative size.
    """
    x, op = node.inputs[0], node.op
    if (op.axis1, op.axis2) != (x.type.ndim - 2, x.type.ndim - 1):
        return False
    source = None if x.owner is None else x.owner.op
    if isinstance(source, AllocDiag):
        return abs(op.offset) <= abs(source.offset)
    return op.offset == 0 or not isinstance(source, Alloc | Eye)


register_guarded(local_useless_reshape, keeps_its_sizes)
register_guarded(local_join_dims, is_known_to_have_elements)
register_guarded(local_split_dims, is_known_to_have_elements)
register_guarded(local_read_of_write_same_indices, reads_what_was_set)
register_guarded(local_adv_idx_to_slice, has_no_unsigned_index)
register_guarded(local_subtensor_of_batch_dims, reads_cells_that_exist)
register_guarded(local_dimshuffle_subtensor, starts_where_it_says)
for _rewrite in (
    local_extract_diag_of_alloc_diag,
    local_extract_diag_of_eye,
    local_extract_diag_lift,
):
    # PyTensor runs these in one pass.
    add_guarded("specialize", _rewrite, may_be_taken_early)
