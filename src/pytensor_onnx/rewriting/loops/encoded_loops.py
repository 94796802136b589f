"""Replace the encoded values of loops by their tensors."""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain

from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.scan.op import Scan, ScanInfo

from pytensor_onnx.encodings import Boundary
from pytensor_onnx.rewriting.loops.changed_scan import loop_like

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
