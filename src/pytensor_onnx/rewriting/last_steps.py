"""Which of its steps a loop makes and keeps, where only some are read."""

from pytensor.compile.mode import optdb
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import copy_stack_trace, dfs_rewriter, node_rewriter
from pytensor.scan.op import Scan
from pytensor.scan.rewriting.trace import scan_reduce_nsteps, scan_reduce_trace_no_prealloc
from pytensor.tensor.subtensor import Subtensor, indices_from_subtensor


@node_rewriter([Subtensor])
def take_all_steps(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Replace ``rows[-k:]`` by ``rows`` where a loop is known to make at most k of them.

    PyTensor would have the loop keep k rows: those that no step computes are not initialised.
    """
    rows, *inputs = node.inputs
    loop = rows.owner
    if loop is None or not isinstance(loop.op, Scan) or not isinstance(loop.inputs[0], Constant):
        return None
    if rows not in loop.op.outer_nitsot_outs(loop.outputs):
        return None
    first, *rest = indices_from_subtensor(inputs, node.op.idx_list)
    start = first.start if isinstance(first, slice) else None
    if not isinstance(start, Constant) or first.stop is not None or first.step is not None:
        return None
    if not -int(start.data) >= int(loop.inputs[0].data):
        return None
    result = rows[(slice(None), *rest)]
    copy_stack_trace(node.outputs[0], result)
    return [result]


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
    take_all_steps.__name__, take_all_steps, "onnx", use_db_name_as_tag=False
)
