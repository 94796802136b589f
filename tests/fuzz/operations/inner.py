"""Graphs within graphs, checks and gradients."""

import numpy as np

from tests.fuzz.graphs import Graph
from tests.fuzz.operations.registry import WIDE, operation


@operation
def inner_graph(g: Graph) -> str:
    x = g.term(WIDE)
    y = g.partner(x, WIDE)
    body = g.choices.of(
        (
            "[pt.tanh(a) * b]",
            "[a + b, a * 2]",
            "[pt.exp(a).sum() - b]",
            "[pt.maximum(a, b), b.sum()]",
        )
    )
    return f"(lambda a, b: OpFromGraph([a, b], {body}))({x}.type(), {y}.type())({x}, {y})"


@operation
def check(g: Graph) -> str:
    x = g.term(rank=range(1, 4))
    return f"pytensor.raise_op.Assert('size')({x}, pt.eq({x}.shape[0], {x.shape[0]}))"


def has_gradients(g: Graph) -> bool:
    """Return whether gradients of results can be compared, and are not too many."""
    # docs/project/limits.md: the gradient of a maximum pool is NaN beside NaN.
    is_pool_of_nan = bool(g.evaluation.not_finite) and any("max_pool" in n.code for n in g.lines)
    return not is_pool_of_nan and sum("pt.grad" in line.code for line in g.lines) <= 1


@operation
def gradient(g: Graph) -> str | None:
    if not has_gradients(g):
        return None
    cost = g.term(WIDE, where=lambda t: bool(np.all(np.isfinite(t.value))))
    names = [t for t in g.terms if t.is_float and t.dtype != "float16"]
    leaves = [t for t in names if t.variable.owner is None and hasattr(t.variable, "get_value")]
    leaves += [t for t in names if t in g.inputs]
    if not leaves:
        return None
    wrt = g.choices.some(leaves)[:3]
    given = ", ".join(map(str, wrt))
    return f"pt.grad({cost}.sum(), [{given}], disconnected_inputs='ignore')"


@operation
def weighted_gradient(g: Graph) -> str | None:
    x = g.term(WIDE, where=lambda t: t in g.inputs)
    y = g.term(WIDE, rank=range(1, 5))
    if x not in g.inputs or not has_gradients(g):
        return None
    weights = g.leaf("float64", y.shape, [size == 1 for size in y.static])
    return f"pt.grad(({y} * {weights}).sum(), {x}, disconnected_inputs='ignore')"
