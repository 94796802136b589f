"""Compute products of a sequence and a fixed matrix before the loop, in one product.

PyTensor moves elementwise operations on sequences out of loops, but not matrix products. In a
recurrent network, the product of the inputs and their weights is half of the work of a step.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.replace import clone_replace, graph_replace, vectorize_graph
from pytensor.graph.rewriting.basic import copy_stack_trace
from pytensor.graph.traversal import ancestors, toposort
from pytensor.scan.op import Scan
from pytensor.tensor.math import Dot
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.rewriting.engine.blockwise_to_batch import takes_a_loop
from pytensor_onnx.rewriting.engine.inner_graphs import core_op
from pytensor_onnx.rewriting.loops.changed_scan import loop_like
from pytensor_onnx.rewriting.loops.equal_operations import merge_equal_operations
from pytensor_onnx.rewriting.loops.known_lengths import has_length, unwrapped
from pytensor_onnx.rules import part_of


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
    results = scan(n_steps, *sequences.values(), *others, return_list=True)
    return dict(zip(node.outputs, results, strict=True))
