"""Write a rule that is one identity as the pattern of its left side."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import PatternNodeRewriter, copy_stack_trace

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
