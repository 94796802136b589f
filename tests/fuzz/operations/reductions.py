"""Reductions and cumulative operations."""

from tests.dispatch.values import FLOATS, NUMBERS
from tests.fuzz.graphs import Graph
from tests.fuzz.operations.registry import WIDE, operation


@operation
def reduction(g: Graph) -> str:
    x = g.term()
    name = g.choices.of(("sum", "max", "min", "prod", "mean"))
    keepdims = ", keepdims=True" if g.choices.one_in(3) else ""
    return f"pt.{name}({x}, axis={g.axes(x)}{keepdims})"


@operation
def statistic(g: Graph) -> str:
    x = g.term(WIDE)
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
    x = g.term()
    axis = g.axis(x) if x.ndim and not g.choices.one_in(3) else None
    return f"pt.{g.choices.of(('cumsum', 'cumprod'))}({x}, axis={axis})"


@operation
def difference(g: Graph) -> str:
    x = g.term(NUMBERS, rank=range(1, 5))
    return f"pt.diff({x}, axis={g.axis(x)})"


@operation
def softmax(g: Graph) -> str | None:
    x = g.term(WIDE if g.choices.below(3) else FLOATS, rank=range(1, 5))
    if x.value.size == 0:
        return None  # PyTensor's Python implementation fails, its others and ONNX do not.
    axis = "None" if g.choices.one_in(4) else g.axis(x)
    return f"pt.special.{g.choices.of(('softmax', 'log_softmax'))}({x}, axis={axis})"
