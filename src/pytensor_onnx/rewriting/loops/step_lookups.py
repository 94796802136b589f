"""Indices of steps, their checks, and searches of SciPy's optimisers."""

from collections.abc import Mapping

import pytensor.tensor as pt
from pytensor.configdefaults import config
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import copy_stack_trace
from pytensor.graph.traversal import ancestors
from pytensor.raise_op import CheckAndRaise
from pytensor.scan.op import Scan
from pytensor.tensor.basic import ARange, scalar_from_tensor, tensor_from_scalar
from pytensor.tensor.optimize import ScipyWrapperOp
from pytensor.tensor.subtensor import (
    AdvancedIncSubtensor,
    IncSubtensor,
    Subtensor,
    indices_from_subtensor,
    unflatten_index_variables,
)
from pytensor.tensor.type import TensorType, integer_dtypes

from pytensor_onnx.functions.loops.search_options import Refused
from pytensor_onnx.ops.loops import INDEXING, StepIndex
from pytensor_onnx.rewriting.engine.predicates import integer_of, made_by
from pytensor_onnx.rewriting.engine.walkers import Visit
from pytensor_onnx.rewriting.loops.loop_lengths import are_equal, unwrapped
from pytensor_onnx.rules import rewrites_nodes

# Mark indices that differ between the steps of a loop, before the loop becomes a batched graph.
#
# An error of such an index then names the loop. PyTensor would replace an index that counts the
# elements of another array by a slice; but a slice ends where its array does, and does not fail.

_WRITING = (IncSubtensor, AdvancedIncSubtensor)


def mark_indices(
    fgraph: FunctionGraph,
    inner: FunctionGraph,
    elements: Mapping[Variable, Variable],
    constants: Mapping[Variable, Variable],
    loop: str,
) -> None:
    """Mark the indices of the inner graph of a loop that depend on its sequences.

    Parameters
    ----------
    fgraph
        The graph around the loop, with its shape inference.
    inner
        The inner graph, which is changed.
    elements, constants
        The outer sequences and outer variables by the inner variable of each.
    loop
        Name of the loop.
    """
    for node in inner.toposort():
        if not isinstance(node.op, INDEXING):
            continue
        array, *inputs = node.inputs[:1] + node.inputs[1 + isinstance(node.op, _WRITING) :]
        entries = unflatten_index_variables(inputs, node.op.idx_list)
        for axis, entry in enumerate(entries):
            if isinstance(entry, slice) or entry.type.dtype not in integer_dtypes:
                continue
            if set(elements).isdisjoint(ancestors([entry])):
                continue
            whole = constants.get(array)
            sequence = elements.get(unwrapped(entry))
            if whole is None or sequence is None or not _counts(fgraph, sequence, whole, axis):
                _mark(inner, node, entry, loop)


def _mark(inner: FunctionGraph, node: Apply, entry: Variable, loop: str) -> None:
    if isinstance(entry.type, TensorType):
        marked = StepIndex(loop)(entry)
    else:
        marked = scalar_from_tensor(StepIndex(loop)(tensor_from_scalar(entry)))
    for position, variable in enumerate(node.inputs):
        if variable is entry and position:
            inner.change_node_input(node, position, marked)


def _counts(fgraph: FunctionGraph, sequence: Variable, array: Variable, axis: int) -> bool:
    """Return whether a sequence enumerates the positions along an axis of an array."""
    node = made_by(sequence, ARange)
    if node is None:
        return False
    start, stop, step = map(unwrapped, node.inputs)
    size = unwrapped(fgraph.shape_feature.get_shape(array, axis))
    return (integer_of(start), integer_of(step)) == (0, 1) and are_equal(stop, size)


# Check the position of a single step that is read from a loop.
#
# PyTensor reduces the steps and the trace of a loop if single steps are read, and returns another
# step or the initial value in place of a step that was never computed.

_ALL_BUT_INITIAL = (slice(0, None, None),)


@rewrites_nodes(
    [Subtensor],
    family="loops",
    purpose="correctness",
    identity="scan(f)[k] = scan(f)[k] where 0 <= k < steps, else an error",
    requires="k is not known to be negative",
)
def check_read_step(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Check a nonnegative position of a step against the number of steps.

    Negative positions are left to PyTensor: in all of its modes the position before the first step
    is the initial value. Loops with a condition keep all steps, and refuse other positions by
    themselves.

    Examples
    --------
    >>> import pytensor, pytensor.tensor as pt
    >>> x, n = pt.scalar("x"), pt.iscalar("n")
    >>> y = pytensor.scan(
    ...     lambda y: y * 2, outputs_info=[x], n_steps=n, name="doubled", return_updates=False
    ... )
    >>> pytensor.function([x, n], y[2], mode="ONNX")(1.0, 2)
    Traceback (most recent call last):
    IndexError: a step of doubled is read that it does not make
    """
    loop = _loop_of(node.inputs[0])
    if loop is None or loop.op.info.as_while:
        return None
    position = indices_from_subtensor(node.inputs[1:], node.op.idx_list)[0]
    if isinstance(position, slice) or (isinstance(position, Constant) and position.data < 0):
        return None
    n_steps = loop.inputs[0]
    known = (position, n_steps)
    if all(isinstance(x, Constant) for x in known) and position.data < n_steps.data:
        return None
    check = CheckAndRaise(
        IndexError, f"a step of {loop.op.name or 'scan'} is read that it does not make"
    )
    # The check wraps the result, since PyTensor must see the index of the step.
    (read,) = node.clone().outputs
    result = check(read, pt.lt(position, n_steps))
    copy_stack_trace(node.outputs[0], [read, result])
    return [result]


def _loop_of(steps: Variable) -> Apply | None:
    """Return the loop that computes some steps, with or without the initial values before them."""
    read = made_by(steps, Subtensor)
    if read is not None and read.op.idx_list == _ALL_BUT_INITIAL:
        loop = made_by(read.inputs[0], Scan)
        return loop if loop and read.inputs[0] in _states(loop) else None
    loop = made_by(steps, Scan)
    return loop if loop and steps in loop.op.outer_nitsot_outs(loop.outputs) else None


def _states(loop: Apply) -> list[Variable]:
    op = loop.op
    return [*op.outer_mitsot_outs(loop.outputs), *op.outer_sitsot_outs(loop.outputs)]


@rewrites_nodes(
    [ScipyWrapperOp],
    family="control_flow",
    purpose="conversion",
    identity="scipy.optimize(f, x0) = loop over steps of the search",
)
def search_by_loops(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Replace an optimizer by a bounded loop; the lowering refuses methods that have none."""
    from pytensor_onnx.functions.loops.optimizer_calls import search

    try:
        # Under a floatX of float32 PyTensor would round the constants of the searches.
        with config.change_flags(floatX="float64"):
            point, converged = search(node)
    except Refused:
        return None
    solution, success = node.outputs
    point = point.reshape(node.inputs[0].shape).astype(solution.type.dtype)
    return [
        solution.type.filter_variable(point, allow_convert=True),
        success.type.filter_variable(pt.scalar_from_tensor(converged)),
    ]


search_in_graph = Visit(search_by_loops)
"""The rewrite of a whole graph, for references too: SciPy takes another way to the same point."""
