"""Draw the random numbers of all steps before the loop, at once.

A draw consists of some 150 small operations, which a loop would repeat for each step.
"""

from collections.abc import Sequence
from dataclasses import replace

from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.replace import clone_replace
from pytensor.graph.rewriting.basic import copy_stack_trace
from pytensor.scan.op import Scan
from pytensor.tensor.basic import TensorConstant

from pytensor_onnx.ops.random.draws import Draw, DrawsOfSteps, RandomBits
from pytensor_onnx.rewriting.engine.predicates import only_client
from pytensor_onnx.rewriting.loops.changed_scan import loop_like
from pytensor_onnx.rewriting.loops.equal_operations import merge_equal_operations
from pytensor_onnx.rules import part_of

MOST_WORDS = 16
"""Largest number of words of a step that are drawn before the loop and kept in memory."""


@part_of(merge_equal_operations.rule, [Scan])
def draw_before_loop(fgraph: FunctionGraph, node: Apply) -> dict[Variable, Variable] | None:
    """Replace the draws from a generator that a loop carries by sequences of equal numbers.

    A loop with a condition keeps them: its number of steps is not known.
    """
    op = node.op
    if op.info.as_while:
        return None
    inner = op.fgraph.unfreeze()
    states = op.inner_untraced_sit_sot(inner.inputs)
    following = op.inner_untraced_sit_sot_outs(inner.outputs)
    for i, (state, after) in enumerate(zip(states, following, strict=True)):
        draws = _draws_between(inner, state, after)
        if draws:
            return _without_state(node, inner, i, draws)
    return None


def _draws_between(
    inner: FunctionGraph, state: Variable, after: Variable
) -> list[tuple[Apply, int]] | None:
    """Return the draws of a step and their lengths, or None if the state is used elsewhere."""
    draws: list[tuple[Apply, int]] = []
    while state is not after:
        draw = only_client(inner, state)
        if draw is None or not isinstance(draw.op, Draw):
            return None
        n = draw.inputs[1]
        if not isinstance(n, TensorConstant) or n.data > 2 * MOST_WORDS:
            return None
        draws.append((draw, int(n.data)))
        state = draw.outputs[0]
    is_last = only_client(inner, state) is not None
    few = sum(draw.op.words(n) for draw, n in draws) <= MOST_WORDS
    return draws if is_last and few else None


def _without_state(
    node: Apply, inner: FunctionGraph, i: int, draws: list[tuple[Apply, int]]
) -> dict[Variable, Variable]:
    """Return the outputs of a loop that does not carry the state at an index."""
    op, info = node.op, node.op.info
    n_steps = node.inputs[0]
    carried, state = op.outer_untraced_sit_sot(node.inputs, with_idx=True)[i]
    rows, after = _of_all_steps(state, n_steps, draws)
    sequences = {draw.outputs[1]: x for (draw, _), x in zip(draws, rows, strict=True)}
    elements = {old: x.type.clone(shape=x.type.shape[1:])() for old, x in sequences.items()}
    changed = replace(
        info,
        n_seqs=info.n_seqs + len(sequences),
        n_untraced_sit_sot=info.n_untraced_sit_sot - 1,
    )
    inputs = _without(inner.inputs, op.inner_untraced_sit_sot(inner.inputs, with_idx=True)[i][0])
    results = _without(
        inner.outputs, op.inner_untraced_sit_sot_outs(inner.outputs, with_idx=True)[i][0]
    )
    results = clone_replace(results, replace=elements)
    scan = loop_like(op, [*elements.values(), *inputs], results, changed)
    given = _without(node.inputs, carried)[1:]
    found = scan(n_steps, *sequences.values(), *given, return_list=True)
    place, last = op.outer_untraced_sit_sot_outs(node.outputs, with_idx=True)[i]
    return {**dict(zip(_without(node.outputs, place), found, strict=True)), last: after}


def _without(variables: Sequence[Variable], place: int) -> list[Variable]:
    return [*variables[:place], *variables[place + 1 :]]


def _of_all_steps(
    state: Variable, n_steps: Variable, draws: list[tuple[Apply, int]]
) -> tuple[list[Variable], Variable]:
    """Return the draws of all steps, and the state after the last."""
    lengths = [draw.op.words(n) for draw, n in draws]
    after, words = RandomBits()(state, n_steps * sum(lengths))
    rows = []
    for i, (draw, n) in enumerate(draws):
        x = DrawsOfSteps(draw.op, n, sum(lengths), sum(lengths[:i]))(words, n_steps)
        copy_stack_trace(draw.outputs[1], x)
        rows.append(x)
    return rows, after
