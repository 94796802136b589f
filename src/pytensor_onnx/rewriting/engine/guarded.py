"""Run a rewrite of PyTensor only on the nodes for which it is correct."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from pytensor.compile.mode import optdb
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import NodeRewriter, node_rewriter
from pytensor.graph.rewriting.db import RewriteDatabase, TopoDB

from pytensor_onnx.rules import Family, Purpose, Rule, declare, names_of

GUARDED = "guarded_for_onnx"
"""Tag of PyTensor's own, which the query leaves out."""
UNDER_CONDITION = "under_condition_for_onnx"
"""Tag of the rewrites in their place."""
STAGES = ("useless", "canonicalize", "stabilize", "specialize", "uncanonicalize")

Condition = Callable[[Apply], bool]


@dataclass(frozen=True)
class Guard:
    """A rewrite of PyTensor with the condition under which it is correct.

    Attributes
    ----------
    rewrite
        Rewrite of PyTensor.
    is_right
        Condition on a node under which the rewrite is correct.
    rule
        Its entry in the ledger.
    """

    rewrite: NodeRewriter
    is_right: Condition
    rule: Rule

    def guarded(self, rewrite: NodeRewriter | None = None) -> NodeRewriter:
        """Return the rewrite under its condition, also where a stage runs an own copy of it."""
        rewrite, is_right, rule = rewrite or self.rewrite, self.is_right, self.rule

        @node_rewriter(rewrite.tracks())
        def rewrite_if_right(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
            if rule.is_off or is_right(node):
                return quietly(rewrite, fgraph, node)
            if rule.is_recorded and _would_change(rewrite, fgraph, node):
                rule.note()
            return None

        rewrite_if_right.__name__ = rule.name
        rewrite_if_right.rule = rule
        return rewrite_if_right


def guard(
    rewrite: NodeRewriter,
    is_right: Condition,
    *,
    family: Family,
    purpose: Purpose,
    identity: str,
    requires: str,
    measured: str = "",
) -> Guard:
    """Declare a condition on a rewrite of PyTensor.

    Parameters
    ----------
    rewrite
        Rewrite of PyTensor.
    is_right
        Condition on a node under which the rewrite is correct.
    family, purpose, identity, requires, measured
        Fields of the `Rule`: the equation is PyTensor's, `requires` the condition.
    """
    rule = Rule(
        f"guarded_{rewrite}",
        "guard",
        family,
        purpose,
        identity,
        requires,
        begins_at=names_of(rewrite.tracks()),
        measured=measured,
    )
    return Guard(rewrite, is_right, declare(rule))


def quietly(rewrite: NodeRewriter, fgraph: FunctionGraph, node: Apply) -> Any:
    """Return the replacements of a rewrite of PyTensor, whose constants may be infinite or NaN.

    NumPy warns of such arithmetic, and PyTensor gives the rewrite up where warnings are errors.
    """
    with np.errstate(all="ignore"):
        return rewrite.transform(fgraph, node)


def _would_change(rewrite: NodeRewriter, fgraph: FunctionGraph, node: Apply) -> bool:
    """Return whether PyTensor's rewrite would replace a node, or fail."""
    try:
        return bool(quietly(rewrite, fgraph, node))
    except Exception:
        return True


def replace_by_guarded(guard: Guard) -> None:
    """Register a rewrite of PyTensor under its condition, in place of PyTensor's own."""
    for stage in STAGES:
        rewrites = rewrites_of(stage)
        try:
            own = rewrites[str(guard.rewrite)]
        except KeyError:
            continue
        rewrites.add_tags(own.name, GUARDED)
        replacement = guard.guarded(own)
        tags = ("onnx", UNDER_CONDITION)
        rewrites.register(replacement.__name__, replacement, *tags, use_db_name_as_tag=False)


def rewrites_of(stage: str) -> RewriteDatabase:
    """Return the database of the node rewrites of a stage."""
    database = optdb[stage]
    return database.db if isinstance(database, TopoDB) else database
