"""Elementwise operations of a choice between arrays that are smaller than its condition."""

from collections.abc import Sequence

from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import copy_stack_trace
from pytensor.scalar.basic import Switch
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.math import switch

from pytensor_onnx.rewriting.engine.predicates import applies
from pytensor_onnx.rules import rewrites_nodes


@rewrites_nodes(
    [Elemwise],
    family="elementwise",
    purpose="speed",
    identity="f(where(c, a, b), d) = where(c, f(a, d), f(b, d))",
    requires="a, b and d have one element along an axis of c that has more",
    measured="benchmarks/NOTES.md, Marginal models",
)
def compute_before_choice(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Apply an operation to both branches of a choice, where they have fewer elements than it.

    The rate of a model with a change point is one of two numbers for each row and each possible
    change: the density is computed for both, and then chosen.

    Examples
    --------
    >>> import pytensor, pytensor.tensor as pt
    >>> late, rate = pt.matrix("late", dtype="bool"), pt.vector("rate", shape=(2,))
    >>> f = pytensor.function([late, rate], pt.log(pt.where(late, rate[0], rate[1])), mode="ONNX")
    >>> [str(x.op) for x in f.maker.fgraph.toposort() if x.outputs[0].type.ndim == 2][-1]
    'Switch'
    """
    choices = [x.owner for x in node.inputs if applies(x.owner, Switch)]
    for condition in dict.fromkeys(choice.inputs[0] for choice in choices):
        pairs = [_branches(x, condition) for x in node.inputs]
        if _is_larger(condition, [x for pair in pairs for x in pair]):
            branches = [node.op(*operands) for operands in zip(*pairs, strict=True)]
            new = switch(condition, *branches)
            copy_stack_trace(node.outputs[0], [*branches, new])
            return [node.outputs[0].type.filter_variable(new)]
    return None


def _branches(x: Variable, condition: Variable) -> Sequence[Variable]:
    """Return the branches of a choice by a condition; a variable that is none, twice."""
    is_choice = applies(x.owner, Switch) and x.owner.inputs[0] is condition
    return x.owner.inputs[1:] if is_choice else [x, x]


def _is_larger(condition: Variable, others: Sequence[Variable]) -> bool:
    """Return whether a condition has an axis along which all of other arrays have one element."""
    axes = zip(condition.type.broadcastable, *(x.type.broadcastable for x in others), strict=True)
    return any(not first and all(rest) for first, *rest in axes)
