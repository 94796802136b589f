"""Rewrites of PyTensor that are wrong for some nodes run on all others only."""

from collections.abc import Callable

from pytensor.compile.mode import optdb
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import NodeRewriter, node_rewriter
from pytensor.graph.rewriting.db import RewriteDatabase, TopoDB

GUARDED = "guarded_for_onnx"
"""Tag of PyTensor's own, which the query leaves out."""
STAGES = ("useless", "canonicalize", "stabilize", "specialize", "uncanonicalize")

Condition = Callable[[Apply], bool]


def register_guarded(rewrite: NodeRewriter, is_right: Condition) -> None:
    """Register a rewrite of PyTensor under a condition, in place of PyTensor's own.

    Parameters
    ----------
    rewrite
        What PyTensor registers in one or more stages.
    is_right
        Whether the rewrite may be applied to a node.
    """
    for stage in STAGES:
        rewrites = _rewrites_of(stage)
        try:
            own = rewrites[str(rewrite)]
        except KeyError:
            continue
        rewrites.add_tags(own.name, GUARDED)
        add_guarded(stage, own, is_right)


def add_guarded(stage: str, rewrite: NodeRewriter, is_right: Condition) -> None:
    """Register a rewrite under a condition in a stage in which PyTensor does not run it by itself.

    Parameters
    ----------
    stage
        One of `STAGES`.
    rewrite
        What to apply.
    is_right
        Whether it may be applied to a node.
    """
    _rewrites_of(stage).register(
        f"guarded_{rewrite}", guarded(rewrite, is_right), "onnx", use_db_name_as_tag=False
    )


def guarded(rewrite: NodeRewriter, is_right: Condition) -> NodeRewriter:
    """Return a rewrite that is applied to the nodes of which a condition holds."""

    @node_rewriter(rewrite.tracks())
    def rewrite_if_right(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
        return rewrite.transform(fgraph, node) if is_right(node) else None

    return rewrite_if_right


def _rewrites_of(stage: str) -> RewriteDatabase:
    database = optdb[stage]
    return database.db if isinstance(database, TopoDB) else database
