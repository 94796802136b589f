"""Inputs, constants and shared variables."""

from tests.dispatch.values import DTYPES
from tests.fuzz.graphs import Graph
from tests.fuzz.operations.registry import operation


@operation
def leaf(g: Graph) -> str:
    g.leaf(g.choices.of(DTYPES), [g.choices.of((3, 2, 1, 0, 4)) for _ in range(g.choices.below(4))])
    return ""
