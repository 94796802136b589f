"""Batches: Blockwise Ops, and the batches that PyTensor's rewrites take."""

from collections.abc import Sequence
from functools import singledispatch
from itertools import takewhile

import numpy as np
import pytensor.tensor as pt
from pytensor.compile.builders import OpFromGraph
from pytensor.conditional.op import IfElse, LazyIfElse
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.graph.replace import vectorize_graph
from pytensor.graph.rewriting.basic import copy_stack_trace
from pytensor.graph.traversal import toposort
from pytensor.raise_op import CheckAndRaise
from pytensor.scan.op import Scan
from pytensor.tensor.basic import Alloc, AllocDiag, MakeVector
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.extra_ops import FillDiagonal, SearchsortedOp
from pytensor.tensor.math import Dot
from pytensor.tensor.pad import Pad, pad
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.rewriting.blockwise import (
    blockwise_of,
    local_blockwise_alloc_inputs,
    local_eager_useless_unbatched_blockwise,
    local_useless_unbatched_blockwise,
)
from pytensor.tensor.rewriting.shape import local_reshape_to_dimshuffle
from pytensor.tensor.sort import ArgSortOp, SortOp
from pytensor.tensor.subtensor import IncSubtensor, Subtensor, indices_from_subtensor
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.registry import needs_no_loop
from pytensor_onnx.ops.loops import INDEXING
from pytensor_onnx.rewriting.engine.predicates import guard, integer_of, made_by
from pytensor_onnx.rules import rewrites_nodes

# Replace a `Blockwise` by one operation on more axes.
#
# Most Ops of PyTensor have a batched form of their own; this module has further ones. The remaining
# ones become loops, unless their ONNX form takes batches.

LOOPING = (Scan, IfElse, LazyIfElse, CheckAndRaise, RandomVariable)
"""Ops that stay in a loop: they loop, choose, fail or draw in each step."""


@rewrites_nodes(
    [Blockwise],
    family="structure",
    purpose="speed",
    identity="Blockwise{f}(X) = f on more axes",
    requires="an Op with a batched form",
    measured="benchmarks/NOTES.md, Loops: Batches",
)
def batch_by_axes(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Replace a `Blockwise` by an operation on more axes.

    Examples
    --------
    >>> import pytensor, pytensor.tensor as pt
    >>> x = pt.tensor3("x")
    >>> f = pytensor.function([x], pt.vectorize(pt.sort, "(n)->(n)")(x), mode="ONNX")
    >>> [node.op.axis for node in f.maker.fgraph.toposort()]
    [2]
    """
    results = batched(node.op.core_op, node)
    if results is None:
        return None
    kept = []
    for old, new in zip(node.outputs, results, strict=True):
        pairs = zip(old.type.broadcastable, new.type.broadcastable, strict=True)
        if any(one and not other for other, one in pairs):
            # The result does not depend on the batched inputs.
            return None
        copy_stack_trace(old, new)
        kept.append(old.type.filter_variable(new, allow_convert=True))
    return kept


def takes_a_loop(node: Apply) -> bool:
    """Return whether a node of a batched graph would be lowered to a loop."""
    if isinstance(node.op, LOOPING):
        return True
    if not isinstance(node.op, Blockwise):
        return False
    if isinstance(node.op.core_op, INDEXING):
        rank = _batch_rank(node)
        varying = {x for x in node.inputs if not all(x.type.broadcastable[:rank])}
        return has_own_slices(node.op.core_op, node.inputs, varying)
    if needs_no_loop(node.op.core_op):
        return False
    return batched(node.op.core_op, node) is None


def has_own_slices(op: Op, inputs: Sequence[Variable], batched: set[Variable]) -> bool:
    """Return whether slices differ between the arrays of a batch, as their lengths may then.

    Parameters
    ----------
    op, inputs
        The core Op and its inputs.
    batched
        The inputs that differ between the arrays of the batch.
    """
    if not isinstance(op, Subtensor | IncSubtensor):
        return False
    n_arrays = 1 + isinstance(op, IncSubtensor)
    indices = indices_from_subtensor(inputs[n_arrays:], op.idx_list)
    bounds = [x for i in indices if isinstance(i, slice) for x in (i.start, i.stop, i.step)]
    return any(x in batched for x in bounds if isinstance(x, Variable))


@singledispatch
def batched(op: Op, node: Apply) -> Sequence[TensorVariable] | None:
    """Return the outputs of a Blockwise, computed by operations on more axes.

    Parameters
    ----------
    op
        The core Op, by whose class the form is found.
    node
        The Blockwise; its inputs have leading batch axes, of size one if they broadcast.

    Returns
    -------
    sequence of TensorVariable or None
        None if no batched form is known.
    """
    return None


@batched.register(SortOp)
@batched.register(ArgSortOp)
def _batched_sort(op: SortOp | ArgSortOp, node: Apply) -> Sequence[TensorVariable]:
    (x,) = node.inputs
    return [type(op)(kind=op.kind, axis=op.axis + _batch_rank(node))(x)]


@batched.register(AllocDiag)
def _batched_alloc_diag(op: AllocDiag, node: Apply) -> Sequence[TensorVariable]:
    (diagonal,) = node.inputs
    rank = _batch_rank(node)
    batched_op = AllocDiag(axis1=op.axis1 + rank, axis2=op.axis2 + rank, offset=op.offset)
    return [batched_op(diagonal)]


@batched.register(Alloc)
def _batched_alloc(op: Alloc, node: Apply) -> Sequence[TensorVariable] | None:
    """Allocate for the whole batch; the sizes must be equal in all of it, as for `bincount`."""
    rank = _batch_rank(node)
    value, *sizes = node.inputs
    shared = _without_batch(value, rank)
    varying = [size for size in sizes if _without_batch(size, rank) is None]
    if shared is None or len(varying) != 1:
        return None
    first = pt.concatenate([varying[0].ravel(), np.zeros(1, "int64")])[0]
    check = CheckAndRaise(ValueError, "the arrays of a batch would have different sizes")
    size = check(first, pt.all(pt.eq(varying[0], first)))
    core = [size if x is varying[0] else x.squeeze() for x in sizes]
    return [pt.alloc(shared, *varying[0].shape, *core)]


@batched.register(FillDiagonal)
def _batched_fill_diagonal(op: FillDiagonal, node: Apply) -> Sequence[TensorVariable] | None:
    x, value = node.inputs
    if x.type.ndim - _batch_rank(node) != 2:
        return None
    on_diagonal = pt.eq(pt.arange(x.shape[-2])[:, None], pt.arange(x.shape[-1]))
    return [pt.switch(on_diagonal, pt.cast(value[..., None, None], x.type.dtype), x)]


@batched.register(Pad)
def _batched_pad(op: Pad, node: Apply) -> Sequence[TensorVariable] | None:
    """Pad the batch axes by zero; the padding must be the same for the whole batch."""
    rank = _batch_rank(node)
    x, _, *options = node.inputs
    if op.static_pad_width is None:
        return None
    name = {"constant": "constant_values", "linear_ramp": "end_values"}.get(op.pad_mode)
    given = {}
    for option in options:
        shared = _without_batch(option, rank)
        if shared is None:
            return None
        given[name or "stat_length"] = _for_more_axes(shared, rank)
    return [pad(x, [*[(0, 0)] * rank, *op.static_pad_width], mode=op.pad_mode, **given)]


def _for_more_axes(option: TensorVariable, rank: int) -> TensorVariable:
    """Add rows for the batch axes to an option that is given for each axis."""
    if option.type.ndim < 2 or option.type.shape[0] == 1:
        return option
    return pt.concatenate([pt.ones((rank, option.shape[1]), dtype=option.dtype), option])


@batched.register(SearchsortedOp)
def _batched_search(op: SearchsortedOp, node: Apply) -> Sequence[TensorVariable] | None:
    """Search one sorted array for the values of the whole batch."""
    x, values, *sorter = node.inputs
    rank = _batch_rank(node)
    shared = [_without_batch(y, rank) for y in (x, *sorter)]
    if any(y is None for y in shared):
        return None
    return [op(shared[0], values, *shared[1:])]


@batched.register(OpFromGraph)
def _batched_graph(op: OpFromGraph, node: Apply) -> Sequence[TensorVariable] | None:
    """Compute the inner graph for the whole batch, unless that requires a loop."""
    rank = _batch_rank(node)
    inner = op.fgraph.unfreeze()
    given = {}
    for variable, x in zip(inner.inputs, node.inputs, strict=True):
        shared = _without_batch(x, rank)
        given[variable] = x if shared is None else shared
    try:
        results = vectorize_graph(list(inner.outputs), given)
    except (NotImplementedError, TypeError, ValueError):
        return None
    if any(map(takes_a_loop, toposort(results, blockers=list(given.values())))):
        return None
    if any(x.type.ndim != y.type.ndim for x, y in zip(results, node.outputs, strict=True)):
        return None
    return results


def _batch_rank(node: Apply) -> int:
    return node.op.batch_ndim(node)


def _without_batch(x: TensorVariable, rank: int) -> TensorVariable | None:
    """Return an input without its batch axes, None if one of them has a size other than one."""
    return x.squeeze(axis=tuple(range(rank))) if all(x.type.broadcastable[:rank]) else None


def repeats_batches(node: Apply) -> bool:
    """Return whether an operand repeats its values along a batch axis.

    Otherwise the rewrite takes a batch axis of size one away, `local_dimshuffle_alloc` gives it
    back, and both go on without end.
    """
    batch_ndim = node.op.batch_ndim(node)
    return any(_repeats(x, batch_ndim) for x in node.inputs)


def _repeats(x: Variable, batch_ndim: int) -> bool:
    repeated = made_by(x, Alloc)
    if repeated is None:
        return False
    value = repeated.inputs[0].type
    has_one = (True,) * (x.type.ndim - value.ndim) + value.broadcastable
    pairs = zip(has_one[:batch_ndim], x.type.broadcastable[:batch_ndim], strict=True)
    return any(before and not after for before, after in pairs)


def needs_no_batch(node: Apply) -> bool:
    """Return whether an operation on batches of size one is simpler without them.

    A product in ONNX broadcasts them, so that they stay where an operand has them: a network of a
    batch of one would drop the axis before each product and add it after.
    """
    batch_ndim = node.op.batch_ndim(node)
    if not isinstance(node.op.core_op, Dot) or not batch_ndim:
        return True
    return all(_adds_batch(x, batch_ndim) for x in node.inputs)


def _adds_batch(x: Variable, batch_ndim: int) -> bool:
    if x.owner is None:
        return isinstance(x, Constant)
    op = x.owner.op
    return isinstance(op, DimShuffle) and set(op.new_order[:batch_ndim]) == {"x"}


def has_other_ones(node: Apply) -> bool:
    """Return whether a Reshape adds or drops axes of size one, or moves them.

    A batch of one before other axes, in operand and result, stays: without it, the additions and
    transpositions around the Reshape would have no batch either, but the products.
    """
    before, after = node.inputs[0].type.broadcastable, _ones_of(node)
    kept = takewhile(
        lambda ones: ones[0] and ones[1] is not False, zip(before, after, strict=False)
    )
    batches = sum(1 for _ in kept)
    return not batches or any(before[batches:]) or any(after[batches:])


def _ones_of(reshape: Apply) -> list[bool | None]:
    """Return for each axis of a reshape whether its size is one, or None if the shape is a slice.

    PyTensor simplifies that later, and visits the Reshape again.
    """
    known, made = reshape.outputs[0].type.broadcastable, made_by(reshape.inputs[1], MakeVector)
    if made is None:
        return list(known)
    return [one or _is_one(size) for one, size in zip(known, made.inputs, strict=True)]


def _is_one(size: Variable) -> bool | None:
    return None if made_by(size, Subtensor) else integer_of(size) == 1


GUARDS = (
    guard(
        local_blockwise_alloc_inputs,
        repeats_batches,
        family="structure",
        purpose="compile time",
        identity="Blockwise{f}(alloc(x, n)) = f(x)",
        requires="x is repeated along a batch axis; else rewriting does not end",
        measured="docs/project/upstream.md#the-axis-of-a-repeated-batch-is-dropped-and-given-back",
    ),
    guard(
        local_eager_useless_unbatched_blockwise,
        needs_no_batch,
        family="structure",
        purpose="compile time",
        identity="Blockwise{f}(x[None]) = f(x)[None]",
        requires="a product has no batch of one by itself",
    ),
    guard(
        local_reshape_to_dimshuffle,
        has_other_ones,
        family="shape",
        purpose="compile time",
        identity="reshape(x, (1, …)) = x[None]",
        requires="axes of size one other than the batch",
    ),
)


@rewrites_nodes(
    [blockwise_of(Dot)],
    family="products",
    purpose="compile time",
    identity="Blockwise{dot}(A, B) = dot(A, B)",
    requires="no batch axes",
    measured="benchmarks/NOTES.md, Compilation",
)
def multiply_matrices(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Replace a product of matrices without batch dimensions by its core Op.

    PyTensor does so within the canonical form, whose rewrites would then run once more.
    """
    if node.op.batch_ndim(node):
        return None
    return copy_stack_trace(node.outputs, node.op.core_op.make_node(*node.inputs).outputs)


drop_batches = guard(
    local_useless_unbatched_blockwise,
    needs_no_batch,
    family="structure",
    purpose="compile time",
    identity="Blockwise{f}(x[None]) = f(x)[None]",
    requires="a product has no batch of one by itself",
    measured="benchmarks/NOTES.md, Images of any size, and batches of one",
).guarded()
"""Replace operations on batches of size one by those on single arrays, at the end."""
