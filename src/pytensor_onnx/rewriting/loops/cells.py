"""Recognise cells of recurrent networks in the steps of loops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.scalar.basic import Add, Mul, Sub, Tanh
from pytensor.scalar.math import Sigmoid

from pytensor_onnx.ops.networks.accurate_gru import AccurateGRU
from pytensor_onnx.ops.networks.accurate_lstm import AccurateLSTM
from pytensor_onnx.rewriting.loops.gate_arguments import (
    Around,
    Part,
    Terms,
    argument_of,
    arrays_of,
    common_size,
    joint_bias,
    operands_of,
    terms_in,
    terms_of,
    vectors_beside,
)


@dataclass(frozen=True)
class Cell:
    """Cell that a loop computes for one sequence.

    Attributes
    ----------
    op
        Op of the cell.
    arrays
        Sequence, weights and biases that the Op takes, variables around the loop.
    more
        Arrays that it takes after the initial states.
    states
        Positions of its results among the states of the loop.
    """

    op: AccurateLSTM | AccurateGRU
    arrays: Sequence[Any]
    more: Sequence[Any]
    states: Sequence[int]


def cell_of(node: Apply) -> Cell | None:
    """Return the cell that a loop computes for one sequence, None for other loops."""
    info, op = node.op.info, node.op
    if info.as_while or len(node.outputs) != info.n_sit_sot or info.n_sit_sot not in (1, 2):
        return None
    inner = op.fgraph.unfreeze()
    states, updates = op.inner_sitsot(inner.inputs), op.inner_sitsot_outs(inner.outputs)
    if any(state.type.ndim != 1 for state in states):
        return None
    around = Around(node, inner.inputs)
    for x, xs in zip(op.inner_seqs(inner.inputs), op.outer_seqs(node.inputs), strict=True):
        if info.n_sit_sot == 1:
            found = _gru(x, states[0], updates[0], around)
        else:
            found = next(filter(None, (_lstm(x, states, updates, k, around) for k in (0, 1))), None)
        if found is not None:
            return replace(found, arrays=[_rows(xs), *found.arrays])
    return None


def _lstm(
    x: Variable,
    states: Sequence[Variable],
    updates: Sequence[Variable],
    output: int,
    around: Around,
) -> Cell | None:
    """Return the LSTM whose output is a given one of two states."""
    memory = 1 - output
    gates = _lstm_gates(updates[output], updates[memory], states[memory])
    found = [terms_of(terms_in(Part(z)), (x, states[output]), around) for z in gates]
    arguments = [terms for terms in found if terms is not None]
    hidden = common_size(arguments)
    if not gates or len(arguments) < len(gates) or hidden is None:
        return None
    w, u, b = arrays_of(arguments, hidden)
    return Cell(AccurateLSTM(hidden=hidden), [w, u, b], [], [output, memory])


def _lstm_gates(h: Variable, c: Variable, before: Variable) -> list[Variable]:
    """Return the arguments of the gates i, o, f and g of a step, none for other steps."""
    for output, squashed in _pairs(operands_of(h, Mul)):
        if argument_of(squashed, Tanh) is not c:
            continue
        for kept, added in _pairs(operands_of(c, Add)):
            for f, memory in _pairs(operands_of(kept, Mul)):
                for i, g in _pairs(operands_of(added, Mul)):
                    sigmoids = [argument_of(gate, Sigmoid) for gate in (i, output, f)]
                    arguments = [*sigmoids, argument_of(g, Tanh)]
                    gates = [x for x in arguments if x is not None]
                    if memory is before and len(gates) == len(arguments):
                        return gates
    return []


def _gru(x: Variable, h: Variable, update: Variable, around: Around) -> Cell | None:
    """Return the GRU of a state."""
    for z, n, is_negated in _mixtures(h, update):
        candidate = _candidate(list(terms_in(Part(n))), x, h, around)
        if candidate is None:
            continue
        r, of_candidate, biases = candidate
        found = [terms_of(terms_in(Part(gate)), (x, h), around) for gate in (z, r)]
        arguments = [terms for terms in (*found, of_candidate) if terms is not None]
        hidden = common_size(arguments)
        if len(arguments) < 3 or hidden is None:
            continue
        if is_negated:
            arguments[0] = [
                [Part(-part.selected(hidden)) for part in parts] for parts in arguments[0]
            ]
        op = AccurateGRU(hidden=hidden, resets_product=biases is not None)
        more = [] if biases is None else [joint_bias(biases, hidden).selected(hidden)]
        return Cell(op, arrays_of(arguments, hidden), more, [0])
    return None


def _mixtures(h: Variable, update: Variable) -> Iterator[tuple[Variable, Variable, bool]]:
    """Yield the arguments of gate and candidate of a mean, and whether the gate opens for h."""
    for kept, added in _pairs(operands_of(update, Add)):
        for keep, before in _pairs(operands_of(kept, Mul)):
            for enter, new in _pairs(operands_of(added, Mul)):
                n = argument_of(new, Tanh)
                if before is not h or n is None:
                    continue
                for gate, other, is_negated in ((keep, enter, False), (enter, keep, True)):
                    z = argument_of(gate, Sigmoid)
                    if z is not None and _complement(other) is gate:
                        yield z, n, is_negated


def _complement(x: Variable) -> Variable | None:
    """Return the variable x of a difference ``1 - x``, None for other variables."""
    operands = operands_of(x, Sub)
    if len(operands) == 2 and isinstance(operands[0], Constant) and np.all(operands[0].data == 1):
        return operands[1]
    return None


def _candidate(
    terms: Sequence[Part], x: Variable, h: Variable, around: Around
) -> tuple[Variable, Terms | None, Sequence[Part] | None] | None:
    """Return the argument of the reset gate, and the terms of a candidate.

    The last value has the biases that the reset gate scales with the product of the state, None
    if it scales the state itself.
    """
    for position, term in enumerate(terms):
        others = [*terms[:position], *terms[position + 1 :]]
        for gate, product in _pairs(operands_of(term.whole, Mul)):
            r = argument_of(gate, Sigmoid)
            of_state = None if r is None else terms_of(terms_in(Part(product)), (h,), around)
            of_input = terms_of(others, (x,), around)
            if r is not None and of_state is not None and of_input is not None:
                return r, [of_input[0], of_state[0], of_input[1]], of_state[1]
        for scaled in vectors_beside(term.whole):
            for gate, state in _pairs(operands_of(scaled, Mul)):
                r = argument_of(gate, Sigmoid)
                if r is not None and state is h:
                    return r, terms_of(terms, (x, scaled), around), None
    return None


def _pairs(operands: Sequence[Variable]) -> list[tuple[Variable, Variable]]:
    """Return both orders of two operands, none for other numbers of operands."""
    if len(operands) != 2:
        return []
    first, second = operands
    return [(first, second), (second, first)]


def _rows(sequence: Any) -> Any:
    """Return a sequence of vectors, whose elements may have an axis of size one."""
    if sequence.type.ndim == 2:
        return sequence
    return sequence.squeeze(axis=1 + sequence.type.broadcastable[1:].index(True))
