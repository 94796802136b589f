"""Sizes of axes as sums of products of the open sizes of inputs.

Equal sizes are equal terms, also where they are read from different arrays, so that the quotient of
two products of sizes is known where their factors cancel.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, count
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import onnx_ir as ir
import pytensor.scalar as ps
from pytensor.conditional.op import IfElse
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.traversal import walk_toposort
from pytensor.raise_op import CheckAndRaise
from pytensor.scan.op import Scan
from pytensor.tensor.basic import (
    Alloc,
    Join,
    MakeVector,
    ScalarFromTensor,
    Split,
    TensorFromScalar,
    constant,
)
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.einsum import Einsum
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.math import Argmax, Dot
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.shape import Reshape, Shape, Shape_i, SpecifyShape
from pytensor.tensor.special import Softmax
from pytensor.tensor.subtensor import Subtensor, indices_from_subtensor
from pytensor.tensor.type import TensorType

from pytensor_onnx.operators.dims import (
    ComputedSize,
    Dim,
    Dims,
    product_dim,
    quotient_dim,
    replace_parts,
    slice_dim,
    sum_dim,
)
from pytensor_onnx.operators.entries import output_dims
from pytensor_onnx.ops.networks.conv_ops import Conv, ConvTranspose
from pytensor_onnx.ops.networks.kept_operator import KeptOperator
from pytensor_onnx.ops.networks.network_op import KeepsShape

_SIZES: WeakKeyDictionary[Variable, Dims] = WeakKeyDictionary()
_VALUES: WeakKeyDictionary[Variable, Dim] = WeakKeyDictionary()
_NUMBER = count()
_UNKNOWN = (IfElse, RandomVariable, Scan)
"""Operations whose sizes are terms of their own."""
_RULED = frozenset(
    {"AveragePool", "Conv", "ConvInteger", "MatMulInteger", "MaxPool", "QLinearConv"}
)
"""Operators whose rules hold for all versions."""
_ELEMENTS: WeakKeyDictionary[Variable, Dims] = WeakKeyDictionary()
_INTEGERS = ("int32", "int64")
_LONGEST = 16
"""Elements of a vector of sizes."""
_END = 2**63 - 1
"""Bound of a slice to the end."""


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
        case SpecifyShape() | CheckAndRaise() | Softmax() | KeepsShape():
            return _sizes(node.inputs[0])
        case Reshape():
            return _of_reshape(node)
        case Blockwise(core_op=Dot(), signature="(m,n),(n,p)->(m,p)"):
            return _of_product(node)
        case CAReduce(axis=axes) | Argmax(axis=axes):
            gone = range(node.inputs[0].type.ndim) if axes is None else axes
            return [n for axis, n in enumerate(_sizes(node.inputs[0])) if axis not in gone]
        case Dot():
            return [*_sizes(node.inputs[0])[:-1], *_sizes(node.inputs[1])[1:]]
        case Join():
            return _of_join(node)
        case Split():
            return _of_split(x, node)
        case Alloc():
            return [_value(v) if n is None else n for v, n in _lengths(x, node)]
        case Subtensor():
            return _of_slices(node)
        case Conv() | ConvTranspose():
            operands = [_value_with_shape(v) for v in node.inputs]
            attributes = node.op.attributes()
            return output_dims(type(node.op).__name__, operands, attributes) or x.type.shape
        case KeptOperator():
            found = _of_operator(x, node)
            return _of_expression(x, node) if found is None else found
        case Einsum(subscripts=equation):
            shapes = [_sizes(v) for v in node.inputs]
            return sizes_of_letters(equation, shapes) or x.type.shape
        case _:
            return _inferred(x, node)


def _of_product(node: Apply) -> Sequence[Dim]:
    """Return the sizes of a product of stacks of matrices."""
    a, b = node.inputs
    batch = [_of_broadcast(node, axis) for axis in range(a.type.ndim - 2)]
    return [*batch, _sizes(a)[-2], _sizes(b)[-1]]


def _of_join(node: Apply) -> Sequence[Dim]:
    """Return the sizes of arrays that are joined."""
    axis, *parts = node.inputs
    shapes = [_sizes(part) for part in parts]
    joined = int(axis.data) % len(shapes[0]) if isinstance(axis, Constant) else None
    return [
        sum_dim(sizes)
        if i == joined
        else next((n for n in sizes if isinstance(n, int)), None if joined is None else sizes[0])
        for i, sizes in enumerate(zip(*shapes, strict=True))
    ]


def _of_split(x: Variable, node: Apply) -> Sequence[Dim]:
    """Return the sizes of a part of an array."""
    whole, lengths = node.inputs
    sizes, found = list(_sizes(whole)), _elements(lengths)
    sizes[node.op.axis % len(sizes)] = found[node.outputs.index(x)] if found else None
    return sizes


def _lengths(x: Variable, node: Apply) -> Iterator[tuple[Variable, int | None]]:
    """Yield the variable and the known value of each size of an array that is filled."""
    return zip(node.inputs[1:], x.type.shape, strict=True)


def sizes_of_letters(equation: str, shapes: Sequence[Dims]) -> Dims | None:
    """Return the sizes of a sum of products of arrays with named axes.

    None without the letters of the result, and where an ellipsis stands for axes.

    Examples
    --------
    >>> sizes_of_letters("bij, bjk -> bik", [("n", 2, 3), (1, 3, 4)])
    ('n', 2, 4)
    >>> sizes_of_letters("...i->...", [(2, 3)])
    """
    before, _, after = equation.replace(" ", "").partition("->")
    terms = before.split(",")
    if [len(term) for term in terms] != [len(shape) for shape in shapes] or "." in equation:
        return None
    sizes: dict[str, Dim] = {}
    for letter, size in zip("".join(terms), chain(*shapes), strict=True):
        if sizes.get(letter, 1) == 1 or (sizes[letter] is None and size not in (None, 1)):
            sizes[letter] = size
    is_known = "->" in equation and set(after) <= sizes.keys()
    return tuple(sizes[letter] for letter in after) if is_known else None


def _of_slices(node: Apply) -> Sequence[Dim]:
    """Return the sizes of parts with known bounds."""
    whole, result = _sizes(node.inputs[0]), list[Dim]()
    indices = indices_from_subtensor(node.inputs[1:], node.op.idx_list)
    for axis, size in enumerate(whole):
        index = indices[axis] if axis < len(indices) else slice(None)
        if not isinstance(index, slice):
            continue
        step = 1 if index.step is None else _bound(index.step)
        if not step:
            result.append(None)
            continue
        ends = (0, _END) if step > 0 else (-1, -_END)
        start, stop = (
            end if v is None else _bound(v)
            for v, end in zip((index.start, index.stop), ends, strict=True)
        )
        is_open = start is None or stop is None
        result.append(None if is_open else slice_dim(size, start or 0, stop or 0, step))
    return result


def _bound(value: Any) -> int | None:
    """Return a bound of a slice as an int, None for others."""
    value = value.data if isinstance(value, Constant) else value
    return int(value) if isinstance(value, int | np.integer | np.ndarray) else None


def _of_operator(x: Variable, node: Apply) -> Sequence[Dim] | None:
    """Return the sizes of a result of an operator by the rule of the operator, None without one."""
    kept, position = node.op.imported, node.outputs.index(x)
    axes = node.op.axes_of_first(position)
    if axes is not None:
        first = _sizes(node.inputs[0])
        return [None if axis is None else first[axis] for axis in axes]
    if kept.domain not in ("", "ai.onnx") or kept.results[position]:
        return None
    operands = [node.inputs[v] if isinstance(v, int) else v for v in kept.operands]
    if kept.operator == "Einsum":
        shapes = [_sizes(v) for v in operands if v is not None]
        return sizes_of_letters(kept.attributes["equation"], shapes)
    if kept.operator not in _RULED:
        return None
    values = [v if v is None else _value_with_shape(v) for v in operands]
    return output_dims(kept.operator, values, kept.attributes)


def _of_expression(x: Variable, node: Apply) -> Sequence[Dim]:
    """Return the sizes of a result of an operation with an expression, from those within."""
    own, results = node.op.expression
    terms: dict[str, Dim] = {}
    for inner, outer in zip(own, node.inputs, strict=True):
        if not isinstance(inner.type, TensorType):
            continue
        if inner not in _SIZES:
            _SIZES[inner] = tuple(_term() if n is None else n for n in inner.type.shape)
        terms.update(_pairs(_SIZES[inner], _sizes(outer)))
        if inner.type.dtype in _INTEGERS:
            terms.update(_pairs(_elements(inner), _elements(outer)))

    def outside(term: str) -> Dim:
        return terms.setdefault(term, _term())

    return [
        outside(n)
        if isinstance(n, str) and not isinstance(n, ComputedSize)
        else replace_parts(n, outside)
        if isinstance(n, ComputedSize)
        else n
        for n in axis_sizes(results[node.outputs.index(x)])
    ]


def _pairs(inner: Dims, outer: Dims) -> Iterator[tuple[str, Dim]]:
    """Yield the terms of one side with the sizes of the other."""
    return ((a, b) for a, b in zip(inner, outer, strict=False) if isinstance(a, str))


def _elements(x: Variable) -> Dims:
    """Return the numbers of a vector or a 0-d array of integers as ints and terms."""
    if isinstance(x, Constant) and x.data.ndim < 2:
        return tuple(int(n) for n in x.data.reshape(-1))
    if x.type.ndim == 0:
        return (_value(x),)
    if x.type.ndim > 1:
        return ()
    if x.owner is not None and isinstance(x.owner.op, MakeVector):
        return tuple(map(_value, x.owner.inputs))
    if x.owner is not None and isinstance(x.owner.op, Shape):
        return _sizes(x.owner.inputs[0])
    (length,) = x.type.shape
    if length is None or length > _LONGEST:
        return ()
    found = _ELEMENTS.get(x)
    if found is None:
        found = _ELEMENTS[x] = tuple(_term() for _ in range(length))
    return found


def _value_with_shape(variable: Variable) -> ir.Value:
    """Return a value for the rules of operators: its shape, and its numbers if they are known."""
    dims = variable.type.shape if isinstance(variable, Constant) else _sizes(variable)
    value = ir.Value(shape=ir.Shape(dims))
    if isinstance(variable, Constant) and len(dims) < 2:
        value.const_value = ir.Tensor(np.asarray(variable.data))
    return value


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
            return _element(node)
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


def _element(node: Apply) -> Dim:
    """Return an element of a vector of sizes, None for other parts."""
    source = node.inputs[0]
    if source.type.ndim != 1 or node.outputs[0].type.ndim or source.type.dtype not in _INTEGERS:
        return None
    (index,) = indices_from_subtensor(node.inputs[1:], node.op.idx_list)
    position, found = _bound(index), _elements(source)
    return found[position] if found and position is not None else None
