"""Apply node rewrites to a graph without asking them about nodes that no rewrite tracks."""

from collections.abc import Iterator
from typing import Any, Literal

from pytensor.graph.basic import Apply
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import (
    NodeRewriter,
    SequentialNodeRewriter,
    WalkingGraphRewriter,
)
from pytensor.graph.rewriting.unify import OpPattern


class Visit(WalkingGraphRewriter):
    """Apply node rewrites to the nodes of a graph.

    PyTensor's own walk asks each rewrite about each node, which takes 3 µs. This one checks the
    classes of the Ops first, and does nothing if no rewrite tracks any of them.

    Parameters
    ----------
    rewrites
        Rewrites to apply in turn.
    order
        ``"dfs"`` or ``"in_to_out"``, operands first.
    once
        Whether the nodes that the rewrites create are left alone.
    """

    def __init__(
        self,
        *rewrites: NodeRewriter,
        order: Literal["dfs", "in_to_out"] = "dfs",
        once: bool = False,
    ) -> None:
        rewrite = rewrites[0] if len(rewrites) == 1 else SequentialNodeRewriter(*rewrites)
        super().__init__(rewrite, order, once, failure_callback=WalkingGraphRewriter.warn_inplace)
        self._tracked = tuple(op_type for rewrite in rewrites for op_type in _op_types(rewrite))

    def apply(self, fgraph: FunctionGraph, start_from: Any = None) -> tuple:
        """Walk, and return what `WalkingGraphRewriter.print_profile` prints."""
        op_types = {type(node.op) for node in fgraph.apply_nodes}
        if any(issubclass(op_type, self._tracked) for op_type in op_types):
            return super().apply(fgraph, start_from)
        size = len(fgraph.apply_nodes)
        return self, 0, size, size, 0.0, 0.0, 0.0, self.node_rewriter

    def process_node(
        self,
        fgraph: FunctionGraph,
        node: Apply,
        node_rewriter: NodeRewriter | None = None,
        enforce_tracks: bool = True,
    ) -> bool:
        """Apply the rewrites to a node, and return whether one replaced it."""
        if not isinstance(node.op, self._tracked):
            return False
        return super().process_node(fgraph, node, node_rewriter, enforce_tracks)


def _op_types(rewrite: NodeRewriter) -> Iterator[type]:
    """Yield the classes of the Ops that a rewrite tracks, `Op` if it declares none."""
    for tracked in rewrite.tracks() or [Op]:
        if isinstance(tracked, OpPattern):
            yield tracked.op_type
        else:
            yield tracked if isinstance(tracked, type) else type(tracked)
