"""Lower a GRU over one sequence to ONNX's operator and a correction, else to a loop."""

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply

from pytensor_onnx.dispatch import guessed_states as guessed
from pytensor_onnx.dispatch.basic import onnx_funcify
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.ops.networks.accurate_gru import AccurateGRU


@onnx_funcify.register(AccurateGRU)
def lower_accurate_gru(
    op: AccurateGRU, node: Apply, onnx: Builder, *inputs: ir.Value
) -> list[ir.Value]:
    """Correct the outputs of the operator."""
    onnx.equate_operands("AccurateGRU", inputs, {"hidden": op.hidden, "gates": 3})
    from_guess = _resetting_products if op.resets_product else _resetting_states
    return guessed.states_from_guess(
        op, onnx, inputs, lambda then: from_guess(then, op.hidden, inputs)
    )


def _resetting_products(onnx: Builder, hidden: int, inputs: Sequence[ir.Value]) -> list[ir.Value]:
    """Return the states, and whether they are right, where r scales the product of the state."""
    x, w, u, b, h0, of_state = inputs
    zeros = onnx.constant(np.zeros(2 * hidden, "float32"))
    guess = _operator(onnx, hidden, (w, u), (b, zeros, of_state), x, h0, linear_before_reset=1)
    before = guessed.before_steps(onnx, h0, guess)
    of_input, products = onnx.Gemm(x, w, b), onnx.MatMul(before, u)
    input_gates, input_candidate = _parted(onnx, hidden, of_input)
    state_gates, state_candidate = _parted(onnx, hidden, products)
    z, r = _gates(onnx, hidden, onnx.Add(input_gates, state_gates))
    scaled = onnx.Mul(r, onnx.Add(state_candidate, of_state))
    h = _states(onnx, z, onnx.Add(input_candidate, scaled), h0)
    excess = guessed.excess(onnx, hidden, before, guessed.before_steps(onnx, h0, h))
    return [h, onnx.LessOrEqual(guessed.changes(onnx, hidden, excess, u, of_input), 0)]


def _resetting_states(onnx: Builder, hidden: int, inputs: Sequence[ir.Value]) -> list[ir.Value]:
    """Return the states, and whether they are right, where r scales the state."""
    x, w, u, b, h0 = inputs
    zeros = onnx.constant(np.zeros(3 * hidden, "float32"))
    guess = _operator(onnx, hidden, (w, u), (b, zeros), x, h0)
    before = guessed.before_steps(onnx, h0, guess)
    input_gates, input_candidate = _parted(onnx, hidden, onnx.Gemm(x, w, b))
    u_gates, u_candidate = _parted(onnx, hidden, u)
    z, r = _gates(onnx, hidden, onnx.Gemm(before, u_gates, input_gates))
    candidate = onnx.Gemm(onnx.Mul(r, before), u_candidate, input_candidate)
    h = _states(onnx, z, candidate, h0)
    excess = guessed.excess(onnx, hidden, before, guessed.before_steps(onnx, h0, h))
    of_gates = guessed.changes(onnx, hidden, excess, u_gates, input_gates)
    scaled = onnx.Mul(r, excess)
    of_candidate = guessed.changes(onnx, hidden, scaled, u_candidate, input_candidate)
    return [h, onnx.LessOrEqual(onnx.Add(of_gates, of_candidate), 0)]


def _operator(
    onnx: Builder,
    hidden: int,
    weights: tuple[ir.Value, ir.Value],
    biases: tuple[ir.Value, ...],
    x: ir.Value,
    h0: ir.Value,
    **attributes: int,
) -> ir.Value:
    return guessed.operator(
        onnx, "GRU", weights, biases, x, (h0,), hidden_size=hidden, **attributes
    )


def _parted(onnx: Builder, hidden: int, x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Return the columns of both gates, and those of the candidate."""
    gates, candidate = onnx.Split(x, onnx.ints([2 * hidden, hidden]), axis=1, outputs=2)
    return gates, candidate


def _gates(onnx: Builder, hidden: int, arguments: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Return the gates z and r."""
    gates = guessed.sigmoids(onnx, arguments)
    z, r = onnx.Split(gates, onnx.ints([hidden] * 2), axis=1, outputs=2)
    return z, r


def _states(onnx: Builder, z: ir.Value, argument: ir.Value, h0: ir.Value) -> ir.Value:
    """Move the state of each step towards its candidate."""
    ones = onnx.number_like(z, 1)
    return guessed.accumulated(onnx, z, onnx.Mul(onnx.Sub(ones, z), onnx.Tanh(argument)), h0)
