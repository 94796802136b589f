"""Elementwise operations."""

import numpy as np
import pytensor.tensor as pt
from pytensor.scalar.basic import upcast

from tests.dispatch.values import DISCRETE, DTYPES, FLOATS, INTEGERS, NUMBERS
from tests.fuzz.graphs import Graph
from tests.fuzz.operations.registry import WIDE, floats, operation
from tests.operations import drawn_by_fuzzer


@operation
def exact_unary(g: Graph) -> str:
    record = g.choices.of(drawn_by_fuzzer("exact"))
    return f"pt.{record}({g.term(record.dtypes)})"


@operation
def copy(g: Graph) -> str:
    return f"pt.tensor_copy({g.term()})"


@operation
def rounding_unary(g: Graph) -> str:
    record = g.choices.of(drawn_by_fuzzer("rounding"))
    return f"pt.{record}({g.term(record.dtypes, exact=True)})"


@operation
def smooth_unary(g: Graph) -> str:
    record = g.choices.of(drawn_by_fuzzer("smooth"))
    module = "pt" if hasattr(pt, record.name) else "pytensor_onnx"
    return f"{module}.{record}({g.term(NUMBERS if g.choices.one_in(6) else floats(g))})"


@operation
def degrees(g: Graph) -> str:
    return f"pt.deg2rad({g.term(floats(g))})"


@operation
def arithmetic(g: Graph) -> str:
    x = g.term(DTYPES if g.choices.one_in(3) else FLOATS)
    y = g.partner(x, DTYPES if g.choices.one_in(3) else (x.dtype,))
    symbol = g.choices.of(("+", "*", "-", "/"))
    if g.choices.one_in(4):
        x, y = y, x
    if g.choices.one_in(4):
        return f"{x} {symbol} {g.choices.of((2, 0.5, 1, -1, 3, 0))}"
    return f"{x} {symbol} {y}"


@operation
def integer_arithmetic(g: Graph) -> str:
    x = g.term(DISCRETE)
    y = g.partner(x, DISCRETE)
    return f"{x} {g.choices.of(('+', '*', '-', '//', '%', '/'))} {y}"


@operation
def floor_division(g: Graph) -> str:
    x = g.term(exact=True)
    return f"{x} {g.choices.of(('//', '%'))} {g.partner(x, exact=True)}"


@operation
def power(g: Graph) -> str:
    x = g.term()
    if g.choices.below(3) < 2:
        return f"{x} ** {g.choices.of((2, 3, 0.5, -1, 0, 1, 4, 1.5, -2))}"
    return f"{x} ** {g.partner(x)}"


@operation
def extremum(g: Graph) -> str:
    x = g.term()
    return f"pt.{g.choices.of(drawn_by_fuzzer('extremum'))}({x}, {g.partner(x)})"


@operation
def rectifier(g: Graph) -> str:
    x = g.term(NUMBERS)
    return g.choices.of((f"pt.maximum({x}, 0)", f"pt.minimum({x}, 1)", f"pt.maximum(0, {x})"))


@operation
def arctan2(g: Graph) -> str:
    x = g.term(WIDE)
    # The sign of a zero, which sums do not keep alike, would tell 0 from pi.
    return f"pt.arctan2(pt.switch(pt.eq({x}, 0), 1, {x}), {g.partner(x, WIDE)})"


@operation
def comparison(g: Graph) -> str:
    x = g.term(exact=True)
    name = g.choices.of(drawn_by_fuzzer("comparison"))
    if g.choices.one_in(3):
        return f"pt.{name}({x}, {g.choices.of((0, 1, 2))})"
    return f"pt.{name}({x}, {g.partner(x, exact=True)})"


@operation
def bitwise(g: Graph) -> str:
    x = g.term(DISCRETE)
    if g.choices.one_in(4):
        return f"~{x}"
    # No dtype has the bits of uint64 and of a signed integer.
    dtypes = [d for d in DISCRETE if upcast(d, x.dtype) in DISCRETE]
    return f"{x} {g.choices.of(('&', '|', '^'))} {g.partner(x, dtypes)}"


@operation
def switch(g: Graph) -> str:
    condition = g.term(("bool",) if g.choices.below(2) == 0 else DISCRETE)
    x = g.partner(condition)
    y = g.partner(x)
    return f"pt.switch({condition}, {x}, {y})"


@operation
def clip(g: Graph) -> str:
    x = g.term(NUMBERS)
    if g.choices.below(2):
        return f"pt.clip({x}, 0, 2)"
    return f"pt.clip({x}, {g.partner(x, (x.dtype,))}, {g.partner(x, (x.dtype,))})"


@operation
def fill(g: Graph) -> str:
    x = g.term()
    return f"pt.fill({x}, {g.partner(x)})"


@operation
def cast(g: Graph) -> str | None:
    dtype = g.choices.of(("float64", "float32", *DTYPES))
    x = g.term(exact=dtype in DISCRETE)
    if x.is_float and dtype in INTEGERS:
        limits = np.iinfo(dtype)
        if not np.all((x.value >= limits.min) & (x.value <= limits.max / 2)):
            return None
    return f"pt.cast({x}, {dtype!r})"


@operation
def nan_to_num(g: Graph) -> str:
    return f"pt.nan_to_num({g.term(WIDE, exact=True)})"


@operation
def logarithms(g: Graph) -> str:
    x = g.term(floats(g))
    return g.choices.of(
        (
            f"pt.logaddexp({x}, {g.partner(x, WIDE)})",
            f"pt.log(1 + pt.exp({x}))",
            f"pt.log(pt.sigmoid({x}))",
            f"pt.xlogx.xlogx(pt.abs({x}))",
            f"pt.log(1 - pt.sigmoid({x}))",
            f"pt.exp({x}) / (1 + pt.exp({x}))",
        )
    )
