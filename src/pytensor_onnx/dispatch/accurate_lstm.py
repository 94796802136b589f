"""Lower an LSTM over one sequence to ONNX's operator and a correction, else to a loop."""

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply

from pytensor_onnx.dispatch import guessed_states as guessed
from pytensor_onnx.dispatch.basic import onnx_funcify
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.ops.networks.accurate_lstm import AccurateLSTM


@onnx_funcify.register(AccurateLSTM)
def lower_accurate_lstm(
    op: AccurateLSTM, node: Apply, build: Builder, *inputs: ir.Value
) -> list[ir.Value]:
    """Correct the outputs of the operator."""
    hidden = op.hidden
    x, w, u, b, h0, c0 = inputs
    build.equate_operands("AccurateLSTM", inputs, {"hidden": hidden, "gates": 4})

    def from_guess(then: Builder) -> list[ir.Value]:
        zeros = then.constant(np.zeros(4 * hidden, "float32"))
        guess = guessed.operator(then, "LSTM", (w, u), (b, zeros), x, (h0, c0), hidden_size=hidden)
        before = guessed.before_steps(then, h0, guess)
        of_input = then.Gemm(x, w, b)
        arguments = then.Gemm(before, u, of_input)
        sizes = then.ints([3 * hidden, hidden])
        gates, candidate = then.Split(arguments, sizes, axis=1, outputs=2)
        i, o, f = then.Split(
            guessed.sigmoids(then, gates), then.ints([hidden] * 3), axis=1, outputs=3
        )
        c = guessed.accumulated(then, f, then.Mul(i, then.Tanh(candidate)), c0)
        h = then.Mul(o, then.Tanh(c))
        excess = guessed.excess(then, hidden, before, guessed.before_steps(then, h0, h))
        changes = guessed.changes(then, hidden, excess, u, of_input)
        return [h, c, then.LessOrEqual(changes, 0)]

    return guessed.states_from_guess(op, build, inputs, from_guess)
