"""Replace recurrent layers of pytensor-ml by the operations of `nn`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable, equal_computations
from pytensor.graph.fg import FunctionGraph
from pytensor.scan.op import Scan
from pytensor.tensor.basic import Alloc
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.subtensor import IncSubtensor, Subtensor

from pytensor_onnx.rewriting.engine.predicates import filling_of, integer_of, made_by, reversed_by
from pytensor_onnx.rules import rewrites_graphs

LOOP_SUFFIX = "_recurrence"
"""End of the names that pytensor-ml gives the loops of its layers."""


@rewrites_graphs(
    family="networks",
    purpose="speed",
    identity="scan(step of pytensor-ml's cell) = LSTM, GRU or RNN",
    requires="float32, and only outputs of the layer used",
    measured="benchmarks/NOTES.md, Recurrent layers",
    begins_at=("Scan",),
)
def recur_as_one(fgraph: FunctionGraph) -> None:
    """Replace the loops of float32 layers whose outputs alone are used.

    A gradient uses other results of the loop, which then stays.
    """
    for node in fgraph.toposort():
        if not isinstance(node.op, Scan) or not (node.op.name or "").endswith(LOOP_SUFFIX):
            continue
        outputs, layer = _outputs(fgraph, node), _layer(node)
        if outputs and layer is not None:
            replacements = layer.replacements(fgraph, outputs)
            fgraph.replace_all(replacements, reason="recur_as_one", import_missing=True)


@dataclass
class _Layer:
    """Layer that a loop computes.

    Attributes
    ----------
    cell
        Name of the Op.
    hidden
        Number of hidden units.
    x
        Sequences (time, batch, inputs).
    weights, biases
        Those of the inputs and of the state; None for biases of zero.
    states
        Initial states (batch, hidden), none for zeros.
    """

    cell: str
    hidden: int
    x: Variable
    weights: Sequence[Variable]
    biases: Sequence[Variable | None]
    states: Sequence[Variable]

    def replacements(
        self, fgraph: FunctionGraph, outputs: Sequence[Variable]
    ) -> list[tuple[Variable, Variable]]:
        """Return the results of the operation in place of the outputs of all steps."""
        forward = _reversed(self.x)
        clients = [client for y in outputs for client, _ in fgraph.clients[y]]
        if forward is None or None in map(reversed_by, clients):
            y = self._recur(self.x, reverse=False)
            return [(old, y) for old in outputs]
        y = self._recur(forward, reverse=True)
        return [(client.outputs[0], y) for client in clients]

    def _recur(self, x: Variable, *, reverse: bool) -> Variable:
        from pytensor_onnx.ops.networks import recurrent_ops

        op = getattr(recurrent_ops, self.cell)
        arrays: Any = (x, self.weights, self.biases, self.states)
        return recurrent_ops.recur(op, *arrays, hidden=self.hidden, reverse=reverse)[0]


def _layer(node: Apply) -> _Layer | None:
    """Return the layer of a loop that has one sequence and the step of a known cell."""
    op = node.op
    inner = op.fgraph.unfreeze()
    sequences, states = op.inner_seqs(inner.inputs), op.inner_sitsot(inner.inputs)
    parameters = op.inner_non_seqs(inner.inputs)
    is_plain = len(inner.inputs) == len(sequences) + len(states) + len(parameters)
    if op.info.as_while or not is_plain or len(sequences) != 1 or not states:
        return None
    if {v.type.dtype for v in (*inner.inputs, *inner.outputs)} != {"float32"}:
        return None
    if any(v.type.ndim != 2 for v in (*sequences, *states)):
        return None
    initial = [_initial_state(buffer) for buffer in op.outer_sitsot(node.inputs)]
    outer = dict(zip(parameters, op.outer_non_seqs(node.inputs), strict=True))
    for name, cell in _CELLS.items():
        if len(states) != cell.n_states or None in initial:
            continue
        for matrices, vectors in _assignments(parameters, cell, sequences[0]):
            outputs = cell.step(sequences[0], states, matrices, vectors)
            if equal_computations(inner.outputs, outputs):
                return _Layer(
                    name,
                    matrices[1].type.shape[0],
                    op.outer_seqs(node.inputs)[0],
                    [outer[w] for w in matrices],
                    cell.biases([outer[b] for b in vectors]),
                    [] if all(map(_is_zero, initial)) else initial,
                )
    return None


@dataclass
class _Cell:
    """Cell of pytensor-ml.

    Attributes
    ----------
    n_states
        Number of its states.
    gates
        Number of its gates.
    biases_in_gates
        The sizes of its biases, in numbers of hidden units.
    step
        Its step, from the input, the states, the matrices and the biases.
    """

    n_states: int
    gates: int
    biases_in_gates: tuple[int, ...]
    step: Callable[[Any, Any, Any, Any], list[Variable]]

    def biases(self, vectors: Sequence[Any]) -> list[Variable | None]:
        """Return the bias of the products with inputs, and the bias of the products with states."""
        if len(vectors) < 2:
            return [*vectors, None, None][:2]
        own, of_candidate = vectors
        zeros = np.zeros((self.gates - 1) * of_candidate.type.shape[0], "float32")
        return [own, pt.concatenate([pt.constant(zeros), of_candidate])]


def _assignments(
    parameters: Sequence[Variable], cell: _Cell, x: Variable
) -> Iterator[tuple[Sequence[Variable], Sequence[Variable]]]:
    """Yield the orders of the matrices and of the biases of a cell in which their sizes fit."""
    matrices = [p for p in parameters if p.type.ndim == 2]
    vectors = [p for p in parameters if p.type.ndim == 1]
    if len(matrices) != 2 or len(vectors) not in (0, len(cell.biases_in_gates)):
        return
    if len(parameters) != len(matrices) + len(vectors):
        return
    for pair, others in product(permutations(matrices), permutations(vectors)):
        hidden, width = pair[1].type.shape
        if hidden is None or width != cell.gates * hidden:
            continue
        shapes = [(width,), *((size * hidden,) for size in cell.biases_in_gates)]
        found = [pair[0].type.shape[1:], *(v.type.shape for v in others)]
        if found == shapes[: len(found)] and pair[0].type.shape[0] in (None, x.type.shape[1]):
            yield pair, others


def _elman(x: Any, states: Any, matrices: Any, vectors: Any) -> list[Variable]:
    """Return the new state of `ElmanCell`."""
    total = x @ matrices[0] + states[0] @ matrices[1]
    return [pt.tanh(total + vectors[0] if vectors else total)]


def _lstm(x: Any, states: Any, matrices: Any, vectors: Any) -> list[Variable]:
    """Return the new states of `LSTMCell`."""
    total = x @ matrices[0] + states[0] @ matrices[1]
    i, f, g, o = _split(total + vectors[0] if vectors else total, matrices, 4)
    memory = pt.sigmoid(f) * states[1] + pt.sigmoid(i) * pt.tanh(g)
    return [pt.sigmoid(o) * pt.tanh(memory), memory]


def _gru(x: Any, states: Any, matrices: Any, vectors: Any) -> list[Variable]:
    """Return the new state of `GRUCell`."""
    of_input, (state,) = x @ matrices[0], states
    of_input = of_input + vectors[0] if vectors else of_input
    input_r, input_z, input_n = _split(of_input, matrices, 3)
    state_r, state_z, state_n = _split(state @ matrices[1], matrices, 3)
    state_n = state_n + vectors[1] if vectors else state_n
    r, z = pt.sigmoid(input_r + state_r), pt.sigmoid(input_z + state_z)
    return [(1 - z) * pt.tanh(input_n + r * state_n) + z * state]


def _split(x: Any, matrices: Any, count: int) -> list[Any]:
    return pt.split(x, [matrices[1].type.shape[0]] * count, n_splits=count, axis=-1)


def _outputs(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Return the outputs of all steps, or None if the graph uses other results of the loop."""
    states, *others = node.outputs
    if any(fgraph.clients[other] for other in others):
        return None
    clients = [client for client, _ in fgraph.clients[states]]
    follow_first = [isinstance(c, Apply) and _slice(c, slice(0, None, None)) == 1 for c in clients]
    return [client.outputs[0] for client in clients] if all(follow_first) else None


def _slice(node: Apply, form: slice) -> int | None:
    """Return the constant in a slice of the first axis, or None if the node is no such slice."""
    if not isinstance(node.op, Subtensor) or node.op.idx_list != (form,):
        return None
    return integer_of(node.inputs[1])


def _reversed(x: Variable) -> Variable | None:
    """Return the sequence s if x is ``s[::-1]`` or the first rows of it, otherwise None."""
    read = made_by(x, Subtensor)
    if read is not None and read.op.idx_list == (slice(None, 0, None),):
        x = read.inputs[0]
    return reversed_by(x.owner)


def _initial_state(buffer: Variable) -> Variable | None:
    """Return the state (batch, hidden) that a loop starts from, None if it is not found."""
    write = made_by(buffer, IncSubtensor)
    if write is None or not write.op.set_instead_of_inc:
        return None
    row = made_by(write.inputs[1], DimShuffle)
    return row.inputs[0] if row is not None and row.op.new_order == ("x", 0, 1) else None


def _is_zero(state: Variable) -> bool:
    return made_by(state, Alloc) is not None and filling_of(state) == 0


_CELLS = {
    "RNN": _Cell(1, 1, (1,), _elman),
    "GRU": _Cell(1, 3, (3, 1), _gru),
    "LSTM": _Cell(2, 4, (4,), _lstm),
}
"""Cells by the name of the Op."""
