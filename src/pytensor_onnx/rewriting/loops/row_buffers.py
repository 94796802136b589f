"""Buffers of the states of a loop that computes many rows: the steps first, then the rows."""

from collections.abc import Sequence

import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.tensor.basic import AllocEmpty
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.subtensor import (
    IncSubtensor,
    Subtensor,
    inc_subtensor,
    indices_from_subtensor,
)
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.rewriting.engine.predicates import made_by


def swapped(x: TensorVariable) -> TensorVariable:
    """Return an array with its first two axes swapped.

    Examples
    --------
    >>> x = pt.matrix("x")
    >>> swapped(swapped(x)) is x
    True
    """
    order = [1, 0, *range(2, x.type.ndim)]
    node = made_by(x, DimShuffle)
    if node is not None and list(node.op.new_order) == order:
        return node.inputs[0]
    return x.dimshuffle(order)


def buffer_of_rows(x: TensorVariable, size: Variable) -> TensorVariable:
    """Return an array of steps, repeated for each row along a new second axis.

    Of a buffer, only the steps that are set are repeated.
    """
    op = x.owner.op if x.owner is not None else None
    if isinstance(op, AllocEmpty):
        length, *sizes = x.owner.inputs
        return AllocEmpty(op.dtype)(length, size, *sizes)
    if isinstance(op, Subtensor) and _is_slice_of_steps(op):
        return buffer_of_rows(x.owner.inputs[0], size)[_indices(op, x.owner.inputs[1:])]
    if isinstance(op, IncSubtensor):
        return swapped(written_rows(x.owner, x.owner.inputs, [False] * 2, size))
    return pt.alloc(pt.expand_dims(x, 1), x.shape[0], size, *x.shape[1:])


def written_rows(
    node: Apply, inputs: Sequence[Variable], is_row: Sequence[bool], size: Variable
) -> TensorVariable:
    """Return the values that a node writes for each row, along a new leading axis.

    Parameters
    ----------
    node
        Node of an `IncSubtensor`.
    inputs
        Its inputs; the array and the value may have a leading axis of rows.
    is_row
        Whether they have.
    size
        Number of rows.
    """
    op: IncSubtensor = node.op
    array, value, *others = inputs
    if not is_row[0]:
        array = swapped(buffer_of_rows(array, size))
    core = node.inputs[0][_indices(op, node.inputs[2:])]
    missing = core.type.ndim - node.inputs[1].type.ndim
    value = pt.expand_dims(value, tuple(range(is_row[1], is_row[1] + missing)))
    indices = _indices(op, others)
    if _is_slice_of_steps(op):
        value = swapped(value) if is_row[1] else pt.expand_dims(value, 1)
        target = swapped(array)[indices]
    else:
        target = array[(slice(None), *indices)]
    written = inc_subtensor(target, value, set_instead_of_inc=op.set_instead_of_inc)
    return swapped(written) if _is_slice_of_steps(op) else written


def _is_slice_of_steps(op: Subtensor | IncSubtensor) -> bool:
    return len(op.idx_list) == 1 and isinstance(op.idx_list[0], slice)


def _indices(op: Subtensor | IncSubtensor, inputs: Sequence[Variable]) -> tuple:
    return tuple(indices_from_subtensor(inputs, op.idx_list))
