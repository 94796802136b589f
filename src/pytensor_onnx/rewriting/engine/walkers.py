"""Walks over the nodes of a graph that a rewrite tracks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, Literal

from pytensor.graph.basic import Apply, Variable
from pytensor.graph.features import Feature
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import HasInnerGraph, Op
from pytensor.graph.rewriting.basic import (
    GraphRewriter,
    NodeRewriter,
    PatternNodeRewriter,
    SequentialNodeRewriter,
    WalkingGraphRewriter,
    copy_stack_trace,
)
from pytensor.graph.rewriting.unify import OpPattern
from pytensor.tensor.blockwise import Blockwise

from pytensor_onnx.rules import rewrites_graphs
from pytensor_onnx.user_code import Origin, replaced_by_rewrite, user_line

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


Rewrite = Callable[[FunctionGraph, Apply], list[Variable] | None]

ONE_INDEX = {"pattern": "_form", "constraint": lambda idx_list: idx_list == (0,)}
"""Pattern of the `idx_list` of an index that is one integer."""


def matching(*pattern: Any) -> Callable[[Callable[..., Variable | None]], Rewrite]:
    """Rewrite nodes that match a pattern, by a function of the parts that the pattern names.

    Parameters
    ----------
    pattern
        Pattern of `PatternNodeRewriter`: an Op or an `OpPattern`, then its operands. Inner results
        may have other uses. The function takes the parts by their names, except parts whose names
        begin with an underscore.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> @matching(pt.exp, (pt.log, "x"))
    ... def drop_exp_of_log(node, x):
    ...     return x
    >>> x = pt.vector("x")
    >>> [drop_exp_of_log(None, y.owner) for y in (pt.exp(pt.log(x)), pt.exp(x))]
    [[x], None]
    """

    def decorate(right_side: Callable[..., Variable | None]) -> Rewrite:
        def made(fgraph: FunctionGraph, node: Apply, found: dict[str, Any]) -> Variable | None:
            return right_side(node, **{k: v for k, v in found.items() if not k.startswith("_")})

        rewriter = PatternNodeRewriter(pattern, made, allow_multiple_clients=True)

        @wraps(right_side)
        def rewrite(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
            results = rewriter.transform(fgraph, node)
            return copy_stack_trace(node.outputs, results) if results else None

        return rewrite

    return decorate


class KeepOrigins(Feature):
    """Graph feature that copies the name, user line and original Ops of replaced variables.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> from pytensor_onnx.user_code import origins_of
    >>> from pytensor.graph.fg import FunctionGraph
    >>> x = pt.vector("x")
    >>> y = 2 * x
    >>> y.name = "doubled"
    >>> fgraph = FunctionGraph([x], [y], clone=False, features=[KeepOrigins()])
    >>> fgraph.replace(y, x + x)
    >>> fgraph.outputs[0].name
    'doubled'
    >>> str(origins_of(fgraph.outputs[0])[0].op)
    'Mul'
    """

    def __init__(self) -> None:
        self._new: list[Apply] = []

    def on_import(self, fgraph: FunctionGraph, node: Apply, reason: Any = None) -> None:
        """Record a new node before it replaces another."""
        self._new.append(node)

    def on_change_input(
        self,
        fgraph: FunctionGraph,
        node: Apply,
        i: int,
        old: Variable,
        new: Variable,
        reason: Any = None,
    ) -> None:
        """Copy the origin to the replacement, unless it is an input or a constant."""
        if old.name and new.name is None and new.owner is not None:
            new.name = old.name
        if self._new and old.owner is not None:
            keep_origins.rule.note()
            origins = replaced_by_rewrite(old)
            for made in self._new:
                _attach_origins(made, old, origins)
        self._new.clear()


def _attach_origins(node: Apply, old: Variable, origins: tuple[Origin, ...]) -> None:
    """Attach the user's line and Ops to new results."""
    for variable in node.outputs:
        if not user_line(variable) and hasattr(old.tag, "trace"):
            variable.tag.trace = old.tag.trace
        if not hasattr(variable.tag, "origins"):
            variable.tag.origins = origins


@rewrites_graphs(
    family="structure",
    purpose="conversion",
    identity="name and line of a replacement = those of the replaced variable",
    ensures="features of the graph only",
)
def keep_origins(fgraph: FunctionGraph) -> None:
    """Attach `KeepOrigins` to a graph."""
    fgraph.attach_feature(KeepOrigins())
