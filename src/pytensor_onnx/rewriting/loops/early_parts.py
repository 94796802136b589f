"""Parts of a step that are computed before the loop."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.replace import clone_replace, graph_replace, vectorize_graph
from pytensor.graph.rewriting.basic import copy_stack_trace
from pytensor.graph.traversal import ancestors, toposort
from pytensor.scan.op import Scan
from pytensor.tensor.basic import TensorConstant
from pytensor.tensor.math import Dot
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.ops.random.draws import Draw, DrawsOfSteps, RandomBits
from pytensor_onnx.rewriting.engine.batches import takes_a_loop
from pytensor_onnx.rewriting.engine.predicates import only_client
from pytensor_onnx.rewriting.engine.walkers import core_op
from pytensor_onnx.rewriting.loops.inner_loops import loop_like, merge_equal_operations
from pytensor_onnx.rewriting.loops.loop_lengths import has_length, unwrapped
from pytensor_onnx.rewriting.loops.scan_outputs import is_short
from pytensor_onnx.rules import part_of

# Draw the random numbers of all steps before the loop, at once.
#
# A draw consists of some 150 small operations, which a loop would repeat for each step.

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


# Compute products of a sequence and a fixed matrix before the loop, in one product.
#
# PyTensor moves elementwise operations on sequences out of loops, but not matrix products. In a
# recurrent network, the product of the inputs and their weights is half of the work of a step.


@part_of(merge_equal_operations.rule, [Scan])
def multiply_before_loop(fgraph: FunctionGraph, node: Apply) -> dict[Variable, Variable] | None:
    """Replace products of sequences with constants of a loop by new sequences.

    Examples
    --------
    >>> import pytensor, pytensor.tensor as pt
    >>> x, w = pt.matrices("x", "w")
    >>> h = pytensor.scan(
    ...     lambda e, h, w: pt.tanh(e @ w + h), [x], [pt.zeros(2)], [w], return_updates=False
    ... )
    >>> f = pytensor.function([x, w], h, mode="ONNX")
    >>> (scan,) = (node.op for node in f.maker.fgraph.toposort() if isinstance(node.op, Scan))
    >>> any(isinstance(node.op, Dot) for node in scan.fgraph.toposort())
    False
    """
    op, info = node.op, node.op.info
    outer = op.outer_seqs(node.inputs)
    n_steps = unwrapped(node.inputs[0])
    if info.as_while or not outer or not all(has_length(fgraph, x, n_steps) for x in outer):
        return None
    inner = op.fgraph.unfreeze()
    elements = dict(zip(op.inner_seqs(inner.inputs), outer, strict=True))
    constants = dict(
        zip(op.inner_non_seqs(inner.inputs), op.outer_non_seqs(node.inputs), strict=True)
    )
    changing = set(inner.inputs) - set(elements) - set(constants)
    products: dict[Variable, Variable] = {}
    for product in inner.toposort():
        if not isinstance(core_op(product.op), Dot):
            continue
        known = set(ancestors(product.inputs))
        # A product of another product is computed in the loop.
        if known.isdisjoint(elements) or known & (changing | products.keys()):
            continue
        rows = _product_of_all_steps(product.inputs, elements, constants)
        if rows is not None:
            products[product.outputs[0]] = rows
    if not products:
        return None
    for old, new in products.items():
        copy_stack_trace(old, new)
    return with_sequences(node, inner, products)


def _product_of_all_steps(
    factors: Sequence[Variable],
    elements: Mapping[Variable, Variable],
    constants: Mapping[Variable, Variable],
) -> TensorVariable | None:
    """Return the products of all steps, None if a factor requires a loop."""
    steps = in_all_steps(factors, elements, constants)
    if steps is None:
        return None
    left, right = steps
    is_column = right.type.ndim == 3 and right.type.shape[2] == 1
    if left.type.ndim == 2 and is_column:
        # One matrix product for all steps, in place of a matrix-vector product for each.
        return pt.matmul(right[:, :, 0], left.T)[:, :, None]
    return pt.matmul(left, right)


def in_all_steps(
    values: Sequence[Variable],
    elements: Mapping[Variable, Variable],
    constants: Mapping[Variable, Variable],
) -> list[TensorVariable] | None:
    """Return inner values for all steps at once, None if one requires a loop."""
    try:
        batched = vectorize_graph(list(values), elements)
    except (NotImplementedError, TypeError, ValueError):
        return None
    steps = graph_replace(batched, constants, strict=False)
    known = {*elements.values(), *constants.values()}
    has_loop = any(takes_a_loop(node) for node in toposort(steps, blockers=known))
    return None if has_loop else steps


def with_sequences(
    node: Apply, inner: FunctionGraph, sequences: Mapping[Variable, Variable]
) -> dict[Variable, Variable]:
    """Return the outputs of a Scan whose given inner variables are new inputs.

    Parameters
    ----------
    node
        The Scan.
    inner
        Inner graph that has the variables.
    sequences
        Sequences for inner variables.
    """
    op = node.op
    elements = {old: old.type(name=old.name) for old in sequences}
    outputs = clone_replace(inner.outputs, replace=elements)
    info = replace(op.info, n_seqs=op.info.n_seqs + len(elements))
    scan = loop_like(op, [*elements.values(), *inner.inputs], outputs, info)
    n_steps, *others = node.inputs
    steps = [_with_known_ones(old, x) for old, x in sequences.items()]
    results = scan(n_steps, *steps, *others, return_list=True)
    return dict(zip(node.outputs, results, strict=True))


def _with_known_ones(old: Variable, steps: Variable) -> Variable:
    """Return the values of all steps with the axes of one element that each of them has."""
    sizes = [1 if is_one else None for is_one in old.type.broadcastable]
    missing = zip(sizes, steps.type.shape[1:], strict=True)
    if not any(size == 1 != known for size, known in missing):
        return steps
    return pt.specify_shape(steps, [None, *sizes])


LARGEST_ROW = 1024
"""Number of elements of a step up to which those of all steps are computed at once."""


def are_held(values: Sequence[Variable], elements: Collection[Variable]) -> bool:
    """Return whether the values of all steps have about the size of the sequences.

    A loop holds the values of one step. Values with more axes than an element of a sequence are
    larger, unless they are known to be small. Values that all steps share are larger once they are
    repeated.

    Parameters
    ----------
    values
        Variables of the inner graph, computed for all steps.
    elements
        Elements of the sequences, and states that are known for all steps.
    """
    axes = max(map(_n_axes, elements), default=0)
    return all(
        _n_axes(x) <= axes or is_short(x, LARGEST_ROW)
        for x in [*values, *_changing(values, elements)]
    )


def _changing(values: Sequence[Variable], elements: Collection[Variable]) -> list[Variable]:
    """Return the results of a step, within the computation of values, that differ between steps."""
    changing = set(elements)
    results = []
    for node in toposort(values, blockers=elements):
        if not changing.isdisjoint(node.inputs):
            changing.update(node.outputs)
            results += node.outputs
    return results


def depends_on(value: Variable, elements: Collection[Variable]) -> bool:
    """Return whether a value of a step depends on elements of sequences."""
    return not set(elements).isdisjoint(ancestors([value], blockers=elements))


def factors_of_sum(term: Variable) -> list[Variable]:
    """Return the factors of a matrix product, whose sum over the steps is one product.

    Other terms are returned as they are.
    """
    node = term.owner
    return list(node.inputs) if node is not None and isinstance(core_op(node.op), Dot) else [term]


def _n_axes(value: Variable) -> int:
    """Return the number of axes that may have more than one element."""
    return sum(not is_one for is_one in value.type.broadcastable)
