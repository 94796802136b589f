"""Apply node rewrites to a graph without asking them about nodes that no rewrite tracks."""

from collections.abc import Callable, Iterator
from typing import Any, Literal

from pytensor.graph.basic import Apply
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import (
    GraphRewriter,
    NodeRewriter,
    SequentialNodeRewriter,
    WalkingGraphRewriter,
)
from pytensor.graph.rewriting.unify import OpPattern

type Tracked = Op | type[Op] | OpPattern
"""The tracks of PyTensor's rewrites: an Op, a class of Ops, or a class and its properties."""


class Visit(WalkingGraphRewriter):
    """Apply node rewrites to the nodes of a graph.

    PyTensor's own walk asks each rewrite about each node, which takes 3 µs. This one checks the
    classes of the Ops first, and does not walk a graph without an Op that a rewrite tracks.

    Parameters
    ----------
    rewrites
        Rewrites to apply in turn.
    order
        ``"dfs"`` or ``"in_to_out"``, operands first.
    once
        Whether the nodes that the rewrites create are left alone.
    where
        Condition on a node without which no rewrite applies.
    """

    def __init__(
        self,
        *rewrites: NodeRewriter,
        order: Literal["dfs", "in_to_out"] = "dfs",
        once: bool = False,
        where: Callable[[Apply], bool] | None = None,
    ) -> None:
        rewrite = rewrites[0] if len(rewrites) == 1 else SequentialNodeRewriter(*rewrites)
        super().__init__(rewrite, order, once, failure_callback=WalkingGraphRewriter.warn_inplace)
        self._tracked = [tracked for each in rewrites for tracked in each.tracks() or [Op]]
        self._classes = tuple(_class_of(tracked) for tracked in self._tracked)
        self._where = where

    def apply(self, fgraph: FunctionGraph, start_from: Any = None) -> tuple:
        """Walk, and return what `WalkingGraphRewriter.print_profile` prints."""
        if self._may_apply(fgraph):
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
        if not isinstance(node.op, self._classes):
            return False
        if self._where is not None and not self._where(node):
            return False
        return super().process_node(fgraph, node, node_rewriter, enforce_tracks)

    def _may_apply(self, fgraph: FunctionGraph) -> bool:
        if self._where is not None:
            return any(map(self._where, fgraph.apply_nodes))
        return any(_is_tracked(op, tracked) for op in ops_of(fgraph) for tracked in self._tracked)


class WithOps(GraphRewriter):
    """Apply a graph rewrite to graphs with Ops of given classes only.

    Parameters
    ----------
    rewrite
        Rewrite of a whole graph.
    classes
        Classes of Ops: the rewrite needs an Op of one of the classes.
    """

    def __init__(self, rewrite: GraphRewriter, *classes: type[Op]) -> None:
        self._rewrite = rewrite
        self._classes = classes
        self.__name__ = rewrite.__name__

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        """Attach the features that the rewrite needs."""
        self._rewrite.add_requirements(fgraph)

    def apply(self, fgraph: FunctionGraph) -> None:
        """Rewrite a graph in place."""
        if any(isinstance(op, self._classes) for op in ops_of(fgraph)):
            self._rewrite.apply(fgraph)


def ops_of(fgraph: FunctionGraph) -> Iterator[Op]:
    """Yield the Ops of a graph, each object once.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> x = pt.vector("x")
    >>> graph = FunctionGraph([x], [pt.exp(pt.exp(x))], clone=False)
    >>> [str(op) for op in ops_of(graph)]
    ['Exp']
    """
    # To hash an Op takes ten times as long as its address.
    yield from {id(node.op): node.op for node in fgraph.apply_nodes}.values()


def _class_of(tracked: Tracked) -> type[Op]:
    if isinstance(tracked, OpPattern):
        return tracked.op_type
    return tracked if isinstance(tracked, type) else type(tracked)


def _is_tracked(op: Op, tracked: Tracked) -> bool:
    if isinstance(tracked, OpPattern):
        return isinstance(op, tracked.op_type) and tracked.match_parameters(op)
    return isinstance(op, tracked) if isinstance(tracked, type) else op == tracked
