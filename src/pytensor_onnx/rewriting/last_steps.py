"""Which of its steps a loop makes and keeps, where only some are read."""

from pytensor.compile.mode import optdb
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import copy_stack_trace, dfs_rewriter, node_rewriter
from pytensor.scan.op import Scan
from pytensor.scan.rewriting.trace import scan_reduce_nsteps, scan_reduce_trace_no_prealloc
from pytensor.tensor.subtensor import Subtensor, indices_from_subtensor


@node_rewriter([Subtensor])
def slice_within_steps(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Replace ``rows[-9:9]`` by ``rows`` where a loop makes seven of them, ``rows[2:2]`` by none.

    PyTensor would have the loop keep as many rows as a bound says: one for ``rows[2:2]``, and rows
    that no step computes, which are not initialised.
    """
    rows, *inputs = node.inputs
    loop = rows.owner
    if loop is None or not isinstance(loop.op, Scan):
        return None
    first, *rest = indices_from_subtensor(inputs, node.op.idx_list)
    bounds = _constant_bounds(first)
    if bounds is None:
        return None
    within = _within(bounds, _number_of_rows(loop, rows))
    if within == bounds:
        return None
    result = rows[(within, *rest)]
    copy_stack_trace(node.outputs[0], result)
    return [result]


def _constant_bounds(index: slice | Variable) -> slice | None:
    """Return a slice of numbers, None where an index is no slice or a bound is not known."""
    if not isinstance(index, slice):
        return None
    bounds = (index.start, index.stop, index.step)
    if not all(b is None or isinstance(b, Constant) for b in bounds):
        return None
    return slice(*(None if b is None else int(b.data) for b in bounds))


def _number_of_rows(loop: Apply, rows: Variable) -> int | None:
    """Return how many rows an output of a loop has, None where that is not known."""
    op, n_steps = loop.op, loop.inputs[0]
    if op.info.as_while or not isinstance(n_steps, Constant):
        return None
    if rows in op.outer_nitsot_outs(loop.outputs):
        return int(n_steps.data)
    return rows.type.shape[0]


def _within(bounds: slice, length: int | None) -> slice:
    """Return a slice of the same elements whose bounds no number of elements cuts off."""
    start, stop, step = bounds.start, bounds.stop, bounds.step
    if length is None:
        has_signs = None not in (start, stop) and (start < 0) == (stop < 0)
        is_empty = has_signs and (stop <= start if step is None or step > 0 else start <= stop)
        return slice(None, 0, None) if is_empty else bounds
    if not range(*bounds.indices(length)):
        return slice(None, 0, None)
    lowest, highest = -length, length - 1
    if step is not None and step < 0:
        start = None if start is not None and start >= highest else start
        return slice(start, None if stop is not None and stop < lowest else stop, step)
    start = None if start is not None and start <= lowest else start
    return slice(start, None if stop is not None and stop > highest else stop, step)


Replacements = dict[Variable | str, Variable | list[Apply]]


@node_rewriter([Scan])
def make_what_is_read(fgraph: FunctionGraph, node: Apply) -> Replacements | None:
    """Have a loop make no more steps than are read, as PyTensor does.

    Not where a slice ends, or starts, before the last step by more than there may be: PyTensor asks
    for a negative number of steps there, or reads others.
    """
    reads = [client for output in node.outputs for client, _ in fgraph.clients[output]]
    if not all(_is_within(client, node.inputs[0]) for client in reads):
        return None
    return scan_reduce_nsteps.transform(fgraph, node) or None


def _is_within(read: Apply, n_steps: Variable) -> bool:
    if not isinstance(read.op, Subtensor):
        return True
    first, *_ = indices_from_subtensor(read.inputs[1:], read.op.idx_list)
    bounds = (first.start, first.stop) if isinstance(first, slice) else ()
    lowest = min((int(b.data) for b in bounds if isinstance(b, Constant)), default=0)
    return lowest >= 0 or (isinstance(n_steps, Constant) and -lowest <= int(n_steps.data))


@node_rewriter([Scan])
def keep_what_is_read(fgraph: FunctionGraph, node: Apply) -> Replacements | None:
    """Have a loop keep no more steps than are read, counted from the last one, as PyTensor does.

    A loop that a condition may end does not tell where other steps are from there: PyTensor counts
    on the number that it makes without the condition. Of such loops the last step alone is kept.
    """
    info = node.op.info
    initial = [
        *[0] * info.n_mit_mot,
        *(-min(taps) for taps in info.mit_sot_in_slices),
        *[1] * info.n_sit_sot,
        *[0] * info.n_nit_sot,
    ]
    if info.as_while and not all(
        _is_last_or_whole(fgraph, client, before)
        for output, before in zip(node.outputs, initial, strict=False)
        for client, _ in fgraph.clients[output]
        if isinstance(client.op, Subtensor)
    ):
        return None
    return scan_reduce_trace_no_prealloc.transform(fgraph, node) or None


def _is_last_or_whole(fgraph: FunctionGraph, read: Apply, initial: int) -> bool:
    """Return whether what is read of a buffer is its last row, or all after the initial ones."""
    first, *_ = indices_from_subtensor(read.inputs[1:], read.op.idx_list)
    if not isinstance(first, slice):
        return isinstance(first, Constant) and int(first.data) == -1
    start = 0 if first.start is None else first.start
    start = int(start.data) if isinstance(start, Constant) else start
    if start != initial or first.stop is not None or first.step is not None:
        return False
    clients = [client for client, _ in fgraph.clients[read.outputs[0]]]
    return len(clients) != 1 or not isinstance(clients[0].op, Subtensor)


# Each in the place of PyTensor's.
for _rewrite, _position in ((make_what_is_read, 1.611), (keep_what_is_read, 1.612)):
    optdb.register(
        _rewrite.__name__,
        dfs_rewriter(_rewrite, ignore_newtrees=True),
        "onnx",
        position=_position,
    )
optdb["canonicalize"].register(
    slice_within_steps.__name__, slice_within_steps, "onnx", use_db_name_as_tag=False
)
