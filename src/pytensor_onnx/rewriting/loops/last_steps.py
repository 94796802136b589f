"""Reduce the steps and the trace of a loop to the part that is used."""

from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import copy_stack_trace, node_rewriter
from pytensor.scan.op import Scan
from pytensor.scan.rewriting.trace import scan_reduce_nsteps, scan_reduce_trace_no_prealloc
from pytensor.tensor.subtensor import Subtensor, indices_from_subtensor


@node_rewriter([Subtensor])
def slice_within_steps(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Clip constant slices to the rows of a loop: ``rows[-9:9]`` of seven rows is ``rows``.

    PyTensor would have the loop store as many rows as a bound says: one row for ``rows[2:2]``, and
    uninitialised rows that no step computes.
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
    """Return a slice of numbers, None for other indices and unknown bounds."""
    if not isinstance(index, slice):
        return None
    bounds = (index.start, index.stop, index.step)
    if not all(b is None or isinstance(b, Constant) for b in bounds):
        return None
    return slice(*(None if b is None else int(b.data) for b in bounds))


def _number_of_rows(loop: Apply, rows: Variable) -> int | None:
    """Return the number of rows of an output of a loop, None if unknown."""
    op, n_steps = loop.op, loop.inputs[0]
    if op.info.as_while or not isinstance(n_steps, Constant):
        return None
    if rows in op.outer_nitsot_outs(loop.outputs):
        return int(n_steps.data)
    return rows.type.shape[0]


def _within(bounds: slice, length: int | None) -> slice:
    """Return an equivalent slice without bounds outside of the rows."""
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
def reduce_steps(fgraph: FunctionGraph, node: Apply) -> Replacements | None:
    """Reduce the number of steps to the used ones, as PyTensor does.

    Slices whose negative bounds may exceed the number of steps are left alone: PyTensor would
    compute a negative number of steps, or return other steps.
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
def reduce_trace(fgraph: FunctionGraph, node: Apply) -> Replacements | None:
    """Reduce the trace of a loop to its last used steps, as PyTensor does.

    With a loop that a condition may end, PyTensor counts other steps from the maximum number of
    steps; there only a trace of the last step is reduced. A slice from the end to a position
    counted from the beginning needs all steps: it is empty for most lengths.
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
    clients = (client for output in node.outputs for client, _ in fgraph.clients[output])
    if any(isinstance(client.op, Subtensor) and _mixes_ends(client) for client in clients):
        return None
    return scan_reduce_trace_no_prealloc.transform(fgraph, node) or None


def _mixes_ends(read: Apply) -> bool:
    """Return whether a slice has one bound counted from the end, and another one that is not."""
    first, *_ = indices_from_subtensor(read.inputs[1:], read.op.idx_list)
    if not isinstance(first, slice) or first.start is None or first.stop is None:
        return False
    from_end = [isinstance(b, Constant) and int(b.data) < 0 for b in (first.start, first.stop)]
    return from_end[0] != from_end[1]


def _is_last_or_whole(fgraph: FunctionGraph, read: Apply, initial: int) -> bool:
    """Return whether an index selects the last row, or all rows after the initial ones."""
    first, *_ = indices_from_subtensor(read.inputs[1:], read.op.idx_list)
    if not isinstance(first, slice):
        return isinstance(first, Constant) and int(first.data) == -1
    start = 0 if first.start is None else first.start
    start = int(start.data) if isinstance(start, Constant) else start
    if start != initial or first.stop is not None or first.step is not None:
        return False
    clients = [client for client, _ in fgraph.clients[read.outputs[0]]]
    return len(clients) != 1 or not isinstance(clients[0].op, Subtensor)
