"""Reductions and cumulative operations."""

import numpy as np

from tests.dispatch.values import DTYPES, NUMBERS
from tests.fuzz.graphs import Graph
from tests.fuzz.operations.registry import floats, operation

NARROW = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "uint64", "float16")


@operation
def reduction(g: Graph) -> str:
    x = g.term()
    name = g.choices.of(("sum", "max", "min", "prod", "mean"))
    keepdims = ", keepdims=True" if g.choices.one_in(3) else ""
    return f"pt.{name}({x}, axis={g.axes(x)}{keepdims})"


@operation
def statistic(g: Graph) -> str:
    x = g.term(floats(g))
    name = g.choices.of(("var", "std", "logsumexp", "ptp", "median"))
    axis = g.axis(x) if x.ndim else None
    return f"pt.{name}({x}, axis={axis})"


@operation
def typed_sum(g: Graph) -> str:
    x = g.term()
    dtype = g.choices.of(("float64", "int64", x.dtype, "float32", "int8", "uint16"))
    return f"pt.{g.choices.of(('sum', 'prod'))}({x}, axis={g.axes(x)}, dtype={dtype!r})"


@operation
def logical_reduction(g: Graph) -> str:
    x = g.term(exact=True)
    return f"pt.{g.choices.of(('any', 'all'))}({x}, axis={g.axes(x)})"


@operation
def arg_extremum(g: Graph) -> str:
    x = g.term(exact=True)
    return f"pt.{g.choices.of(('argmax', 'argmin'))}({x}, axis={g.axes(x)})"


@operation
def max_and_argmax(g: Graph) -> str:
    x = g.term(exact=True, rank=range(1, 5))
    return f"pt.max_and_argmax({x}, axis={g.axis(x)})"


@operation
def cumulative(g: Graph) -> str:
    x = g.term(NARROW if g.choices.one_in(3) else DTYPES)
    axis = g.axis(x) if x.ndim and not g.choices.one_in(3) else None
    return f"pt.{g.choices.of(('cumsum', 'cumprod'))}({x}, axis={axis})"


@operation
def long_sum(g: Graph) -> str | None:
    """Add up numbers that are alike, so that errors of an accumulator do not cancel."""
    if g.long_inputs or not g.choices.one_in(4):
        return None
    rows, length = g.choices.of(((1, 100_000), (1, 1_000_000), (3, 200_000), (2, 70_000)))
    rng = np.random.default_rng(g.choices.below(256))
    period = rng.uniform(0.05, 0.15, size=64)
    dtype = "float16" if g.choices.one_in(8) else "float32"
    x = g.given(dtype, np.resize(period, (rows, length) if rows > 1 else (length,)))
    axis = "None" if rows == 1 else g.choices.of(("1", "0", "None", "(0, 1)"))
    name = g.choices.of(("sum", "mean", "logsumexp", "var"))
    return f"pt.{name}({x}, axis={axis}).flatten()[:5]"


@operation
def difference(g: Graph) -> str:
    x = g.term(NUMBERS, rank=range(1, 5))
    return f"pt.diff({x}, axis={g.axis(x)})"


@operation
def softmax(g: Graph) -> str | None:
    x = g.term(floats(g), rank=range(1, 5))
    if x.value.size == 0:
        return None  # PyTensor's Python implementation fails, its others and ONNX do not.
    axis = "None" if g.choices.one_in(4) else g.axis(x)
    return f"pt.special.{g.choices.of(('softmax', 'log_softmax'))}({x}, axis={axis})"
