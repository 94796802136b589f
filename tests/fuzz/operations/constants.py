"""Constants that float32 rounds to zero, to one or to infinity, in graphs that they guard."""

import numpy as np

from tests.fuzz.graphs import Graph
from tests.fuzz.operations.registry import floats, operation
from tests.fuzz.terms import Term

TINY = ("1e-300", "np.finfo('float64').tiny", "5e-324", "1e-46", "np.finfo('float32').tiny", "1e-8")
NEAR_ONE = ("(1 + 1e-8)", "(1 - 1e-12)", "(1 + 2**-52)", "(1 - 2**-53)", "(1 + 1e-7)", "(1 - 1e-8)")
LARGE = ("1e300", "1e39", "65520.0", "(2.0**24 + 1)", "np.finfo('float64').max", "1e-39")


def _constant(g: Graph, x: Term, code: str) -> str:
    """Return a number as a literal, a constant of a dtype, an array or an input."""
    kind = g.choices.below(6)
    value = np.asarray(eval(code, {"np": np}), dtype=x.dtype)
    if kind == 3:
        return f"pt.constant({code}, dtype={x.dtype!r})"
    if kind == 4:
        return f"pt.full_like({x}, {code})"
    if kind == 5:
        return g.given(x.dtype, np.full(x.shape[-1:], value)).name
    return f"np.{x.dtype}({code})" if kind == 2 else code


@operation
def guarded(g: Graph) -> str:
    x = g.term(floats(g))
    tiny = _constant(g, x, g.choices.of(TINY))
    return g.choices.of(
        (
            f"{x} / (pt.abs({x}) + {tiny})",
            f"pt.log(pt.abs({x}) + {tiny})",
            f"pt.log(pt.sigmoid({x}) + {tiny})",
            f"pt.exp({x}) - {tiny}",
            f"{tiny} + pt.tanh({x})",
            f"pt.sqrt(pt.sqr({x}) + {tiny})",
            f"{tiny} / (pt.sqr({x}) + {tiny})",
            f"pt.maximum({x}, {tiny}) - {tiny}",
            f"(pt.sin({x}) - pt.sin({x})) - {tiny}",
            f"pt.log(pt.exp({x}) / pt.exp({x}).sum() + {tiny})",
        )
    )


@operation
def scaled(g: Graph) -> str:
    x = g.term(floats(g))
    one = _constant(g, x, g.choices.of(NEAR_ONE))
    return g.choices.of(
        (
            f"pt.sin({x}) * {one} - pt.sin({x})",
            f"pt.exp({x}) / {one} - pt.exp({x})",
            f"{x} * {one} - {x}",
            f"({x} + 1) / {one} - 1",
            f"pt.tanh({x}) ** {one}",
            f"(pt.tanh({x}) * {one} + {one}) - 1",
            f"{one} / {x}",
            f"pt.sqr({x}) - {one} * pt.sqr({x})",
        )
    )


@operation
def large(g: Graph) -> str:
    x = g.term(floats(g))
    factor = _constant(g, x, g.choices.of(LARGE))
    return g.choices.of(
        (
            f"{x} * {factor}",
            f"{x} / {factor}",
            f"pt.tanh({x} * {factor})",
            f"{x} + {factor}",
            f"pt.minimum({x}, {factor})",
            f"pt.clip({x}, -{factor}, {factor})",
        )
    )


@operation
def scaled_product(g: Graph) -> str:
    x = g.term(floats(g), rank=range(2, 4))
    other = g.leaf(x.dtype, [*x.shape[:-2], x.shape[-1], 2])
    factor = g.choices.of(
        (
            *(f"pt.sqrt({x}.shape[-1])", f"{x}.shape[0]", "3.0", "0.1", f"{other}.shape[-1]"),
            *(f"pt.sqrt({x}.shape[-1]).astype({x.dtype!r})", *NEAR_ONE[:2], f"{x}.size"),
        )
    )
    symbol = g.choices.of(("/", "*"))
    return g.choices.of(
        (
            f"({x} @ {other}) {symbol} {factor}",
            f"({x} @ {other}) {symbol} {factor} + {other}[..., :1, :]",
            f"({x} {symbol} {factor}) @ {other}",
            f"{x} @ ({other} {symbol} {factor})",
            f"pt.special.softmax(({x} @ {other}) {symbol} {factor}, axis=-1)",
        )
    )


@operation
def large_integer(g: Graph) -> str:
    dtype = g.choices.of(("int64", "uint64", "int32", "uint32"))
    x = g.term((dtype,))
    limit = int(np.iinfo(dtype).max)
    constant = g.choices.of((2**60 + 1, 2**53 + 1, 6364136223846793005, 2**31 - 1, limit, 3))
    number = f"np.{dtype}({constant % (limit + 1)})"
    return g.choices.of(
        (
            f"{x} * {number}",
            f"{x} * {number} + np.{dtype}(1442695)",
            f"({x} * {number}).sum()",
            f"{number} * {x} * {number}",
            f"{x} * {number} - {x}",
            f"({x} + {x}) * {number}",
            f"pt.cumsum({x} * {number})",
        )
    )
