"""Groups of operators that stand for one operation of PyTensor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytensor.scalar as ps
import pytensor.tensor as pt
from pytensor.compile.rewriting import inline_ofg_node
from pytensor.graph.basic import Variable
from pytensor.tensor.basic import Alloc, Join, MakeVector
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.math import Argmax, Dot, Max
from pytensor.tensor.shape import Reshape, Shape
from pytensor.tensor.subtensor import Subtensor
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.importing.registry import known_values
from pytensor_onnx.ops.networks.kept_operator import KeptOperator
from pytensor_onnx.rewriting.engine.predicates import elementwise


def operands_of(variable: Variable | None, op_type: Any) -> list[Any] | None:
    """Return the operands of the operation of a type that computes a variable, or None."""
    node = getattr(variable, "owner", None)
    return list(node.inputs) if node is not None and isinstance(node.op, op_type) else None


def simplified(
    operator: str, operands: Sequence[Any], attributes: Mapping[str, Any]
) -> TensorVariable | None:
    """Return the operation that a group of operators ending in one stands for, or None.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> is_large = pt.vector("x") > 1
    >>> largest = pt.max(is_large.astype("int32"))
    >>> print(simplified("Greater", [largest, pt.constant(0, dtype="int32")], {}).owner.op)
    Any{axes=None}
    """
    pattern = _PATTERNS.get(operator)
    return pattern(*operands, **attributes) if pattern else None


def _where(condition: Any, a: Any, b: Any) -> TensorVariable | None:
    """Return the position of the first maximum, or a product, without its guard.

    NaN is PyTensor's largest number, and its product along an axis of no elements is zero.
    """
    a, b = _as_argmax(a), _as_argmax(b)
    for_nan, for_numbers = operands_of(a, Argmax), operands_of(b, Argmax)
    if for_nan is not None and for_numbers is not None:
        mask, x = operands_of(for_nan[0], Elemwise), for_numbers[0]
        is_guard = a.owner.op == b.owner.op and elementwise(for_nan[0], ps.Cast)
        if is_guard and mask is not None and elementwise(mask[0], ps.IsNan):
            return b if mask[0].owner.inputs[0] is x else None
        return None
    factors = operands_of(b, Dot | Blockwise)
    if factors is None or not elementwise(condition, ps.EQ):
        return None
    is_product = isinstance(b.owner.op, Dot) or isinstance(b.owner.op.core_op, Dot)
    size, zero = condition.owner.inputs
    while size.owner is not None and isinstance(size.owner.op, DimShuffle | MakeVector):
        size = size.owner.inputs[0]
    of_shape = operands_of(size, Subtensor)
    shape = operands_of(of_shape[0], Shape) if of_shape else None
    filler = before_broadcast(a)
    are_zero = all(
        value is not None and not value.any() for value in map(known_values.known, (zero, filler))
    )
    return b if is_product and are_zero and shape is not None and shape[0] in factors else None


def _as_argmax(x: Any) -> Any:
    """Return the position of a maximum as PyTensor's operation, other variables as they are."""
    op = getattr(x.owner, "op", None)
    if not isinstance(op, KeptOperator) or op.operator != "ArgMax":
        return x
    (result,) = inline_ofg_node(x.owner)
    return x if operands_of(result, Argmax) is None else result


def _extremum_of_bool(x: Any, is_negated: bool = False) -> TensorVariable | None:
    """Return whether any, or all, elements are true, for an extremum of these as integers."""
    operands = operands_of(x, Max | KeptOperator)
    if operands is None or not elementwise(operands[0], ps.Cast):
        return None
    (mask,), op = operands[0].owner.inputs, x.owner.op
    is_minimum = isinstance(op, KeptOperator) and op.operator == "ReduceMin"
    if mask.type.dtype != "bool" or not (isinstance(op, Max) or (is_minimum and x.type.ndim == 0)):
        return None
    mask = pt.invert(mask) if is_negated else mask
    axis = None if is_minimum else op.axis
    return (pt.all if is_minimum is not is_negated else pt.any)(mask, axis=axis)


def _cast(x: Any, *, to: int, **_: Any) -> TensorVariable | None:
    return _extremum_of_bool(x) if to == _BOOL else None


def _greater(x: Any, y: Any) -> TensorVariable | None:
    return _extremum_of_bool(x) if _is_zero(y) else None


def _less_or_equal(x: Any, y: Any) -> TensorVariable | None:
    return _extremum_of_bool(x, is_negated=True) if _is_zero(y) else None


def _is_zero(x: Variable) -> bool:
    value = known_values.known(x)
    return value is not None and value.ndim == 0 and value == 0


_BOOL = 9
_PATTERNS: dict[str, Callable[..., TensorVariable | None]] = {
    "Cast": _cast,
    "Greater": _greater,
    "LessOrEqual": _less_or_equal,
    "Where": _where,
}


def columns(indices: TensorVariable, depth: int) -> list[TensorVariable]:
    """Return the elements of a last axis; the parts themselves, if it joins them.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> rows, places = pt.lvectors("rows", "places")
    >>> columns(pt.stack([rows, places], axis=-1), 2)
    [rows, places]
    """
    last = indices.type.ndim - 1
    joined = operands_of(indices, Join)
    is_last = indices.owner is not None and getattr(indices.owner.op, "axis", None) == last
    if joined is not None and is_last and all(part.type.shape[-1] == 1 for part in joined):
        return [_without_last_axis(part) for part in joined]
    if depth == 1:
        return [_without_last_axis(indices)]
    return [indices[..., i] for i in range(depth)]


def _without_last_axis(x: TensorVariable) -> TensorVariable:
    op = getattr(x.owner, "op", None)
    if isinstance(op, DimShuffle) and op.new_order[-1] == "x":
        (source,) = x.owner.inputs
        order = op.new_order[:-1]
        return source if order == tuple(range(source.type.ndim)) else source.dimshuffle(order)
    return x[..., 0]


def before_broadcast(x: TensorVariable) -> TensorVariable:
    """Return an array whose broadcast another one is, where that is known.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> x, n = pt.dscalar("x"), pt.lscalar("n")
    >>> before_broadcast(pt.broadcast_to(x, (n, 2)).reshape((-1,)))
    x
    """
    operands = operands_of(x, Alloc)
    if operands is not None:
        return before_broadcast(operands[0])
    operands = operands_of(x, (Reshape, DimShuffle))
    if operands is not None:
        inner = before_broadcast(operands[0])
        return inner if inner.type.ndim == 0 else x
    return x
