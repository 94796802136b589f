"""Tests of nodes and variables that rewrites of all families share."""

from types import UnionType
from typing import Any, TypeGuard

from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.scalar.basic import ScalarConstant, ScalarOp
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.variable import TensorConstant

Kinds = type[ScalarOp] | UnionType
"""A class of scalar operations, or a union of such classes."""


def applies(node: Apply | None, kinds: Kinds = ScalarOp) -> TypeGuard[Apply]:
    """Return whether a node applies a scalar operation of given kinds elementwise.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> from pytensor.scalar.basic import Add, Mul
    >>> x = pt.vector("x")
    >>> applies((x + 1).owner, Add | Mul), applies(pt.sum(x).owner, Add), applies(x.owner)
    (True, False, False)
    """
    return (
        node is not None and isinstance(node.op, Elemwise) and isinstance(node.op.scalar_op, kinds)
    )


def elementwise(x: Variable, kinds: Kinds = ScalarOp) -> Apply | None:
    """Return the node that computes a variable elementwise by given scalar operations, else None.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> from pytensor.scalar.basic import Add, Mul
    >>> x = pt.vector("x")
    >>> str(elementwise(x * x, Mul).op), elementwise(x * x, Add)
    ('Mul', None)
    """
    return x.owner if applies(x.owner, kinds) else None


def number_of(x: Variable) -> Any:
    """Return the only element of a constant, of any rank and with added axes, else None.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> number_of(pt.constant([2.5])[None]), number_of(pt.scalar("x"))
    (2.5, None)
    """
    while x.owner is not None and isinstance(x.owner.op, DimShuffle):
        (x,) = x.owner.inputs
    is_number = isinstance(x, TensorConstant | ScalarConstant) and x.data.size == 1
    return x.data.item() if is_number else None


def is_integer(x: Variable, number: int) -> bool:
    """Return whether a size, position or step is a constant of a given value.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> is_integer(pt.constant(-1), -1), is_integer(pt.iscalar("n"), -1)
    (True, False)
    """
    return isinstance(x, Constant) and int(x.data) == number
