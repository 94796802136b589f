"""Loops within loops, and loops over encoded values.

A function of rows that holds a recurrence is a Scan in a Scan: as many steps as the array has
elements. The steps of different rows are independent, and are computed together.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain

import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import copy_stack_trace
from pytensor.scan.op import Scan, ScanInfo
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.encodings import Boundary
from pytensor_onnx.rewriting.engine.predicates import made_by
from pytensor_onnx.rewriting.loops.early_parts import with_sequences
from pytensor_onnx.rewriting.loops.inner_loops import loop_like
from pytensor_onnx.rewriting.loops.scan_to_map import Rows
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


Tensors = Sequence[Variable]


class EncodedLoop:
    """Loop whose inner graph computes with tensors in place of encoded values.

    Every sequence, state and parameter becomes one for each tensor of its value.

    Parameters
    ----------
    op
        The loop.
    graph_of_tensors
        Returns the inner graph of tensors.
    """

    def __init__(self, op: Scan, graph_of_tensors: Callable[[Scan], FunctionGraph]) -> None:
        self.op = op
        inner = graph_of_tensors(op)
        self.inputs = Boundary.of(op.fgraph.inputs).grouped(inner.inputs)
        self.outputs = Boundary.of(op.fgraph.outputs).grouped(inner.outputs)

    def rebuilt(self, node: Apply, outer: Sequence[Tensors]) -> list[Tensors]:
        """Return the tensors of each output.

        Parameters
        ----------
        node
            Node of the loop.
        outer
            The tensors of each input.
        """
        loop = loop_like(self.op, self._inner_inputs(), self._inner_outputs(), self._info())
        results = loop.make_node(*self._outer_inputs(outer)).outputs
        return Boundary.of(node.outputs).grouped(results)

    def _inner_inputs(self) -> list[Variable]:
        op, inputs = self.op, self.inputs
        return [
            *_flat(op.inner_seqs(inputs)),
            *_flat(map(_by_part, op.inner_mitmot_grouped(inputs))),
            *_flat(map(_by_part, op.inner_mitsot_grouped(inputs))),
            *_flat(op.inner_sitsot(inputs)),
            *_flat(op.inner_untraced_sit_sot(inputs)),
            *_flat(op.inner_non_seqs(inputs)),
        ]

    def _inner_outputs(self) -> list[Variable]:
        op, outputs = self.op, self.outputs
        return [
            *_flat(map(_by_part, op.inner_mitmot_outs_grouped(outputs))),
            *_flat(op.inner_mitsot_outs(outputs)),
            *_flat(op.inner_sitsot_outs(outputs)),
            *_flat(op.inner_nitsot_outs(outputs)),
            *_flat(op.inner_untraced_sit_sot_outs(outputs)),
            *(outputs[-1] if op.info.as_while else ()),
        ]

    def _outer_inputs(self, outer: Sequence[Tensors]) -> list[Variable]:
        op = self.op
        lengths = zip(op.outer_nitsot(outer), op.inner_nitsot_outs(self.outputs), strict=True)
        return [
            *outer[0],
            *_flat(op.outer_seqs(outer)),
            *_flat(op.outer_mitmot(outer)),
            *_flat(op.outer_mitsot(outer)),
            *_flat(op.outer_sitsot(outer)),
            *_flat(op.outer_untraced_sit_sot(outer)),
            *(length[0] for length, tensors in lengths for _ in tensors),
            *_flat(op.outer_non_seqs(outer)),
        ]

    def _info(self) -> ScanInfo:
        op, info = self.op, self.op.info
        mit_mot = [_width(taps) for taps in op.inner_mitmot_grouped(self.inputs)]
        mit_sot = [_width(taps) for taps in op.inner_mitsot_grouped(self.inputs)]
        sit_sot = [len(tensors) for tensors in op.inner_sitsot(self.inputs)]
        return ScanInfo(
            n_seqs=_count(op.inner_seqs(self.inputs)),
            mit_mot_in_slices=_repeated(info.mit_mot_in_slices, mit_mot),
            mit_mot_out_slices=_repeated(info.mit_mot_out_slices, mit_mot),
            mit_sot_in_slices=_repeated(info.mit_sot_in_slices, mit_sot),
            sit_sot_in_slices=_repeated(info.sit_sot_in_slices, sit_sot),
            n_nit_sot=_count(op.inner_nitsot_outs(self.outputs)),
            n_untraced_sit_sot=_count(op.inner_untraced_sit_sot(self.inputs)),
            n_non_seqs=_count(op.inner_non_seqs(self.inputs)),
            as_while=info.as_while,
        )


def _by_part(taps: Sequence[Tensors]) -> list[Variable]:
    """Return the tensors of all taps of a state, grouped by part."""
    return _flat(zip(*taps, strict=True))


def _width(taps: Sequence[Tensors]) -> int:
    return len(taps[0])


def _count(values: Iterable[Tensors]) -> int:
    return sum(map(len, values))


def _repeated[T](slices: Iterable[T], widths: Iterable[int]) -> tuple[T, ...]:
    return tuple(taps for taps, n in zip(slices, widths, strict=True) for _ in range(n))


def _flat(groups: Iterable[Iterable[Variable]]) -> list[Variable]:
    return list(chain.from_iterable(groups))
