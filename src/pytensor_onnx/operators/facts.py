"""The record of an operator, and the kinds of its rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import onnx_ir as ir

from pytensor_onnx.operators.dims import Dim, Dims, dims_of

Operands = Sequence[ir.Value | None]
Attributes = Mapping[str, Any]
Interval = tuple[int, int]
ShapeRule = Callable[[Operands, Attributes], Dims | None]
Shapes = Sequence[Dims | None]
Pairs = Iterator[tuple[Dim, Dim]]
EqualRule = Callable[[Shapes, Attributes], Pairs]
BoundsRule = Callable[[ir.Node, Sequence[Interval]], Interval]

NONE, FIRST, ALL = slice(0), slice(1), slice(None)
"""Operands on which a property of the results depends."""

LARGEST_SIZE = 2**29
"""Largest size and position: two arrays of 4 bytes an element fill the memory of WebAssembly."""

UNKNOWN: Interval = (-(2**63), 2**63 - 1)
SIZE: Interval = (0, LARGEST_SIZE)


@dataclass(frozen=True, kw_only=True)
class Operator:
    """The facts of an operator of ONNX: shape rule, bounds, preserved properties and cost.

    Rules take the attributes of a node with the schema's defaults. A property that depends on some
    operands names them by a slice: empty if it always holds, None if nothing is known.

    Attributes
    ----------
    shape
        Dimensions of the first result.
    equal
        Pairs of dimensions that a run refuses if they differ. Axes that broadcast have none.
    bounds
        Bounds of the result, from those of the operands of its dtype.
    positions
        Results that are sizes or positions, as a slice of all results.
    moves
        Operands whose elements the results are: the operator computes nothing.
    numbers
        Operands that have NaN wherever results have NaN.
    finite
        Operands that have NaN or infinities wherever results have them.
    sign
        Operands that are negative wherever results are. The root of minus zero is minus zero.
    cost
        Kind of the work for an element: none for a view, a copy, a transcendental function, or
        some arithmetic.
    is_sized_by_values
        Whether sizes of results may depend on values.
    is_random
        Whether equal operands may give different results.
    has_bodies
        Whether there are graphs among the attributes.
    """

    shape: ShapeRule | None = None
    equal: EqualRule | None = None
    bounds: BoundsRule | None = None
    positions: slice = NONE
    moves: slice | None = None
    numbers: slice | None = None
    finite: slice | None = None
    sign: slice | None = None
    cost: Literal["view", "copy", "function", "arithmetic"] = "arithmetic"
    is_sized_by_values: bool = False
    is_random: bool = False
    has_bodies: bool = False


def moving(shape: ShapeRule | None = None, operands: slice = FIRST, **facts: Any) -> Operator:
    """Return an operator whose results have the elements of some operands, and their properties."""
    kept = dict.fromkeys(("moves", "numbers", "finite", "sign"), operands)
    return Operator(shape=shape, **{"cost": "copy", **kept, **facts})


def same_as_first(inputs: Operands, attributes: Attributes) -> Dims | None:
    """Return the dimensions of the first operand."""
    return dims_of(inputs[0])


def by_letters(*operands: str) -> EqualRule:
    """Return the rule that axes of one letter have equal sizes; a digit is a size, a point any.

    Examples
    --------
    >>> list(by_letters("n.4", "n")([("a", "b", "c"), ("d",)], {}))
    [('c', 4), ('a', 'd')]
    """

    def rule(inputs: Shapes, attributes: Attributes) -> Pairs:
        first: dict[str, Dim] = {str(size): size for size in range(10)}
        for letters, dims in zip(operands, inputs, strict=False):
            for letter, dim in zip(letters, dims or (), strict=False):
                if letter in first:
                    yield (first[letter], dim) if not letter.isdigit() else (dim, first[letter])
                elif letter != ".":
                    first[letter] = dim

    return rule


def same_shapes(first: int, second: int) -> EqualRule:
    """Return the rule that two operands have equal shapes."""

    def rule(inputs: Shapes, attributes: Attributes) -> Pairs:
        yield from zip(inputs[first] or (), inputs[second] or (), strict=False)

    return rule
