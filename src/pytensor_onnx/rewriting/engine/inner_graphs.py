"""Ops that contain others: their core Ops, and their inner graphs."""

from collections.abc import Callable, Iterator

from pytensor.graph.basic import Apply
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import HasInnerGraph, Op
from pytensor.tensor.blockwise import Blockwise


def core_op(op: Op) -> Op:
    """Return the Op that a Blockwise repeats, or the Op itself."""
    core: Op = getattr(op, "core_op", op)
    return core


def inner_nodes(op: Op) -> Iterator[Apply]:
    """Yield the nodes of the inner graphs of an Op, recursively."""
    inner = getattr(core_op(op), "fgraph", None)
    for node in inner.toposort() if inner is not None else ():
        yield node
        yield from inner_nodes(node.op)


def with_inner_graph(op: Op, change: Callable[[FunctionGraph], object]) -> Op:
    """Return an Op, or a Blockwise of one, whose inner graph is changed by a function, in place.

    Parameters
    ----------
    op
        An Op with an inner graph.
    change
        Function that changes a copy of the graph.
    """
    core = core_op(op)
    assert isinstance(core, HasInnerGraph)
    inner = core.fgraph.unfreeze()
    change(inner)
    changed: Op = core.clone_with_inner_graph(inner)
    return changed if core is op else Blockwise(changed, signature=op.signature, name=op.name)
