"""Sizes of axes as sums of products of the open sizes of inputs.

Equal sizes are equal terms, also where they are read from different arrays, so that the quotient of
two products of sizes is known where their factors cancel.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pytensor.scalar as ps
from pytensor.conditional.op import IfElse
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.traversal import walk_toposort
from pytensor.scan.op import Scan
from pytensor.tensor.basic import MakeVector, ScalarFromTensor, TensorFromScalar, constant
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.shape import Reshape, Shape, Shape_i, SpecifyShape
from pytensor.tensor.subtensor import Subtensor, indices_from_subtensor
from pytensor.tensor.type import TensorType

from pytensor_onnx.graph.dims import Dim, Dims, product_dim, quotient_dim, sum_dim

_SIZES: WeakKeyDictionary[Variable, Dims] = WeakKeyDictionary()
_VALUES: WeakKeyDictionary[Variable, Dim] = WeakKeyDictionary()
_NUMBER = count()
_UNKNOWN = (IfElse, RandomVariable, Scan)
"""Operations whose sizes are terms of their own."""


def name_axes(inputs: Sequence[tuple[Variable, Sequence[str | None]]]) -> None:
    """Give the open axes of inputs one term for each name.

    A name that one input has twice stands for different sizes, as some converters name all open
    axes alike.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> x, y = pt.matrix("x"), pt.matrix("y")
    >>> name_axes([(x, ["n", None]), (y, ["m", "n"])])
    >>> axis_sizes(x)[0] == axis_sizes(y)[1], axis_sizes(x)[1] == axis_sizes(y)[0]
    (True, False)
    """
    repeated = {n for _, names in inputs for n in names if n and list(names).count(n) > 1}
    terms: dict[str, str] = {}
    for variable, names in inputs:
        _SIZES[variable] = tuple(
            size
            if size is not None
            else terms.setdefault(name, _term())
            if name and name not in repeated
            else _term()
            for name, size in zip(names, variable.type.shape, strict=True)
        )


def axis_sizes(x: Variable) -> Dims:
    """Return the sizes of an array as ints and terms.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> x = pt.tensor("x", shape=(None, None, 4))
    >>> y = pt.exp(x.reshape((x.shape[0], -1, 2))).dimshuffle(1, 0, 2)
    >>> axis_sizes(y)[1] == axis_sizes(x)[0]
    True
    """
    _settle(x)
    return _sizes(x)


def value_of(number: int | Variable) -> Dim:
    """Return a 0-d integer as an int or term, None if it is neither.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> x = pt.matrix("x")
    >>> value_of(x.shape[0] * 2) == value_of(pt.exp(x).shape[0] * 2)
    True
    """
    if isinstance(number, int):
        return number
    _settle(number)
    return _value(number)


def quotient(whole: Sequence[Dim], parts: Sequence[Dim]) -> int | None:
    """Return the quotient of two products of sizes if it is known.

    Examples
    --------
    >>> quotient(["b", 6, "s"], ["s", 2, "b"]), quotient(["b", 6], ["s"])
    (3, None)
    """
    found = quotient_dim(whole, parts)
    return found if isinstance(found, int) else None


def _settle(x: Variable) -> None:
    """Find the sizes of all arrays that an array is computed from, and of the array."""

    def operands(variable: Variable) -> Sequence[Variable] | None:
        is_known = variable in _SIZES or variable.owner is None
        is_array = getattr(variable.type, "dtype", "int").startswith(("bool", "float"))
        if is_known or (is_array and None not in variable.type.shape):
            return None
        return variable.owner.inputs

    for variable in walk_toposort([x], operands):
        if isinstance(variable.type, TensorType):
            _sizes(variable)
            if variable.type.ndim == 0 and variable.type.dtype.startswith("int"):
                _value(variable)


def _sizes(x: Variable) -> Dims:
    found = _SIZES.get(x)
    if found is None:
        static = x.type.shape
        derived: Sequence[Dim] = static
        if None in static and x.owner is not None:
            derived = _derived(x, x.owner)
        found = tuple(
            own if own is not None else other if other is not None else _term()
            for own, other in zip(static, derived, strict=True)
        )
        _SIZES[x] = found
    return found


def _term() -> str:
    return f"size{next(_NUMBER)}"


def _derived(x: Variable, node: Apply) -> Sequence[Dim]:
    """Return the sizes of a result from those of the operands."""
    match node.op:
        case Elemwise():
            return [_of_broadcast(node, axis) for axis in range(x.type.ndim)]
        case DimShuffle(new_order=order):
            sizes = _sizes(node.inputs[0])
            return [1 if axis == "x" else sizes[axis] for axis in order]
        case SpecifyShape():
            return _sizes(node.inputs[0])
        case Reshape():
            return _of_reshape(node)
        case _:
            return _inferred(x, node)


def _of_broadcast(node: Apply, axis: int) -> Dim:
    """Return the size of an operand that does not broadcast."""
    operands = [v for v in node.inputs if v.type.shape[axis] != 1]
    return _sizes(operands[0])[axis] if operands else 1


def _of_reshape(node: Apply) -> Sequence[Dim]:
    x, shape = node.inputs
    if isinstance(shape, Constant):
        wanted: list[Dim] = [int(n) for n in shape.data]
    elif shape.owner is not None and isinstance(shape.owner.op, MakeVector):
        wanted = [_value(v) for v in shape.owner.inputs]
    else:
        return node.outputs[0].type.shape
    if -1 in wanted:
        rest = [n for n in wanted if n != -1]
        wanted = [quotient_dim(_sizes(x), rest) if n == -1 else n for n in wanted]
    return wanted


def _inferred(x: Variable, node: Apply) -> Sequence[Dim]:
    """Return the sizes that the Op infers."""
    unknown = x.type.shape
    if isinstance(node.op, _UNKNOWN) or not hasattr(node.op, "infer_shape"):
        return unknown
    shapes = [
        tuple(v.shape[a] if n is None else constant(n) for a, n in enumerate(v.type.shape))
        if isinstance(v.type, TensorType)
        else None
        for v in node.inputs
    ]
    try:
        found: Any = node.op.infer_shape(node, shapes)[node.outputs.index(x)]
    except Exception:
        # An Op of anyone, whose inference may refuse in any way.
        return unknown
    return [_value(v) if isinstance(v, Variable) else int(v) for v in found]


def _value(number: Variable) -> Dim:
    if isinstance(number, Constant):
        return int(number.data) if number.data.dtype.kind in "iu" else _term()
    found = _VALUES.get(number)
    if found is None:
        found = _computed(number)
        _VALUES[number] = found = _term() if found is None else found
    return found


def _computed(number: Variable) -> Dim:
    """Return the value of a number that is read from shapes, None for others."""
    node = number.owner
    if node is None:
        return None
    match node.op:
        case Shape_i(i=axis):
            return _sizes(node.inputs[0])[axis]
        case Subtensor():
            return _element_of_shape(node)
        case ScalarFromTensor() | TensorFromScalar():
            return _value(node.inputs[0])
        case Elemwise(scalar_op=ps.Cast()):
            # Narrower integers would wrap, and floats round.
            dtypes = {node.inputs[0].type.dtype, node.outputs[0].type.dtype}
            return _value(node.inputs[0]) if dtypes <= {"int32", "int64"} else None
        case Elemwise(scalar_op=ps.Add()):
            return sum_dim([_value(v) for v in node.inputs])
        case Elemwise(scalar_op=ps.Sub()):
            whole, less = map(_value, node.inputs)
            return sum_dim([whole, product_dim([-1, less])]) if isinstance(less, int) else None
        case Elemwise(scalar_op=ps.Mul()):
            return product_dim([_value(v) for v in node.inputs])
        case Elemwise(scalar_op=ps.IntDiv()):
            return quotient_dim(*([_value(v)] for v in node.inputs))
    return None


def _element_of_shape(node: Apply) -> Dim:
    source = node.inputs[0].owner
    if source is None or not isinstance(source.op, Shape):
        return None
    (index,) = indices_from_subtensor(node.inputs[1:], node.op.idx_list)
    index = index.data if isinstance(index, Constant) else index
    return (
        _sizes(source.inputs[0])[int(index)]
        if isinstance(index, int | np.integer | np.ndarray)
        else None
    )
