"""Add up inputs and biases of all steps before a loop."""

from collections.abc import Mapping, Sequence

import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import copy_stack_trace, node_rewriter
from pytensor.graph.traversal import ancestors
from pytensor.scalar.basic import Add
from pytensor.scan.op import Scan
from pytensor.tensor.elemwise import Elemwise

from pytensor_onnx.rewriting.loops.buffers import has_length, unwrapped
from pytensor_onnx.rewriting.loops.products import in_all_steps, with_sequences


@node_rewriter([Scan])
def add_before_loop(fgraph: FunctionGraph, node: Apply) -> dict[Variable, Variable] | None:
    """Add up the operands of sums that no state changes before the loop: inputs and biases.

    Examples
    --------
    >>> import pytensor
    >>> x, b = pt.matrix("x"), pt.vector("b")
    >>> h = pytensor.scan(
    ...     lambda e, h, b: pt.exp(e + 2 * h + b), [x], [b], [b], return_updates=False
    ... )
    >>> f = pytensor.function([x, b], h, mode="ONNX")
    >>> (scan,) = (node.op for node in f.maker.fgraph.toposort() if isinstance(node.op, Scan))
    >>> scan.info.n_seqs, scan.info.n_non_seqs
    (1, 0)
    """
    op = node.op
    outer = op.outer_seqs(node.inputs)
    n_steps = unwrapped(node.inputs[0])
    if op.info.as_while or not outer or not all(has_length(fgraph, x, n_steps) for x in outer):
        return None
    inner = op.fgraph.unfreeze()
    elements = dict(zip(op.inner_seqs(inner.inputs), outer, strict=True))
    constants = dict(
        zip(op.inner_non_seqs(inner.inputs), op.outer_non_seqs(node.inputs), strict=True)
    )
    sums: dict[Variable, Variable] = {}
    for add in inner.toposort():
        total = add.outputs[0]
        if not _is_sum(total) or any(
            _is_sum(c.outputs[0]) for c, _ in inner.clients[total] if c.outputs
        ):
            continue
        terms = _terms(total, inner)
        fixed = _fixed(terms, inner, elements, constants)
        if not 1 < len(fixed) < len(terms):
            continue
        partial = pt.add(*fixed)
        new = pt.add(*(x for x in terms if x not in fixed), partial)
        rows = in_all_steps([partial], elements, constants)
        if rows is None or not total.type.is_super(new.type):
            continue
        copy_stack_trace(total, rows)
        inner.replace(total, new, import_missing=True)
        (sums[partial],) = rows
    return with_sequences(node, inner, sums) if sums else None


def _is_sum(x: Variable) -> bool:
    """Return whether a variable is a sum of floats."""
    op = x.owner.op if x.owner is not None else None
    is_added = isinstance(op, Elemwise) and isinstance(op.scalar_op, Add)
    return is_added and x.type.dtype.startswith("float")


def _terms(total: Variable, inner: FunctionGraph) -> list[Variable]:
    """Return the operands of a sum, and those of operands that are sums without another use."""
    terms = []
    for x in total.owner.inputs:
        is_part = _is_sum(x) and len(inner.clients[x]) == 1
        terms += _terms(x, inner) if is_part else [x]
    return terms


def _fixed(
    terms: Sequence[Variable],
    inner: FunctionGraph,
    elements: Mapping[Variable, Variable],
    constants: Mapping[Variable, Variable],
) -> list[Variable]:
    """Return the terms that depend on sequences and constants only; none without a sequence."""
    changing = set(inner.inputs) - set(elements) - set(constants)
    sources = {x: set(ancestors([x])) for x in terms}
    fixed = [x for x in terms if sources[x].isdisjoint(changing)]
    read = set().union(*(sources[x] for x in fixed))
    return [] if read.isdisjoint(elements) else fixed
