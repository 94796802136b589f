"""Tests of nodes and variables, and rewrites of PyTensor run only where they hold."""

from collections.abc import Callable
from dataclasses import dataclass
from types import UnionType
from typing import Any, TypeGuard

import numpy as np
from pytensor.compile.mode import optdb
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import NodeRewriter, node_rewriter
from pytensor.graph.rewriting.db import RewriteDatabase, TopoDB
from pytensor.scalar.basic import ScalarConstant, ScalarOp
from pytensor.tensor.basic import get_underlying_scalar_constant_value
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.shape import Shape, Shape_i
from pytensor.tensor.subtensor import Subtensor
from pytensor.tensor.variable import TensorConstant

from pytensor_onnx.rules import Family, Purpose, Rule, declare, names_of

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


def scalar_op_of(op: Op) -> Op:
    """Return the scalar operation that an Op repeats for each element, or the Op itself.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> from pytensor.scalar.basic import int64
    >>> n = int64("n")
    >>> [type(scalar_op_of(x.owner.op)).__name__ for x in (n + 1, pt.lvector() + 1, pt.eye(2))]
    ['Add', 'Add', 'Eye']
    """
    scalar_op: Op = getattr(op, "scalar_op", op)
    return scalar_op


def made_by(x: Variable, kinds: type[Op] | UnionType) -> Apply | None:
    """Return the node that computes a variable by an Op of given classes, else None.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> from pytensor.tensor.basic import Alloc, Eye
    >>> made_by(pt.eye(2), Alloc | Eye).op, made_by(pt.vector("x"), Eye)
    (Eye(dtype=float64), None)
    """
    return x.owner if x.owner is not None and isinstance(x.owner.op, kinds) else None


def only_client(fgraph: FunctionGraph, x: Variable) -> Apply | None:
    """Return the only node that reads a variable, once; None if there are more or none.

    A result of the graph is read by a node of `Output`.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> x, y = pt.vectors("x", "y")
    >>> graph = FunctionGraph([x, y], [x + y * y], clone=False)
    >>> str(only_client(graph, x).op), only_client(graph, y)
    ('Add', None)
    """
    clients = fgraph.clients.get(x, ())
    return clients[0][0] if len(clients) == 1 else None


def are_constants(node: Apply) -> bool:
    """Return whether all operands of a node are constants.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> are_constants(pt.eye(2).owner), are_constants((pt.vector("x") + 1).owner)
    (True, False)
    """
    # First the cheap half: PyTensor's classes are abstract, whose `isinstance` takes a microsecond.
    return all(x.owner is None and isinstance(x, Constant) for x in node.inputs)


def number_of(x: Variable) -> Any:
    """Return the only element of a constant, of any rank and with added axes, else None.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> number_of(pt.constant([2.5])[None]), number_of(pt.scalar("x"))
    (2.5, None)
    """
    while (added := made_by(x, DimShuffle)) is not None:
        (x,) = added.inputs
    is_number = isinstance(x, TensorConstant | ScalarConstant) and x.data.size == 1
    return x.data.item() if is_number else None


def integer_of(x: Any) -> int | None:
    """Return a constant size, position or step as an integer; None if it is no constant.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> integer_of(pt.constant(-1)), integer_of(pt.iscalar("n")), integer_of(None)
    (-1, None, None)
    """
    return int(x.data) if isinstance(x, Constant) else None


def filling_of(x: Variable) -> Any:
    """Return the number that all elements of an array are known to be, else None.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> x = pt.vector("x")
    >>> filling_of(pt.zeros_like(x)), filling_of(pt.alloc(2, x.shape[0])), filling_of(x)
    (0.0, 2, None)
    """
    value = get_underlying_scalar_constant_value(x, raise_not_constant=False)
    return None if isinstance(value, Variable) else np.asarray(value).item()


def size_of(x: Variable) -> tuple[Variable, int] | None:
    """Return the array and the axis whose size a variable is, else None.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> x = pt.matrix("x")
    >>> size_of(x.shape[-1]), size_of(Shape_i(0)(x)), size_of(x.shape[0] + 1)
    ((x, 1), (x, 0), None)
    """
    if (size := made_by(x, Shape_i)) is not None:
        return size.inputs[0], size.op.i
    read = made_by(x, Subtensor)
    if read is None or read.op.idx_list != (0,):
        return None
    shape, axis = made_by(read.inputs[0], Shape), integer_of(read.inputs[1])
    if shape is None or axis is None:
        return None
    (array,) = shape.inputs
    rank = array.type.ndim
    return (array, axis % rank) if -rank <= axis < rank else None


def reversed_by(node: Apply | None) -> Variable | None:
    """Return s if a node is the slice ``s[::-1]`` of the first axis, else None.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> x = pt.matrix("x")
    >>> reversed_by(x[::-1].owner), reversed_by(x[::2].owner), reversed_by(x.owner)
    (x, None, None)
    """
    if node is None or not isinstance(node.op, Subtensor):
        return None
    if node.op.idx_list != (slice(None, None, 0),) or integer_of(node.inputs[1]) != -1:
        return None
    array: Variable = node.inputs[0]
    return array


def without_leading_axes(x: Variable) -> Variable:
    """Return the array to which leading axes are added, or the array itself.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> x = pt.vector("x")
    >>> without_leading_axes(x[None]), without_leading_axes(x)
    (x, x)
    """
    while (added := made_by(x, DimShuffle)) is not None and added.op.is_left_expand_dims:
        (x,) = added.inputs
    return x


GUARDED = "guarded_for_onnx"
"""Tag of PyTensor's own, which the query leaves out."""
UNDER_CONDITION = "under_condition_for_onnx"
"""Tag of the rewrites in their place."""
STAGES = ("useless", "canonicalize", "stabilize", "specialize", "uncanonicalize")

Condition = Callable[[Apply], bool]


@dataclass(frozen=True)
class Guard:
    """A rewrite of PyTensor with the condition under which it is correct.

    Attributes
    ----------
    rewrite
        Rewrite of PyTensor.
    is_right
        Condition on a node under which the rewrite is correct.
    rule
        Its entry in the ledger.
    """

    rewrite: NodeRewriter
    is_right: Condition
    rule: Rule

    def guarded(self, rewrite: NodeRewriter | None = None) -> NodeRewriter:
        """Return the rewrite under its condition, also where a stage runs an own copy of it."""
        rewrite, is_right, rule = rewrite or self.rewrite, self.is_right, self.rule

        @node_rewriter(rewrite.tracks())
        def rewrite_if_right(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
            if rule.is_off or is_right(node):
                return quietly(rewrite, fgraph, node)
            if rule.is_recorded and _would_change(rewrite, fgraph, node):
                rule.note()
            return None

        rewrite_if_right.__name__ = rule.name
        rewrite_if_right.rule = rule
        return rewrite_if_right


def guard(
    rewrite: NodeRewriter,
    is_right: Condition,
    *,
    family: Family,
    purpose: Purpose,
    identity: str,
    requires: str,
    measured: str = "",
) -> Guard:
    """Declare a condition on a rewrite of PyTensor.

    Parameters
    ----------
    rewrite
        Rewrite of PyTensor.
    is_right
        Condition on a node under which the rewrite is correct.
    family, purpose, identity, requires, measured
        Fields of the `Rule`: the equation is PyTensor's, `requires` the condition.
    """
    rule = Rule(
        f"guarded_{rewrite}",
        "guard",
        family,
        purpose,
        identity,
        requires,
        begins_at=names_of(rewrite.tracks()),
        measured=measured,
    )
    return Guard(rewrite, is_right, declare(rule))


def quietly(rewrite: NodeRewriter, fgraph: FunctionGraph, node: Apply) -> Any:
    """Return the replacements of a rewrite of PyTensor, whose constants may be infinite or NaN.

    NumPy warns of such arithmetic, and PyTensor gives the rewrite up where warnings are errors.
    """
    with np.errstate(all="ignore"):
        return rewrite.transform(fgraph, node)


def _would_change(rewrite: NodeRewriter, fgraph: FunctionGraph, node: Apply) -> bool:
    """Return whether PyTensor's rewrite would replace a node, or fail."""
    try:
        return bool(quietly(rewrite, fgraph, node))
    except Exception:
        return True


def replace_by_guarded(guard: Guard) -> None:
    """Register a rewrite of PyTensor under its condition, in place of PyTensor's own."""
    for stage in STAGES:
        rewrites = rewrites_of(stage)
        try:
            own = rewrites[str(guard.rewrite)]
        except KeyError:
            continue
        rewrites.add_tags(own.name, GUARDED)
        replacement = guard.guarded(own)
        tags = ("onnx", UNDER_CONDITION)
        rewrites.register(replacement.__name__, replacement, *tags, use_db_name_as_tag=False)


def rewrites_of(stage: str) -> RewriteDatabase:
    """Return the database of the node rewrites of a stage."""
    database = optdb[stage]
    return database.db if isinstance(database, TopoDB) else database
