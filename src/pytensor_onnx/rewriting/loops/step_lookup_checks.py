"""Check the position of a single step that is read from a loop.

PyTensor reduces the steps and the trace of a loop if single steps are read, and returns another
step or the initial value in place of a step that was never computed.
"""

import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import copy_stack_trace
from pytensor.raise_op import CheckAndRaise
from pytensor.scan.op import Scan
from pytensor.tensor.subtensor import Subtensor, indices_from_subtensor

from pytensor_onnx.rewriting.engine.predicates import made_by
from pytensor_onnx.rules import rewrites_nodes

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
