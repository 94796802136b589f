"""Sequences that may be shorter than a loop are checked before work moves out of the loop.

Outside, a sequence of one element would broadcast with the others.
"""

import pytensor.tensor as pt
from pytensor.compile.mode import optdb
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import dfs_rewriter, node_rewriter
from pytensor.raise_op import CheckAndRaise
from pytensor.scalar import basic as ps
from pytensor.scan.op import Scan
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.shape import Shape
from pytensor.tensor.subtensor import Subtensor

from pytensor_onnx.rewriting.loop_buffers import unwrapped

BEFORE_PUSHING_OUT = 0.045
_UP_TO = (slice(None, 0, None),)
_FIRST = (0,)


@node_rewriter([Scan])
def check_lengths(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Check the lengths of sequences of which a given number of steps is taken.

    Examples
    --------
    >>> import pytensor, pytensor.tensor as pt
    >>> x, y, n = pt.vector("x"), pt.vector("y"), pt.iscalar("n")
    >>> z = pytensor.scan(
    ...     lambda a, b: a * b, [x, y], n_steps=n, name="products", return_updates=False
    ... )
    >>> pytensor.function([x, y, n], z, mode="ONNX")([1.0, 2.0], [3.0], 2)
    Traceback (most recent call last):
    ValueError: sequence 1 (y) of products ends before its steps do
    """
    op, inputs = node.op, list(node.inputs)
    n_steps = unwrapped(inputs[0])
    for i in range(op.info.n_seqs):
        taken = inputs[1 + i]
        whole = _taken_from(taken, n_steps)
        if whole is not None and not _is_long_enough(whole, n_steps):
            check = CheckAndRaise(ValueError, _failure(op, i, whole.name))
            inputs[1 + i] = check(taken, pt.le(inputs[0], whole.shape[0]))
    if inputs == node.inputs:
        return None
    return op.make_node(*inputs).outputs


def _failure(op: Scan, position: int, name: str | None) -> str:
    called = f" ({name.removesuffix('[0:]')})" if name else ""
    return f"sequence {position}{called} of {op.name or 'scan'} ends before its steps do"


def _taken_from(sequence: Variable, n_steps: Variable) -> Variable | None:
    """Return what the elements of all steps are taken from, None where it is something else."""
    node = sequence.owner
    if node is None or not isinstance(node.op, Subtensor) or node.op.idx_list != _UP_TO:
        return None
    whole, stop = node.inputs
    return whole if unwrapped(stop) is n_steps else None


def _is_long_enough(sequence: Variable, n_steps: Variable) -> bool:
    """Return whether the number of steps is at most the length of a sequence, by how it is made."""
    node = n_steps.owner
    static = sequence.type.shape[0]
    if isinstance(n_steps, Constant):
        return static is not None and int(n_steps.data) <= static
    if node is None:
        return False
    if isinstance(node.op, Elemwise) and isinstance(node.op.scalar_op, ps.Minimum):
        return any(_is_long_enough(sequence, unwrapped(x)) for x in node.inputs)
    if not isinstance(node.op, Subtensor) or node.op.idx_list != _FIRST:
        return False
    shape, first = node.inputs
    is_size = shape.owner is not None and isinstance(shape.owner.op, Shape)
    is_first = isinstance(first, Constant) and int(first.data) == 0
    return is_size and is_first and shape.owner.inputs[0] is sequence


optdb.register(
    "onnx_check_lengths",
    dfs_rewriter(check_lengths, ignore_newtrees=True),
    "onnx",
    position=BEFORE_PUSHING_OUT,
)
