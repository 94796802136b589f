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
    op: AccurateGRU, node: Apply, build: Builder, *inputs: ir.Value
) -> list[ir.Value]:
    """Correct the outputs of the operator."""
    build.equate_operands("AccurateGRU", inputs, {"hidden": op.hidden, "gates": 3})
    from_guess = _resetting_products if op.resets_product else _resetting_states
    return guessed.states_from_guess(
        op, build, inputs, lambda then: from_guess(then, op.hidden, inputs)
    )


def _resetting_products(build: Builder, hidden: int, inputs: Sequence[ir.Value]) -> list[ir.Value]:
    """Return the states, and whether they are right, where r scales the product of the state."""
    x, w, u, b, h0, of_state = inputs
    zeros = build.constant(np.zeros(2 * hidden, "float32"))
    guess = _operator(build, hidden, (w, u), (b, zeros, of_state), x, h0, linear_before_reset=1)
    before = guessed.before_steps(build, h0, guess)
    of_input, products = build.Gemm(x, w, b), build.MatMul(before, u)
    input_gates, input_candidate = _parted(build, hidden, of_input)
    state_gates, state_candidate = _parted(build, hidden, products)
    z, r = _gates(build, hidden, build.Add(input_gates, state_gates))
    scaled = build.Mul(r, build.Add(state_candidate, of_state))
    h = _states(build, z, build.Add(input_candidate, scaled), h0)
    excess = guessed.excess(build, hidden, before, guessed.before_steps(build, h0, h))
    return [h, build.LessOrEqual(guessed.changes(build, hidden, excess, u, of_input), 0)]


def _resetting_states(build: Builder, hidden: int, inputs: Sequence[ir.Value]) -> list[ir.Value]:
    """Return the states, and whether they are right, where r scales the state."""
    x, w, u, b, h0 = inputs
    zeros = build.constant(np.zeros(3 * hidden, "float32"))
    guess = _operator(build, hidden, (w, u), (b, zeros), x, h0)
    before = guessed.before_steps(build, h0, guess)
    input_gates, input_candidate = _parted(build, hidden, build.Gemm(x, w, b))
    u_gates, u_candidate = _parted(build, hidden, u)
    z, r = _gates(build, hidden, build.Gemm(before, u_gates, input_gates))
    candidate = build.Gemm(build.Mul(r, before), u_candidate, input_candidate)
    h = _states(build, z, candidate, h0)
    excess = guessed.excess(build, hidden, before, guessed.before_steps(build, h0, h))
    of_gates = guessed.changes(build, hidden, excess, u_gates, input_gates)
    scaled = build.Mul(r, excess)
    of_candidate = guessed.changes(build, hidden, scaled, u_candidate, input_candidate)
    return [h, build.LessOrEqual(build.Add(of_gates, of_candidate), 0)]


def _operator(
    build: Builder,
    hidden: int,
    weights: tuple[ir.Value, ir.Value],
    biases: tuple[ir.Value, ...],
    x: ir.Value,
    h0: ir.Value,
    **attributes: int,
) -> ir.Value:
    return guessed.operator(
        build, "GRU", weights, biases, x, (h0,), hidden_size=hidden, **attributes
    )


def _parted(build: Builder, hidden: int, x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Return the columns of both gates, and those of the candidate."""
    gates, candidate = build.Split(x, build.ints([2 * hidden, hidden]), axis=1, outputs=2)
    return gates, candidate


def _gates(build: Builder, hidden: int, arguments: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Return the gates z and r."""
    gates = guessed.sigmoids(build, arguments)
    z, r = build.Split(gates, build.ints([hidden] * 2), axis=1, outputs=2)
    return z, r


def _states(build: Builder, z: ir.Value, argument: ir.Value, h0: ir.Value) -> ir.Value:
    """Move the state of each step towards its candidate."""
    ones = build.number_like(z, 1)
    return guessed.accumulated(build, z, build.Mul(build.Sub(ones, z), build.Tanh(argument)), h0)
