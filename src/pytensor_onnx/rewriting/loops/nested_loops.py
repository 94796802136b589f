"""Run the inner loops of a loop as one loop, whose steps compute all rows.

A function of rows that holds a recurrence is a Scan in a Scan: as many steps as the array has
elements. The steps of different rows are independent, and are computed together.
"""

import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import copy_stack_trace
from pytensor.scan.op import Scan
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.rewriting.engine.predicates import made_by
from pytensor_onnx.rewriting.loops.early_products import with_sequences
from pytensor_onnx.rewriting.loops.vectorised_step import Rows
from pytensor_onnx.rules import rewrites_nodes


@rewrites_nodes(
    [Scan],
    family="loops",
    purpose="speed",
    identity="scan(row ↦ scan(step)) = scan(steps of all rows)",
    requires="the inner loop depends on no state of the outer",
    measured="benchmarks/NOTES.md, Loops: Batches",
)
def batch_inner_loops(fgraph: FunctionGraph, node: Apply) -> dict[Variable, Variable] | None:
    """Move inner loops that depend on no state out of a loop, for all of its steps at once.

    Examples
    --------
    >>> import pytensor, pytensor.tensor as pt
    >>> def last(row):
    ...     steps = pytensor.scan(
    ...         lambda e, y: pt.tanh(e + y), [row], [pt.zeros(())], return_updates=False
    ...     )
    ...     return steps[-1]
    >>> x = pt.matrix("x")
    >>> f = pytensor.function([x], pytensor.scan(last, [x], return_updates=False), mode="ONNX")
    >>> (scan,) = (node.op for node in f.maker.fgraph.toposort() if isinstance(node.op, Scan))
    >>> any(isinstance(node.op, Scan) for node in scan.fgraph.toposort())
    False
    """
    op = node.op
    if op.info.as_while or not any(isinstance(x.op, Scan) for x in op.fgraph.apply_nodes):
        return None
    if any(x.type.shape[0] == 1 for x in op.outer_seqs(node.inputs)):
        # One row at most.
        return None
    inner = op.fgraph.unfreeze()
    n_steps = node.inputs[0]
    rows = Rows(n_steps, op.name or "scan")
    for x, sequence in zip(op.inner_seqs(inner.inputs), op.outer_seqs(node.inputs), strict=True):
        rows.add(x, sequence[:n_steps], is_row=True)
    for x, constant in zip(
        op.inner_non_seqs(inner.inputs), op.outer_non_seqs(node.inputs), strict=True
    ):
        rows.add(x, constant, is_row=False)
    for inner_node in inner.toposort():
        rows.add_node(inner_node)
    if not any(made_by(x, Scan) for x in rows.batched):
        return None
    return _replaced(node, inner, rows)


def _replaced(node: Apply, inner: FunctionGraph, rows: Rows) -> dict[Variable, Variable]:
    """Return the outputs of a loop, with the values that are computed for all steps at once."""
    op = node.op
    finished = {
        old: rows.known[x]
        for old, x, size in zip(
            op.outer_nitsot_outs(node.outputs),
            op.inner_nitsot_outs(inner.outputs),
            op.outer_nitsot(node.inputs),
            strict=True,
        )
        if x in rows.batched and size is node.inputs[0]
    }
    if len(finished) == len(node.outputs):
        results = finished
    else:
        outputs = set(inner.outputs)
        used = {
            x: rows.known[x]
            for x in rows.batched.difference(op.inner_seqs(inner.inputs))
            if x in outputs
            or any(y not in rows.known for c, _ in inner.clients[x] for y in c.outputs)
        }
        results = {**with_sequences(node, inner, used), **finished}
    for old, new in results.items():
        copy_stack_trace(old, new)
    return {old: _with_shape_of(old, x) for old, x in results.items()}


def _with_shape_of(old: Variable, new: TensorVariable) -> Variable:
    """Return a variable with all static sizes of another.

    Sizes that are not known are given too: PyTensor cannot index a shape without some.
    """
    if old.type.is_super(new.type):
        return new
    sizes = [new.shape[k] if n is None else n for k, n in enumerate(old.type.shape)]
    return pt.specify_shape(new, sizes)
