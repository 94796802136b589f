"""Lower an LSTM over one sequence to ONNX's operator and its correction, else to a loop.

The operator takes a quarter of the time of the loop, but small sigmoids lose their digits. So its
outputs are a guess, from which one product gives the arguments of the gates of all steps. Gates,
memories and outputs follow from these as in the loop, with a quotient and a sum in each step. They
differ from those of the loop by rounding if the guess is so near to them that no argument changes
by more than the product with the state may be rounded. Where this does not hold, as for NaN, the
loop runs.
"""

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply

from pytensor_onnx.dispatch.basic import onnx_funcify
from pytensor_onnx.dispatch.graphs import convert_inner
from pytensor_onnx.dispatch.networks import rewritten_inner_graph
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.marks import mark_guarded, mark_rare
from pytensor_onnx.ops.networks.accurate_lstm import AccurateLSTM, least_steps


@onnx_funcify.register(AccurateLSTM)
def lower_accurate_lstm(
    op: AccurateLSTM, node: Apply, onnx: Builder, *inputs: ir.Value
) -> list[ir.Value]:
    """Emit the operator and its correction for many steps, and the loop where they fail."""
    steps, least = onnx.dims(inputs[0])[0], least_steps(op.hidden)
    _equate_sizes(onnx, op.hidden, *inputs)

    def corrected(then: Builder) -> list[ir.Value]:
        return _corrected(then, op.hidden, *inputs)

    def nothing(other: Builder) -> list[ir.Value]:
        none = other.constant(np.zeros((0, op.hidden), "float32"))
        return [none, none, other.constant(np.array(False))]

    def loop(other: Builder) -> list[ir.Value]:
        return list(convert_inner(rewritten_inner_graph(op), other, inputs))

    if isinstance(steps, int) and steps < least:
        return loop(onnx)
    if isinstance(steps, int):
        *states, is_right = corrected(onnx)
    else:
        is_long = onnx.GreaterOrEqual(onnx.size(inputs[0], 0), least)
        *states, is_right = onnx.cond(is_long, corrected, nothing)
    results = onnx.cond(is_right, lambda then: states, loop)
    for result in results:
        result.shape = ir.Shape([steps, op.hidden])
    mark_rare(results[0])
    return results


def _equate_sizes(onnx: Builder, hidden: int, *inputs: ir.Value) -> None:
    """Record that the arrays have the sizes of each other."""
    if onnx.in_branch or onnx.in_function:
        return
    x, w, u, b, h0, c0 = map(onnx.dims, inputs)
    pairs = (x[1], w[0]), (w[1], 4 * hidden), (u[0], hidden), (u[1], 4 * hidden)
    for size, other in (*pairs, (b[0], 4 * hidden), (h0[0], hidden), (c0[0], hidden)):
        onnx.scope.equate_dims(size, other)


def _corrected(
    onnx: Builder,
    hidden: int,
    x: ir.Value,
    w: ir.Value,
    u: ir.Value,
    b: ir.Value,
    h0: ir.Value,
    c0: ir.Value,
) -> list[ir.Value]:
    """Return outputs and memories of all steps, and whether they are right."""
    first, last = onnx.ints([0]), onnx.ints([-1])
    axis = onnx.ints([0])
    start = onnx.Unsqueeze(h0, axis)
    guess = _operator(onnx, hidden, x, w, u, b, start, onnx.Unsqueeze(c0, axis))
    before = onnx.Concat(start, onnx.Slice(guess, first, last, axis), axis=0)
    of_input = onnx.Gemm(x, w, b)
    arguments = onnx.Gemm(before, u, of_input)
    of_gates, of_candidate = onnx.Split(
        arguments, onnx.ints([3 * hidden, hidden]), axis=1, outputs=2
    )
    # A sigmoid is the reciprocal of a divisor, which overflows where the sigmoid is zero.
    divisors = onnx.Add(onnx.Exp(onnx.Neg(of_gates)), 1)
    i, o, f = onnx.Split(divisors, onnx.ints([hidden] * 3), axis=1, outputs=3)
    c = _memories(onnx, f, onnx.Div(onnx.Tanh(of_candidate), i), c0)
    h = onnx.Div(onnx.Tanh(c), o)
    own = onnx.Concat(start, onnx.Slice(h, first, last, axis), axis=0)
    # Relative to all its terms, a sum of products may be off by as many units as it has terms.
    error = max(hidden, 16) * float(np.finfo(np.float32).epsneg)
    excess = onnx.Sub(onnx.Abs(onnx.Sub(own, before)), onnx.Mul(onnx.Abs(own), error))
    excesses = onnx.Gemm(excess, onnx.Abs(u), onnx.Abs(of_input), beta=-error)
    is_right = onnx.LessOrEqual(onnx.ReduceSum(onnx.Relu(excesses), keepdims=0), 0)
    return [h, c, is_right]


def _operator(
    onnx: Builder,
    hidden: int,
    x: ir.Value,
    w: ir.Value,
    u: ir.Value,
    b: ir.Value,
    h0: ir.Value,
    c0: ir.Value,
) -> ir.Value:
    """Return the outputs of all steps by ONNX's operator."""
    axis = onnx.ints([0])
    weights = [onnx.Unsqueeze(onnx.Transpose(m, perm=[1, 0]), axis) for m in (w, u)]
    zeros = onnx.constant(np.zeros(4 * hidden, "float32"))
    bias = onnx.Unsqueeze(onnx.Concat(b, zeros, axis=0), axis)
    states = [onnx.Unsqueeze(state, axis) for state in (h0, c0)]
    outputs = onnx.op(
        "LSTM",
        *(onnx.Unsqueeze(x, onnx.ints([1])), *weights, bias, None, *states),
        outputs=1,
        hidden_size=hidden,
    )
    outputs = outputs if isinstance(outputs, ir.Value) else outputs[0]
    mark_guarded(outputs)
    return onnx.Squeeze(outputs, onnx.ints([1, 2]))


def _memories(onnx: Builder, divisors: ir.Value, terms: ir.Value, initial: ir.Value) -> ir.Value:
    """Divide the memory by the divisor of each step and add its term."""

    def step(body: Builder, c: ir.Value, divisor: ir.Value, term: ir.Value) -> Sequence[ir.Value]:
        kept = body.Div(c, divisor)
        # A loop copies a state that it records.
        return [body.Add(kept, term), kept]

    return onnx.Add(onnx.scan([initial], [divisors, terms], step)[1], terms)
