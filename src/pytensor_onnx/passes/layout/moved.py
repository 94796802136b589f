"""Describe operators that work on operands with permuted axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder

Perm = tuple[int, ...]
Emit = Callable[[Builder, Sequence[ir.Value | None]], ir.Value | Sequence[ir.Value]]


@dataclass
class Moved:
    """Operator that works on bases, the values before their transposition.

    Attributes
    ----------
    wanted
        For each operand the permutation of its base, None for an operand that is used unchanged.
    perms
        For each result the permutation of the emitted value, None if they are equal.
    emit
        Emits the operator for the bases.
    broadcasts
        Whether an operand may have fewer axes than the result, or sizes of one.
    stored
        Pairs of replaced and new constants.
    """

    wanted: list[Perm | None]
    perms: list[Perm | None]
    emit: Emit
    broadcasts: bool = False
    stored: list[tuple[ir.Value, ir.Value]] = field(default_factory=list)


def inverse(perm: Perm) -> Perm:
    """Return the inverse of a permutation.

    Examples
    --------
    >>> inverse((0, 2, 3, 1))
    (0, 3, 1, 2)
    """
    return tuple(perm.index(i) for i in range(len(perm)))
