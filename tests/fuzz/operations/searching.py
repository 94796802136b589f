"""Sorting, searching and counting."""

import numpy as np

from tests.dispatch.values import INTEGERS, NUMBERS
from tests.fuzz.graphs import Graph
from tests.fuzz.operations.registry import operation


@operation
def sort(g: Graph) -> str:
    x = g.term(rank=range(1, 4), where=lambda t: t.dtype != "bool")
    axis = "None" if g.choices.one_in(4) else g.axis(x)
    # Of equal numbers, NumPy's quicksort gives the gradients in an order of its own.
    return f"pt.sort({x}, axis={axis}, kind='stable')"


@operation
def argsort(g: Graph) -> str:
    x = g.term(NUMBERS, rank=range(1, 4), exact=True)
    return f"pt.argsort({x}, axis={g.axis(x)}, kind='stable')"


@operation
def unique(g: Graph) -> str:
    x = g.term(NUMBERS, exact=True, rank=range(1, 4))
    options = ("", ", return_counts=True", ", return_inverse=True", ", return_index=True")
    return f"pt.unique({x}{g.choices.of(options)})"


@operation
def searchsorted(g: Graph) -> str:
    x = g.term(("float64", "int64", "float32"), rank=range(1, 2), exact=True)
    v = g.term((x.dtype,), exact=True)
    return f"pt.searchsorted(pt.sort({x}), {v}, side={g.choices.of(('left', 'right'))!r})"


@operation
def nonzero(g: Graph) -> str:
    x = g.term(exact=True, rank=range(1, 4))
    return g.choices.of((f"pt.nonzero({x})", f"pt.flatnonzero({x})", f"pt.nonzero_values({x})"))


@operation
def bincount(g: Graph) -> str | None:
    x = g.term(INTEGERS, rank=range(1, 2))
    if np.any(np.abs(x.value - 5.0) > 5):
        return None
    return f"pt.bincount({x})"


@operation
def choose(g: Graph) -> str:
    x = g.term()
    index = g.given("int64", (np.arange(x.value.size) % 2).reshape(x.shape))
    return f"pt.choose({index}, pt.stack([{x}, {x} * 2]))"


@operation
def flat_index(g: Graph) -> str:
    x = g.term(INTEGERS, exact=True, where=lambda t: bool(np.all((t.value >= 0) & (t.value < 6))))
    m, n = g.whole(2), g.whole(3)
    if g.choices.below(2):
        return f"pt.unravel_index({x}, ({m}, {n}))"
    return f"pt.ravel_multi_index(pt.unravel_index({x}, ({m}, {n})), ({m}, {n}))"
