"""Replace loops that compute an LSTM or a GRU over one sequence by Ops."""

from __future__ import annotations

from typing import Any

import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import copy_stack_trace, node_rewriter
from pytensor.scan.op import Scan
from pytensor.tensor.subtensor import Subtensor

from pytensor_onnx.ops.networks import accurate_gru, accurate_lstm
from pytensor_onnx.ops.networks.accurate_lstm import LARGEST, least_steps
from pytensor_onnx.rewriting.loops.buffers import (
    allocated_length,
    first_row,
    has_length,
    is_sum,
    unwrapped,
)
from pytensor_onnx.rewriting.loops.layers import OPERATOR_DTYPE


@node_rewriter([Scan])
def recur_accurately(fgraph: FunctionGraph, node: Apply) -> dict[Variable, Variable] | None:
    """Replace the states of a float32 LSTM or GRU over one sequence.

    Examples
    --------
    >>> import pytensor
    >>> x, w, u = (pt.matrix(name, dtype="float32") for name in "xwu")
    >>> start = pt.zeros(2, dtype="float32")
    >>> def step(e, h, c, w, u):
    ...     i, f, g, o = pt.split(e @ w + h @ u, [2, 2, 2, 2], n_splits=4)
    ...     c = pt.sigmoid(f) * c + pt.sigmoid(i) * pt.tanh(g)
    ...     return pt.sigmoid(o) * pt.tanh(c), c
    >>> y, _ = pytensor.scan(step, [x], [start, start], [w, u], return_updates=False)
    >>> f = pytensor.function([x, w, u], y, mode="ONNX")
    >>> any(isinstance(node.op, accurate_lstm.AccurateLSTM) for node in f.maker.fgraph.toposort())
    True
    """
    if any(x.type.dtype != OPERATOR_DTYPE for x in node.outputs):
        return None
    if node.op.name in (accurate_gru.LOOP_NAME, accurate_lstm.LOOP_NAME):
        return None
    # Cells take as long to import as a small graph to convert, and few graphs have such a loop.
    from pytensor_onnx.rewriting.loops.cells import cell_of

    cell, n_steps = cell_of(node), unwrapped(node.inputs[0])
    if cell is None or cell.op.hidden > LARGEST:
        return None
    if not has_length(fgraph, cell.arrays[0], n_steps):
        return None
    if isinstance(n_steps, Constant) and int(n_steps.data) < least_steps(cell.op.hidden):
        return None
    buffers = node.op.outer_sitsot(node.inputs)
    starts = [first_row(buffers[k]) for k in cell.states]
    arguments = [*cell.arrays, *(start[0] for start in starts), *cell.more]
    if any(x.type.dtype != OPERATOR_DTYPE for x in arguments):
        return None
    values = cell.op(*arguments, return_list=True)
    replacements: dict[Variable, Variable] = {}
    for k, start, rows in zip(cell.states, starts, values, strict=True):
        found = _replacements(fgraph, node.outputs[k], buffers[k], n_steps, start, rows)
        if found is None:
            return None
        replacements |= found
    for old, new in replacements.items():
        copy_stack_trace(old, new)
    return replacements


def _replacements(
    fgraph: FunctionGraph, output: Variable, buffer: Variable, n_steps: Any, start: Any, rows: Any
) -> dict[Variable, Variable] | None:
    """Return the uses of the values that a loop stores, None if it stores some of the last."""
    clients = [client for client, _ in fgraph.clients[output]]
    if not clients:
        return {}
    length = allocated_length(buffer)
    if buffer.type.shape[0] == 1:
        return {output: output.type.filter_variable(rows[-1:])}
    if length is None or not is_sum(length, n_steps, 1):
        return None
    after = [client.outputs[0] for client in clients if _follows_first(client)]
    found = {x: x.type.filter_variable(rows) for x in after}
    if len(after) < len(clients):
        found[output] = output.type.filter_variable(pt.concatenate([start, rows]))
    return found


def _follows_first(node: Any) -> bool:
    """Return whether a node selects all rows but the first."""
    if not isinstance(node, Apply) or not isinstance(node.op, Subtensor):
        return False
    if node.op.idx_list != (slice(0, None, None),):
        return False
    return isinstance(node.inputs[1], Constant) and int(node.inputs[1].data) == 1
