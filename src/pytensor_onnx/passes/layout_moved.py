"""How an operator works on an operand whose axes are in another order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import onnx_ir as ir

from pytensor_onnx.builder import Builder

Perm = tuple[int, ...]
Emit = Callable[[Builder, Sequence[ir.Value | None]], ir.Value | Sequence[ir.Value]]


@dataclass
class Moved:
    """An operator that works on bases: values that are transposed to give the operands.

    Attributes
    ----------
    wanted
        For each operand the permutation that makes it of its base, None where it is taken as it is.
    perms
        For each result the permutation that makes it of what is emitted, None where they are equal.
    emit
        Emits the operator for the bases.
    broadcasts
        Whether an operand may have fewer axes than the result, or sizes of one.
    stored
        Constants in the place of which others are stored, and those.
    """

    wanted: list[Perm | None]
    perms: list[Perm | None]
    emit: Emit
    broadcasts: bool = False
    stored: list[tuple[ir.Value, ir.Value]] = field(default_factory=list)


def inverse(perm: Perm) -> Perm:
    """Return the permutation that undoes another.

    Examples
    --------
    >>> inverse((0, 2, 3, 1))
    (0, 3, 1, 2)
    """
    return tuple(perm.index(i) for i in range(len(perm)))


def attributes_of(node: ir.Node) -> dict[str, Any]:
    """Return the attributes of a node by name."""
    return {name: attribute.value for name, attribute in node.attributes.items()}
