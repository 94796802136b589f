"""Check nested loops before operations move out of them."""

from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import in2out
from pytensor.scan.op import Scan

from pytensor_onnx.rewriting.loops.changed_scan import loop_like
from pytensor_onnx.rewriting.loops.length_checks import check_lengths
from pytensor_onnx.rewriting.loops.step_lookup_checks import check_read_step
from pytensor_onnx.rules import part_of


@part_of(check_lengths.rule, [Scan])
def check_inner_loops(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Check the sequence lengths and step indices of the loops within a loop.

    Examples
    --------
    >>> import pytensor, pytensor.tensor as pt
    >>> x, n = pt.matrix("x"), pt.iscalar("n")
    >>> def total(row, n):
    ...     steps = pytensor.scan(
    ...         lambda e: e * 2, [row], n_steps=n, name="doubled", return_updates=False
    ...     )
    ...     return steps.sum()
    >>> totals = pytensor.scan(total, [x], None, [n], return_updates=False)
    >>> pytensor.function([x, n], totals, mode="ONNX")([[1.0, 2.0]], 3)
    Traceback (most recent call last):
    ValueError: sequence 0 of doubled ends before its steps do
    """
    op = node.op
    if not any(isinstance(inner.op, Scan) for inner in op.fgraph.apply_nodes):
        return None
    inner = op.fgraph.unfreeze()
    for check in (check_inner_loops, check_read_step, check_lengths):
        in2out(check, ignore_newtrees=True).rewrite(inner)
    loop = loop_like(op, inner.inputs, inner.outputs)
    return loop(*node.inputs, return_list=True)
