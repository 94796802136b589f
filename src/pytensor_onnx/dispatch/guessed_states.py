"""Compute a recurrent layer over one sequence from a guess of its states, else by its loop.

ONNX's operator takes a quarter of the time of a loop, but small sigmoids lose their digits. So its
outputs are a guess, from which one product gives the arguments of the gates of all steps. States
follow from the gates as in the loop, with a product and a sum in each step. They differ from those
of the loop by rounding if the guess is so near to them that no argument changes by more than the
product with the state may be rounded. Where this does not hold, as for NaN, the loop runs.
"""

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from pytensor_onnx.dispatch.networks import lower_by_inner_graph
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.marks import mark_guarded, mark_rare
from pytensor_onnx.ops.networks.accurate_gru import AccurateGRU
from pytensor_onnx.ops.networks.accurate_lstm import AccurateLSTM, least_steps

FromGuess = Callable[[Builder], list[ir.Value]]
"""Receives a builder; returns the states of all steps, and whether they are right."""


def states_from_guess(
    op: AccurateLSTM | AccurateGRU,
    build: Builder,
    inputs: Sequence[ir.Value],
    from_guess: FromGuess,
) -> list[ir.Value]:
    """Return the states of many steps from a guess, and those of few or wrong ones by a loop."""
    steps, least = build.dims(inputs[0])[0], least_steps(op.hidden)

    def nothing(other: Builder) -> list[ir.Value]:
        none = other.constant(np.zeros((0, op.hidden), "float32"))
        return [*[none] * len(op.fgraph.outputs), other.constant(np.array(False))]

    def loop(other: Builder) -> list[ir.Value]:
        return list(lower_by_inner_graph(op, other, inputs))

    if isinstance(steps, int) and steps < least:
        return loop(build)
    if isinstance(steps, int):
        *states, is_right = from_guess(build)
    else:
        is_long = build.GreaterOrEqual(build.size(inputs[0], 0), least)
        *states, is_right = build.cond(is_long, from_guess, nothing)
    results = build.cond(is_right, lambda then: states, loop)
    for result in results:
        result.shape = ir.Shape([steps, op.hidden])
    mark_rare(results[0])
    return results


def operator(
    build: Builder,
    name: str,
    weights: Sequence[ir.Value],
    biases: Sequence[ir.Value],
    x: ir.Value,
    states: Sequence[ir.Value],
    **attributes: int,
) -> ir.Value:
    """Return the outputs of all steps by ONNX's operator, which may be wrong."""
    axis = build.ints([0])
    found = build.op(
        name,
        build.Unsqueeze(x, build.ints([1])),
        *(build.Unsqueeze(build.Transpose(m, perm=[1, 0]), axis) for m in weights),
        build.Unsqueeze(build.Concat(*biases, axis=0), axis),
        None,
        *(build.Unsqueeze(build.Unsqueeze(state, axis), axis) for state in states),
        **attributes,
    )
    mark_guarded(found)
    return build.Squeeze(found, build.ints([1, 2]))


def before_steps(build: Builder, start: ir.Value, states: ir.Value) -> ir.Value:
    """Return the states before all steps."""
    first, last, axis = build.ints([0]), build.ints([-1]), build.ints([0])
    return build.Concat(
        build.Unsqueeze(start, axis), build.Slice(states, first, last, axis), axis=0
    )


def sigmoids(build: Builder, x: ir.Value) -> ir.Value:
    """Return sigmoids, which are zero where the exponential overflows."""
    return build.Reciprocal(build.Add(build.Exp(build.Neg(x)), 1))


def accumulated(build: Builder, factors: ir.Value, terms: ir.Value, start: ir.Value) -> ir.Value:
    """Multiply a state by the factor of each step and add its term."""

    def step(body: Builder, state: ir.Value, factor: ir.Value, term: ir.Value) -> list[ir.Value]:
        kept = body.Mul(state, factor)
        # A loop copies a state that it records.
        return [body.Add(kept, term), kept]

    return build.Add(build.scan([start], [factors, terms], step)[1], terms)


def rounding_error(hidden: int) -> float:
    """Return the error of a sum of products relative to its terms, one unit for each of them.

    The bound is not below that of 16 terms, since the operator's functions have errors of a few
    units.
    """
    return max(hidden, 16) * float(np.finfo(np.float32).epsneg)


def excess(build: Builder, hidden: int, guess: ir.Value, states: ir.Value) -> ir.Value:
    """Return by how much differences between guess and states exceed rounding errors."""
    allowed = build.Mul(build.Abs(states), rounding_error(hidden))
    return build.Sub(build.Abs(build.Sub(states, guess)), allowed)


def changes(
    build: Builder, hidden: int, excess: ir.Value, u: ir.Value, others: ir.Value
) -> ir.Value:
    """Return a sum that is zero if no argument changes by more than its sum may be rounded.

    Parameters
    ----------
    excess
        Differences of the states beyond rounding errors.
    u
        Matrix that multiplies the states.
    others
        The other terms of the arguments.
    """
    error = rounding_error(hidden)
    more = build.Gemm(excess, build.Abs(u), build.Abs(others), beta=-error)
    return build.ReduceSum(build.Relu(more), keepdims=0)
