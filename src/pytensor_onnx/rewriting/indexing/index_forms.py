"""Forms of indices and of increments."""

from collections.abc import Hashable, Sequence

import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import copy_stack_trace
from pytensor.graph.rewriting.unify import OpPattern
from pytensor.tensor.basic import Join
from pytensor.tensor.math import add, variadic_add
from pytensor.tensor.rewriting.blockwise import blockwise_of
from pytensor.tensor.subtensor import (
    AdvancedIncSubtensor,
    AdvancedSubtensor,
    IncSubtensor,
    Subtensor,
    advanced_subtensor,
    unflatten_index_variables,
)
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.rewriting.engine.batches import batch_by_axes
from pytensor_onnx.rewriting.engine.predicates import filling_of, made_by, only_client
from pytensor_onnx.rewriting.engine.walkers import ONE_INDEX, matching
from pytensor_onnx.rules import part_of, rewrites_nodes

# Write sums of incremented arrays as increments of one array, one for each index.
#
# The gradient in the elements of a vector is such a sum, with an array of zeros for each element
# that is read. PyTensor's `local_IncSubtensor_serialize` moves one increment past one addition at a
# time: quadratically many steps for n terms, and n increments where few elements are read. Here a
# whole sum is rewritten at once.


@rewrites_nodes(
    [add],
    name="join_writes",
    family="indexing",
    purpose="compile time",
    identity="inc(x, a, i) + inc(y, b, j) = inc(inc(x + y, a, i), b, j), and "
    "set(set(x, a, i), b, i) = set(x, b, i)",
    ensures="n steps for n writes where PyTensor takes n²",
    begins_at=("add", "IncSubtensor", "AdvancedIncSubtensor"),
)
def join_increments(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Write a sum of incremented arrays as increments of the sum of the arrays."""
    result = node.outputs[0]
    if _is_term(fgraph, result):
        return None
    terms, increments = _parts(fgraph, node)
    if not increments:
        return None
    total = variadic_add(*terms)
    copy_stack_trace(result, total)
    for increment, value in _joined(increments):
        total = increment.owner.op(total, value, *increment.owner.inputs[2:])
        copy_stack_trace([result, increment], total)
    return [total]


def _is_term(fgraph: FunctionGraph, x: Variable) -> bool:
    """Return whether a sum is a term of another one, which is rewritten with it."""
    client = only_client(fgraph, x)
    return client is not None and client.op == add and x.type.is_super(client.outputs[0].type)


def _parts(fgraph: FunctionGraph, node: Apply) -> tuple[list[Variable], list[Variable]]:
    """Return the arrays that a sum adds, and the increments of those, both in order."""
    whole = node.outputs[0].type
    terms: list[Variable] = []
    zeros: list[Variable] = []
    increments: list[Variable] = []
    left = list(reversed(node.inputs))
    while left:
        x = left.pop()
        is_inner = only_client(fgraph, x) and x.owner is not None and x.owner.op == add
        if is_inner and x.type.is_super(whole):
            left.extend(reversed(x.owner.inputs))
            continue
        chain = _increments_of(fgraph, x) if x.type.is_super(whole) else []
        base = chain[0].owner.inputs[0] if chain else x
        (zeros if chain and filling_of(base) == 0 else terms).append(base)
        increments.extend(chain)
    return terms + zeros[:1], increments


def _increments_of(fgraph: FunctionGraph, x: Variable) -> list[Variable]:
    """Return the increments of an array that only the next of them reads, first to last."""
    chain = []
    while only_client(fgraph, x) and (write := made_by(x, IncSubtensor | AdvancedIncSubtensor)):
        if write.op.set_instead_of_inc:
            break
        chain.append(x)
        x = write.inputs[0]
    return chain[::-1]


def _joined(increments: Sequence[Variable]) -> list[tuple[Variable, Variable]]:
    """Return an increment of each index, and the sum of all values that are added there."""
    groups: dict[Hashable, list[Variable]] = {}
    for increment in increments:
        groups.setdefault(_place(increment), []).append(increment)
    return [
        (group[0], variadic_add(*(increment.owner.inputs[1] for increment in group)))
        for group in groups.values()
    ]


def _place(increment: Variable) -> Hashable:
    """Return the common key of increments whose values may be added first.

    An index may broadcast values of unknown size, and a narrow sum may wrap around.
    """
    value, *indices = increment.owner.inputs[1:]
    if None in value.type.shape or value.type.dtype != increment.type.dtype:
        return increment
    key = (i.signature() if isinstance(i, Constant) else i for i in indices)
    return increment.owner.op, value.type.shape, *key


_WHOLE = slice(None)


@rewrites_nodes(
    [AdvancedSubtensor, AdvancedIncSubtensor],
    family="indexing",
    purpose="correctness",
    identity="x[mask, a:b] = x[:, :, a:b][mask]",
    requires="a mask of several axes",
    measured="docs/project/upstream.md#a-slice-after-a-mask-of-several-axes-is-compared-with-another-axis",
)
def slice_before_masking(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Apply the slices after a mask of several axes first, in a separate index.

    PyTensor's `local_useless_slice` counts such a mask as one axis: it compares the bounds of the
    slices after the mask with the sizes of other axes, and may drop them.
    """
    op, writes = node.op, isinstance(node.op, AdvancedIncSubtensor)
    x, values = node.inputs[0], node.inputs[1 + writes :]
    entries = unflatten_index_variables(values, op.idx_list)
    masks = [place for place, entry in enumerate(entries) if _covers_several_axes(entry)]
    if not masks or all(entry == _WHOLE for entry in entries[masks[0] :] if _is_slice(entry)):
        return None
    slices = [
        part
        for entry in entries
        for part in ([entry] if _is_slice(entry) else [_WHOLE] * _covered_axes(entry))
    ]
    arrays = [_WHOLE if _is_slice(entry) else entry for entry in entries]
    view = x[tuple(slices)]
    result = advanced_subtensor(view, *arrays)
    if writes:
        props = {name: getattr(op, name) for name in op.__props__}
        props["idx_list"] = result.owner.op.idx_list
        result = view.set(
            AdvancedIncSubtensor(**props)(view, node.inputs[1], *result.owner.inputs[1:])
        )
    copy_stack_trace(node.outputs[0], result)
    return [result]


@rewrites_nodes(
    [Subtensor],
    family="indexing",
    purpose="correctness",
    identity="join(u, v)[-k] = join(u, v)[len(u) + len(v) - k]",
    requires="a constant index from the end",
    measured="docs/project/upstream.md#an-index-from-the-end-of-joined-vectors-is-looked-up-in-the-first",
)
@matching(
    OpPattern(Subtensor, idx_list=ONE_INDEX),
    {"pattern": "x", "constraint": lambda x: x.type.ndim == 1 and made_by(x, Join)},
    {"pattern": "index", "constraint": lambda i: isinstance(i, Constant) and i.data < 0},
)
def index_joined_from_start(node: Apply, x: TensorVariable, index: Constant) -> Variable:
    """Count a constant index of joined vectors from the start.

    PyTensor looks an index from the end up in the first vector whose length is known: it takes
    ``concatenate([[0], v])[-1]`` for the constant zero.
    """
    element: Variable = x[x.shape[0] + int(index.data)]
    return element


def _is_slice(entry: Variable | slice) -> bool:
    return isinstance(entry, slice)


def _covered_axes(entry: Variable) -> int:
    return entry.type.ndim if entry.type.dtype == "bool" else 1


def _covers_several_axes(entry: Variable | slice) -> bool:
    return not isinstance(entry, slice) and _covered_axes(entry) > 1


@part_of(batch_by_axes.rule, [blockwise_of(AdvancedSubtensor), blockwise_of(Subtensor)])
def index_by_batch(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Replace a `Blockwise` of an index by one index with arrays of the batch positions.

    Masks are left alone, since they may select a different number of elements in each batch, and so
    are slices with a batch of bounds.
    """
    op, batch = node.op.core_op, node.op.batch_ndim(node)
    x, *indices = node.inputs
    if any(index.type.dtype == "bool" for index in indices):
        return None
    entries = unflatten_index_variables(indices, op.idx_list)
    bounds = [
        bound
        for entry in entries
        if isinstance(entry, slice)
        for bound in (entry.start, entry.stop, entry.step)
        if bound is not None
    ]
    if not all(all(bound.type.broadcastable) for bound in bounds):
        return None
    arrays = [entry for entry in entries if not isinstance(entry, slice)]
    if not arrays:
        return None
    width = max(array.type.ndim for array in arrays) - batch
    index: list[TensorVariable | slice] = [
        _squeezed(entry) if isinstance(entry, slice) else _aligned(entry, batch, width)
        for entry in entries
    ]
    places = [place for place, entry in enumerate(entries) if not isinstance(entry, slice)]
    adjacent = places == list(range(places[0], places[-1] + 1))
    position = places[0] if adjacent else 0
    if all(x.type.broadcastable[:batch]):
        selected = x.squeeze(tuple(range(batch)))[tuple(index)]
        result = pt.moveaxis(selected, range(position, position + batch), range(batch))
    else:
        counts = [
            pt.shape_padright(pt.arange(x.shape[axis]), batch - axis - 1 + width)
            for axis in range(batch)
        ]
        selected = x[(*counts, *index)]
        block = range(batch, batch + width)
        result = pt.moveaxis(selected, block, [axis + position for axis in block])
    copy_stack_trace(node.outputs[0], result)
    return [result]


def _aligned(array: TensorVariable, batch: int, width: int) -> TensorVariable:
    """Return a batch of index arrays, expanded to the rank to which they broadcast."""
    own = range(batch, array.type.ndim)
    return array.dimshuffle(*range(batch), *["x"] * (width - len(own)), *own)


def _squeezed(entry: slice) -> slice:
    bounds = (entry.start, entry.stop, entry.step)
    return slice(*(None if bound is None else bound.squeeze() for bound in bounds))


@rewrites_nodes(
    [AdvancedIncSubtensor],
    family="indexing",
    purpose="correctness",
    identity="inc(x, v, i) = inc(x, v[None], i)",
    requires="a vector at an array of positions, which NumPy's add.at reads past its end",
)
def repeat_by_an_axis(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Add leading axes to a vector that is added at an array of positions.

    Without them, NumPy's ``add.at`` reads past the end of the vector when constants are folded.
    """
    x, y, *indices = node.inputs
    rank = max((index.type.ndim for index in indices), default=0)
    if node.op.set_instead_of_inc or x.type.ndim != 1 or y.type.ndim != 1 or rank < 2:
        return None
    result = node.op(x, pt.shape_padleft(y, rank - 1), *indices)
    copy_stack_trace(node.outputs[0], result)
    return [result]


@part_of(join_increments.rule, [IncSubtensor, AdvancedIncSubtensor])
def write_over_all(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Write to the array as it was before all writes at the same indices.

    PyTensor drops one write at a time, which takes the square of the length of a chain.

    Examples
    --------
    >>> from pytensor_onnx import export_onnx
    >>> x, y = pt.dvector("x"), pt.dvector("y")
    >>> written = x[2:].set(y)[2:].inc(1)[2:].set(2 * y)
    >>> [node.op_type for node in export_onnx([x, y], written).model.graph].count("ScatterND")
    1
    """
    if not node.op.set_instead_of_inc:
        return None
    x, value, *indices = node.inputs
    first = x
    while (
        (earlier := made_by(first, type(node.op)))
        and earlier.op.idx_list == node.op.idx_list
        and all(a is b for a, b in zip(earlier.inputs[2:], indices, strict=True))
    ):
        first = earlier.inputs[0]
    if first is x:
        return None
    result = type(node.op)(idx_list=node.op.idx_list, set_instead_of_inc=True)(
        first, value, *indices
    )
    copy_stack_trace(node.outputs[0], result)
    return [node.outputs[0].type.filter_variable(result, allow_convert=True)]
