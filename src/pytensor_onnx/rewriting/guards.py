"""Rewrites of PyTensor that are wrong for some nodes run on all others only."""

from collections.abc import Callable, Sequence
from itertools import zip_longest

import numpy as np
from pytensor.compile.mode import optdb
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import NodeRewriter, node_rewriter
from pytensor.graph.rewriting.db import TopoDB
from pytensor.tensor.basic import Alloc, AllocDiag, Eye
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.math import Prod, ProdWithoutZeros, Sum, add, int_div, mul, sub, true_div
from pytensor.tensor.rewriting.extra_ops import local_Unique_lift
from pytensor.tensor.rewriting.math import (
    local_abs_lift,
    local_careduce_of_alloc,
    local_div_by_one,
    local_log1p,
    local_mul_specialize,
    local_neg_to_mul,
    local_reciprocal_canon,
    local_sign_prod,
    local_sum_of_neg_to_neg_of_sum,
    local_sum_prod_of_mul_or_div,
    local_sumsqr2dot,
    local_useless_abs,
    local_useless_sign,
    local_zero_div,
)
from pytensor.tensor.rewriting.reshape import local_split_dims
from pytensor.tensor.rewriting.shape import (
    _is_shape_i_of_x,
    _unpack_shape_vector,
    local_useless_reshape,
)
from pytensor.tensor.rewriting.subtensor import local_read_of_write_same_indices
from pytensor.tensor.rewriting.subtensor_lift import (
    local_extract_diag_lift,
    local_extract_diag_of_alloc_diag,
    local_extract_diag_of_eye,
    local_subtensor_of_batch_dims,
)
from pytensor.tensor.rewriting.uncanonicalize import local_dimshuffle_subtensor, local_max_to_min
from pytensor.tensor.subtensor import Subtensor, indices_from_subtensor


def register_guarded(
    rewrite: NodeRewriter, databases: Sequence[str], is_right: Callable[[Apply], bool]
) -> None:
    """Register a rewrite of PyTensor under a condition; the query leaves out PyTensor's own.

    Parameters
    ----------
    rewrite
        What PyTensor registers.
    databases
        Where PyTensor registers it.
    is_right
        Whether the rewrite may be applied to a node.
    """

    @node_rewriter(rewrite.tracks())
    def guarded(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
        return rewrite.transform(fgraph, node) if is_right(node) else None

    for name in databases:
        database = optdb[name]
        target = database.db if isinstance(database, TopoDB) else database
        target.register(f"guarded_{rewrite}", guarded, "onnx", use_db_name_as_tag=False)


def divides_exactly(node: Apply) -> bool:
    """Return whether a division by one changes nothing: a floor division of floats rounds."""
    return node.op != int_div or not node.outputs[0].type.dtype.startswith("float")


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


def is_known_to_have_elements(node: Apply) -> bool:
    """Return whether no size of a result is zero by its type.

    Where all sizes but one are known, that one is as well: not if their product is zero.
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


def is_known_to_take_elements(node: Apply) -> bool:
    """Return whether no size of an operand may be zero: repeated no times, it has no values."""
    return all(node.inputs[0].type.shape)


def may_be_reduced_once(node: Apply) -> bool:
    """Return whether a repeated number may be reduced as one: it may be repeated no times.

    Of no numbers there is no largest one, and none is true. Their sum is zero, which a product with
    their count is for finite ones only. A result that is cut to an integer is cut at the end.
    """
    x, axes = node.inputs[0], node.op.axis
    if x.owner is None or not isinstance(x.owner.op, Alloc):
        return False
    if x.type.dtype.startswith("float") and "int" in node.outputs[0].type.dtype:
        return False
    sizes = x.type.shape if axes is None else [x.type.shape[axis] for axis in axes]
    if all(sizes) or getattr(node.op, "initial", False):
        return True
    value = x.owner.inputs[0]
    is_finite = isinstance(value, Constant) and np.isfinite(value.data).all()
    is_sum = isinstance(node.op, Sum) and (is_finite or not value.dtype.startswith("float"))
    return is_sum or isinstance(node.op, Prod | ProdWithoutZeros)


def is_log_of_one_plus(node: Apply) -> bool:
    """Return whether ``log`` is of one and a float: integers wrap around, and near one is not one.

    PyTensor takes all constants up to ten units in the last place away for one.
    """
    x = node.inputs[0]
    if x.owner is None or x.owner.op not in (add, sub) or not x.type.dtype.startswith("float"):
        return False
    constants = [operand.data for operand in x.owner.inputs if isinstance(operand, Constant)]
    return bool(constants) and bool(np.all(sum(constants) == 1))


def takes_floats(node: Apply) -> bool:
    """Return whether an operand is of floats: what integers are computed by may wrap around."""
    return node.inputs[0].type.dtype.startswith("float")


def has_minus_one(node: Apply) -> bool:
    """Return whether a dtype has the -1 that PyTensor multiplies by, without which it complains."""
    return node.inputs[0].type.dtype.startswith(("int", "float"))


def is_wide_float(node: Apply) -> bool:
    """Return whether a power with the float exponent that PyTensor takes has the same dtype."""
    return node.inputs[0].type.dtype in ("float32", "float64")


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


def has_common_factor(node: Apply) -> bool:
    """Return whether a factor or divisor may be taken out of a sum.

    Integers of a product may wrap around before they are added up, and float16 overflows in the
    sum. A sum of no numbers is zero, whatever the factor. Powers of a factor of a product may
    overflow where the product does not.
    """
    x, axes = node.inputs[0], node.op.axis
    dtypes = {x.type.dtype, node.outputs[0].type.dtype}
    is_product = x.owner is not None and x.owner.op in (mul, true_div)
    if not isinstance(node.op, Sum) or not is_product or not dtypes <= {"float32", "float64"}:
        return False
    sizes = x.type.shape if axes is None else [x.type.shape[axis] for axis in axes]
    if all(sizes):
        return True
    axes = range(x.type.ndim) if axes is None else axes
    factors = x.owner.inputs[1:] if x.owner.op == true_div else x.owner.inputs
    outer = [f for f in factors if all(f.type.broadcastable[axis] for axis in axes)]
    return all(isinstance(f, Constant) and _is_usual(f, x.owner.op) for f in outer)


def _is_usual(factor: Constant, op: Op) -> bool:
    with np.errstate(divide="ignore"):
        return bool(np.isfinite(1 / factor.data if op == true_div else factor.data).all())


def is_integer(node: Apply) -> bool:
    """Return whether a result is an integer: ``-x`` has no place for the smallest one."""
    return node.outputs[0].type.dtype.startswith("int")


def has_zero_quotient(node: Apply) -> bool:
    """Return whether a zero is the quotient of a zero and anything: 0.0 / 0.0 is NaN."""
    return has_unknown_operand(node) and not node.outputs[0].type.dtype.startswith("float")


def has_unknown_operand(node: Apply) -> bool:
    """Return whether a result is not known: what is known is computed as it is written.

    PyTensor takes the quotient of a number and itself for one.
    """
    return not all(isinstance(x, Constant) for x in node.inputs)


def is_zero_quotient(node: Apply) -> bool:
    """Return whether a zero is divided."""
    dividend = node.inputs[0]
    return node.op == true_div and isinstance(dividend, Constant) and not np.any(dividend.data)


def may_be_broadcast(operands: Sequence[Variable]) -> bool:
    """Return whether known sizes agree: a product with zeros would be zeros of one of the sizes."""
    axes = zip_longest(*(x.type.shape[::-1] for x in operands))
    return all(len({*sizes} - {None, 1}) <= 1 for sizes in axes)


register_guarded(local_div_by_one, ["canonicalize"], divides_exactly)
register_guarded(local_zero_div, ["canonicalize", "specialize"], has_zero_quotient)
# Before negations become products, and what is known is computed.
register_guarded(local_max_to_min, ["useless"], is_integer)
register_guarded(local_useless_reshape, ["useless", "canonicalize", "specialize"], keeps_its_sizes)
register_guarded(local_split_dims, ["canonicalize"], is_known_to_have_elements)
register_guarded(
    local_read_of_write_same_indices, ["canonicalize", "specialize"], reads_what_was_set
)
register_guarded(local_Unique_lift, ["useless", "canonicalize"], is_known_to_take_elements)
register_guarded(local_mul_specialize, ["specialize"], lambda node: may_be_broadcast(node.inputs))
register_guarded(local_careduce_of_alloc, ["specialize"], may_be_reduced_once)
register_guarded(local_sum_prod_of_mul_or_div, ["specialize"], has_common_factor)
register_guarded(local_sum_of_neg_to_neg_of_sum, ["specialize"], takes_floats)
register_guarded(local_sumsqr2dot, ["canonicalize", "specialize"], takes_floats)
register_guarded(local_abs_lift, ["canonicalize"], takes_floats)
for _step in (local_useless_abs, local_useless_sign, local_sign_prod):
    register_guarded(_step, ["canonicalize", "stabilize", "specialize"], takes_floats)
register_guarded(local_neg_to_mul, ["canonicalize"], has_minus_one)
register_guarded(local_reciprocal_canon, ["canonicalize"], is_wide_float)
register_guarded(local_log1p, ["stabilize", "specialize"], is_log_of_one_plus)
register_guarded(local_dimshuffle_subtensor, ["uncanonicalize"], starts_where_it_says)
register_guarded(
    local_subtensor_of_batch_dims, ["canonicalize", "specialize"], reads_cells_that_exist
)
for _step in (
    local_extract_diag_of_alloc_diag,
    local_extract_diag_of_eye,
    local_extract_diag_lift,
):
    register_guarded(_step, ["specialize"], may_be_taken_early)
