"""Run PyTensor's batch rewrites only where they terminate and reduce the number of operations."""

from itertools import takewhile

from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import copy_stack_trace
from pytensor.tensor.basic import Alloc, MakeVector
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.math import Dot
from pytensor.tensor.rewriting.blockwise import (
    blockwise_of,
    local_blockwise_alloc_inputs,
    local_eager_useless_unbatched_blockwise,
    local_useless_unbatched_blockwise,
)
from pytensor.tensor.rewriting.shape import local_reshape_to_dimshuffle
from pytensor.tensor.subtensor import Subtensor

from pytensor_onnx.rewriting.engine.guarded import guard
from pytensor_onnx.rewriting.engine.predicates import integer_of, made_by
from pytensor_onnx.rules import rewrites_nodes


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
