"""Ops that contain others: their core Ops, and the nodes of their inner graphs."""

from collections.abc import Iterator

from pytensor.graph.basic import Apply
from pytensor.graph.op import Op


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
