"""Run a rewrite of PyTensor only on the nodes for which it is correct."""

from collections.abc import Callable

from pytensor.compile.mode import optdb
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import NodeRewriter, node_rewriter
from pytensor.graph.rewriting.db import RewriteDatabase, TopoDB

GUARDED = "guarded_for_onnx"
"""Tag of PyTensor's own, which the query leaves out."""
UNDER_CONDITION = "under_condition_for_onnx"
"""Tag of the rewrites in their place."""
STAGES = ("useless", "canonicalize", "stabilize", "specialize", "uncanonicalize")

Condition = Callable[[Apply], bool]


def guarded(rewrite: NodeRewriter, is_right: Condition) -> NodeRewriter:
    """Return a rewrite that applies only to nodes for which a condition holds."""

    @node_rewriter(rewrite.tracks())
    def rewrite_if_right(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
        return rewrite.transform(fgraph, node) if is_right(node) else None

    rewrite_if_right.__name__ = f"guarded_{rewrite}"
    return rewrite_if_right


def replace_by_guarded(rewrite: NodeRewriter, is_right: Condition) -> None:
    """Register a rewrite of PyTensor under a condition, in place of PyTensor's own.

    Parameters
    ----------
    rewrite
        Rewrite that PyTensor registers in one or more stages.
    is_right
        Condition on a node under which the rewrite is correct.
    """
    for stage in STAGES:
        rewrites = rewrites_of(stage)
        try:
            own = rewrites[str(rewrite)]
        except KeyError:
            continue
        rewrites.add_tags(own.name, GUARDED)
        replacement = guarded(own, is_right)
        tags = ("onnx", UNDER_CONDITION)
        rewrites.register(replacement.__name__, replacement, *tags, use_db_name_as_tag=False)


def rewrites_of(stage: str) -> RewriteDatabase:
    """Return the database of the node rewrites of a stage."""
    database = optdb[stage]
    return database.db if isinstance(database, TopoDB) else database
