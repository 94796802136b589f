"""Values that are known at import: constants, sizes of axes, and sums of open sizes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pytensor.scalar as ps
import pytensor.tensor as pt
from pytensor.compile.builders import OpFromGraph
from pytensor.conditional.op import IfElse
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.traversal import toposort, walk_toposort
from pytensor.scan.op import Scan
from pytensor.tensor.basic import (
    Join,
    MakeVector,
    ScalarFromTensor,
    TensorFromScalar,
    alloc,
    constant,
)
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.math import Dot
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.shape import Reshape, Shape, Shape_i, SpecifyShape
from pytensor.tensor.special import Softmax
from pytensor.tensor.subtensor import Subtensor, indices_from_subtensor
from pytensor.tensor.type import TensorType
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.errors import UnsupportedCase
from pytensor_onnx.operators.dims import Dim, Dims, product_dim, quotient_dim, sum_dim
from pytensor_onnx.ops.networks.network_op import KeepsShape

type Size = int | TensorVariable

MOST_FOLDED = 4096
"""Elements of a constant up to which its operations are computed at import."""


def known(variable: Variable) -> np.ndarray | None:
    """Return the value of a constant, None for other variables.

    Examples
    --------
    >>> known(pt.constant([1, 2])), known(pt.lvector())
    (array([1, 2]), None)
    """
    return np.asarray(variable.data) if isinstance(variable, Constant) else None


def static(variable: Variable, what: str) -> np.ndarray:
    """Return the value of an operand that must be known at import.

    Parameters
    ----------
    variable
        The operand.
    what
        Its name in the operator, for the error.

    Raises
    ------
    UnsupportedCase
        If it depends on inputs of the graph.
    """
    value = known(variable)
    if value is None:
        raise not_known(f"its operand {what} must be known at import", variable)
    return value


def not_known(reason: str, *variables: Any) -> UnsupportedCase:
    """Return an error for values that are not known, with the inputs that they depend on."""
    values, arrays = _inputs_of([v for v in variables if isinstance(v, Variable)])
    names = [*values, *(f"the sizes of {v.name}" for v in arrays)]
    of = f"depends on {' and '.join(names)}" if names else "is computed by the graph"
    return UnsupportedCase(f"{reason}, and {of}", arguments_for(*variables))


def arguments_for(*variables: Any) -> str:
    """Return a call with the inputs whose values and sizes some variables depend on.

    Examples
    --------
    >>> n, x = pt.lscalar("n"), pt.tensor("x", shape=(None, 3))
    >>> print(arguments_for(n * pt.exp(x).shape[0]))
    from_onnx(model, inputs={'n': value}, shapes={'x': (size, 3)})
    """
    values, arrays = _inputs_of([v for v in variables if isinstance(v, Variable)])
    given = ", ".join(f"{name!r}: value" for name in values)
    sizes = ", ".join(
        f"{v.name!r}: ({', '.join('size' if n is None else str(n) for n in v.type.shape)}"
        f"{',' * (v.type.ndim == 1)})"
        for v in arrays
    )
    parts = [f"inputs={{{given}}}"] * bool(given) + [f"shapes={{{sizes}}}"] * bool(sizes)
    return f"from_onnx(model, {', '.join(parts) or 'inputs={name: value}'})"


def _inputs_of(variables: Sequence[Variable]) -> tuple[list[str], list[TensorVariable]]:
    """Return the names of the inputs whose values are needed, and those whose sizes are."""
    pending = [(v, False) for v in reversed(variables)]
    seen, values, arrays = set(pending), dict[str, None](), dict[TensorVariable, None]()
    while pending:
        variable, is_size = pending.pop()
        if variable.owner is None:
            if variable.name and not isinstance(variable, Constant):
                if not is_size:
                    values[str(variable.name)] = None
                elif None in variable.type.shape:
                    arrays[variable] = None
            continue
        is_size = is_size or isinstance(variable.owner.op, Shape | Shape_i)
        for operand in reversed(variable.owner.inputs):
            rank = getattr(operand.type, "ndim", 0)
            # The sizes of a result depend on those of operands, and on the values of integers.
            is_number = rank < 2 and getattr(operand.type, "dtype", "int").startswith("int")
            key = (operand, is_size and (rank > 1 or not is_number or operand.owner is None))
            if key not in seen and not (key[1] and rank == 0):
                seen.add(key)
                pending.append(key)
    return list(values), list(arrays)


def static_ints(variable: Variable | None, what: str) -> list[int] | None:
    """Return an operand of integers that must be known, None if it is left out."""
    return None if variable is None else [int(n) for n in np.ravel(static(variable, what))]


def static_number(variable: Variable | None, what: str, default: Any) -> Any:
    """Return an operand of one number that must be known, a default if it is left out."""
    return default if variable is None else static(variable, what).reshape(-1)[0].item()


def like(x: Variable, number: Any) -> np.ndarray:
    """Return numbers in the dtype of a variable."""
    return np.asarray(number, dtype=x.type.dtype)


def size(x: TensorVariable, axis: int) -> Size:
    """Return the size of an axis, an int if it is known."""
    known_size = x.type.shape[axis]
    return x.shape[axis] if known_size is None else int(known_size)


def sizes(x: TensorVariable) -> list[Size]:
    """Return the sizes of all axes, ints where they are known."""
    return [size(x, axis) for axis in range(x.type.ndim)]


def is_size_of(number: Size, x: TensorVariable, axis: int) -> bool:
    """Return whether a number is the size of an axis.

    Examples
    --------
    >>> x = pt.matrix("x")
    >>> is_size_of(size(x, 1), x, 1), is_size_of(size(x, 1), x, 0), is_size_of(3, x, 1)
    (True, False, False)
    """
    if isinstance(number, int):
        return x.type.shape[axis] == number
    return value_of(number) == axis_sizes(x)[axis]


def filled(value: Any, lengths: Sequence[Size]) -> TensorVariable:
    """Broadcast a value to sizes.

    Other than `pt.full`, it does not rewrite all that the sizes are computed from, to find ones
    that are known.

    Examples
    --------
    >>> x = pt.matrix("x")
    >>> filled(0.0, [size(x, 0), 3]).type.shape
    (None, 3)
    """
    value = pt.as_tensor(value)
    added = len(lengths) - value.type.ndim
    shape = tuple(
        n if isinstance(n, int) else value.type.shape[axis] if is_whole else None
        for axis, n in enumerate(lengths, start=-added)
        for is_whole in [axis >= 0 and not value.type.broadcastable[axis]]
    )
    sizes = [pt.as_tensor(n, dtype="int64") if isinstance(n, int) else n for n in lengths]
    return Apply(alloc, [value, *sizes], [TensorType(value.type.dtype, shape)()]).outputs[0]


def elements(vector: Variable) -> list[Size]:
    """Return the elements of a vector of sizes, ints where they are known.

    Raises
    ------
    UnsupportedCase
        If the length of the vector is not known.

    Examples
    --------
    >>> n = pt.lscalar("n")
    >>> elements(as_vector([n, 3])), elements(pt.constant([4, 5]))
    ([n, 3], [4, 5])
    """
    value = known(vector)
    if value is not None:
        return [int(n) for n in value.reshape(-1)]
    if vector.type.ndim == 0:
        return [vector]
    if vector.owner is not None and isinstance(vector.owner.op, MakeVector):
        return [_as_size(v) for v in vector.owner.inputs]
    if vector.owner is not None and isinstance(vector.owner.op, Join):
        return [size for part in vector.owner.inputs for size in elements(part)]
    (length,) = vector.type.shape
    if length is None:
        raise not_known("the number of its sizes must be known at import", vector)
    return [vector[i] for i in range(length)]


def as_vector(values: Sequence[Size], dtype: str = "int64") -> TensorVariable:
    """Return sizes as a vector, a constant if all are known."""
    if all(isinstance(v, int) for v in values):
        return pt.constant(np.asarray(values, dtype=dtype).reshape(-1), dtype=dtype)
    return MakeVector(dtype)(*(_as_number(v, dtype) for v in values))


def _as_number(value: Size, dtype: str) -> TensorVariable:
    if isinstance(value, int):
        return _constant(value, dtype)
    return value if value.type.dtype == dtype else value.astype(dtype)


@lru_cache
def _constant(value: int, dtype: str) -> TensorVariable:
    return pt.constant(value, dtype=dtype)


def _as_size(variable: Variable) -> Size:
    value = known(variable)
    return variable if value is None else int(value)


def folded(results: Sequence[Variable], operands: Iterable[Variable | None]) -> list[Variable]:
    """Compute results whose operands are small constants.

    Examples
    --------
    >>> x = pt.constant([1, 2])
    >>> folded([x + x], [x])[0].data
    array([2, 4])
    """
    given = [v for v in operands if v is not None]
    if not all(isinstance(v, Constant) and v.data.size <= MOST_FOLDED for v in given):
        return list(results)
    if all(isinstance(v, Constant) for v in results) or not _are_small(results):
        return list(results)
    nodes = list(toposort(results))
    if any(isinstance(n.op, OpFromGraph | Scan | RandomVariable) for n in nodes):
        return list(results)
    values: dict[Variable, Any] = {}
    for node in nodes:
        arrays = [v.data if isinstance(v, Constant) else values.get(v) for v in node.inputs]
        if any(array is None for array in arrays):
            return list(results)
        storage: list[list[Any]] = [[None] for _ in node.outputs]
        with np.errstate(all="ignore"):
            node.op.perform(node, arrays, storage)
        values.update(
            (v, v.type.filter(cell[0], allow_downcast=True))
            for v, cell in zip(node.outputs, storage, strict=True)
        )
    return [
        pt.constant(values[v], dtype=v.type.dtype, name=v.name) if v in values else v
        for v in results
    ]


def _are_small(results: Sequence[Variable]) -> bool:
    return all(
        np.prod([1 if n is None else n for n in v.type.shape], dtype="float64") <= MOST_FOLDED
        for v in results
    )


# Sizes of axes as sums of products of the open sizes of inputs.
#
# Equal sizes are equal terms, also where they are read from different arrays, so that the quotient
# of two products of sizes is known where their factors cancel.

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
        case Softmax() | KeepsShape():
            return _sizes(node.inputs[0])
        case Blockwise(core_op=Dot(), signature="(m,n),(n,p)->(m,p)"):
            return _of_product(node)
        case _:
            return _inferred(x, node)


def _of_product(node: Apply) -> Sequence[Dim]:
    """Return the sizes of a product of stacks of matrices."""
    a, b = node.inputs
    batch = [_of_broadcast(node, axis) for axis in range(a.type.ndim - 2)]
    return [*batch, _sizes(a)[-2], _sizes(b)[-1]]


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
