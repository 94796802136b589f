"""Arithmetic of sizes, on NumPy arrays of numbers and of 0-d variables.

Files compute shapes by chains of operators on small vectors: Shape, Gather, Concat, Reshape. The
elements of such vectors are followed one by one, so that known sizes become numbers, and other
elements stay the sizes of axes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytensor.scalar as ps
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.tensor.basic import MakeVector
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.importing.registry.known_values import Size, as_vector, is_size, known
from pytensor_onnx.operators.entries import MOVING
from pytensor_onnx.rewriting.engine.predicates import elementwise

type Sizes = np.ndarray

_MOST = 64
_INTEGERS = {7: "int64", 6: "int32"}
"""Dtypes of sizes by their numbers in ONNX."""


def size_result(
    operator: str, operands: Sequence[Variable | None], attributes: dict[str, Any]
) -> TensorVariable | None:
    """Return the result of an operator on sizes, or None if it is no arithmetic of sizes.

    Examples
    --------
    >>> n = pt.matrix("x").shape[0]
    >>> size_result("Gather", [as_vector([n, 3]), pt.constant(1)], {"axis": 0}).data
    array(3)
    """
    function = _CHAINS.get(operator)
    # Operators that compute nothing may move any integers.
    of_any = operator in MOVING
    if function is None or not any(_is_symbolic(v, of_any) for v in operands):
        return None
    arrays = []
    for operand in operands:
        array = None if operand is None else _array(operand, of_any)
        if array is None and operand is not None:
            return None
        arrays.append(array)
    dtype = next(v.type.dtype for v in operands if v is not None and _is_symbolic(v, of_any))
    if operator in ("Cast", "Equal"):
        dtype = "bool" if operator == "Equal" else _INTEGERS.get(attributes["to"], dtype)
    try:
        result = function(*arrays, **attributes)
    except (TypeError, IndexError, ValueError, _NotArithmetic):
        return None
    return _variable(np.asarray(result, dtype=object), dtype)


class _NotArithmetic(Exception):  # noqa: N818  (control flow)
    """Raised where the result is not one of sizes."""


def _is_symbolic(variable: Variable | None, of_any: bool) -> bool:
    """Return whether a variable is a size, or vector of such; any integer if asked for."""
    if variable is None or known(variable) is not None:
        return False
    if getattr(variable.type, "dtype", "") not in _INTEGERS.values():
        return False
    if of_any and variable.type.ndim == 0:
        return True
    return is_size(variable) or isinstance(getattr(variable.owner, "op", None), MakeVector)


def _array(variable: Variable, of_any: bool) -> Sizes | None:
    """Return the elements of an operand: Python's ints, and 0-d variables."""
    value = known(variable)
    if value is not None:
        if value.size > _MOST or value.dtype.kind not in "iub":
            return None
        return value.astype(object)
    if not _is_symbolic(variable, of_any):
        return None
    if variable.type.ndim == 0:
        return _object(np.empty((), dtype=object), [_number(variable)])
    array = np.empty(len(variable.owner.inputs), dtype=object)
    return _object(array, [_number(v) for v in variable.owner.inputs])


def _object(array: Sizes, values: Sequence[Any]) -> Sizes:
    for i, value in enumerate(values):
        array.reshape(-1)[i] = value
    return array


def _number(variable: Variable) -> Size:
    """Return an int, or a variable; that of a size in int64, which holds every size."""
    value = known(variable)
    if value is not None:
        return int(value)
    cast = elementwise(variable, ps.Cast)
    is_wide = cast is not None and cast.inputs[0].type.dtype == "int64"
    return cast.inputs[0] if cast is not None and is_wide and is_size(variable) else variable


def _variable(array: Sizes, dtype: str) -> TensorVariable | None:
    values = [int(v) if isinstance(v, int | np.integer | bool) else v for v in array.reshape(-1)]
    if array.ndim == 0:
        (value,) = values
        return pt.constant(value, dtype=dtype) if isinstance(value, int) else value.astype(dtype)
    if array.ndim == 1:
        return as_vector(values, dtype)
    if all(isinstance(v, int) for v in values):
        return pt.constant(np.asarray(values, dtype=dtype).reshape(array.shape))
    return None


def _gather(x: Sizes, indices: Sizes, *, axis: int = 0) -> Sizes:
    return np.take(x, indices.astype("int64"), axis=axis)


def _slice(x: Sizes, *bounds: Sizes, **attributes: Any) -> Sizes:
    """Take a range; its bounds are attributes before opset 10, and operands since."""
    given = [np.asarray(attributes[k]) for k in ("starts", "ends") if k in attributes]
    starts, ends, _axes, steps = [*given, *bounds, None, None][:4]
    if x.ndim != 1 or starts is None or ends is None or starts.size != 1:
        raise _NotArithmetic
    start, end, step = int(starts[0]), int(ends[0]), 1 if steps is None else int(steps[0])
    if step < 0:
        return x[max(start, -len(x)) : None if end < -len(x) else end : step]
    return x[start:end:step]


def _concat(*parts: Sizes, axis: int) -> Sizes:
    return np.concatenate(parts, axis=axis)


def _unsqueeze(x: Sizes, axes: Any = None, **attributes: Any) -> Sizes:
    axes = attributes.get("axes") if axes is None else axes
    return np.expand_dims(x, tuple(int(a) for a in axes))


def _squeeze(x: Sizes, axes: Any = None, **attributes: Any) -> Sizes:
    axes = attributes.get("axes") if axes is None else axes
    return np.squeeze(x) if axes is None else np.squeeze(x, tuple(int(a) for a in axes))


def _reshape(x: Sizes, shape: Sizes, **_: Any) -> Sizes:
    return x.reshape([int(n) for n in shape])


def _cast(x: Sizes, *, to: int, **_: Any) -> Sizes:
    if to not in _INTEGERS:
        raise _NotArithmetic
    return x


def _add(a: Any, b: Any) -> Any:
    return b if _is(a, 0) else a if _is(b, 0) else a + b


def _sub(a: Any, b: Any) -> Any:
    return a if _is(b, 0) else 0 if a is b else a - b


def _mul(a: Any, b: Any) -> Any:
    # A Reshape keeps the sizes that are zero, so that a product with zero must be known as zero.
    if _is(a, 0) or _is(b, 0):
        return 0
    return b if _is(a, 1) else a if _is(b, 1) else a * b


def _div(a: Any, b: Any) -> Any:
    if isinstance(b, int) and b == 0:
        raise _NotArithmetic
    if _is(b, 1):
        return a
    if isinstance(a, int) and isinstance(b, int):
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    if not (is_size(a) and is_size(b)):
        raise _NotArithmetic
    return a // b


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    number, other = (a, b) if isinstance(a, int) else (b, a)
    if isinstance(number, int) and number < 0 and is_size(other):
        return False
    raise _NotArithmetic


def _where(condition: Any, a: Any, b: Any) -> Any:
    if not isinstance(condition, bool | int):
        raise _NotArithmetic
    return a if condition else b


def _min(a: Any, b: Any) -> Any:
    return min(a, b) if isinstance(a, int) and isinstance(b, int) else pt.minimum(a, b)


def _max(a: Any, b: Any) -> Any:
    for size, other in ((a, b), (b, a)):
        if _is(size, 0) and is_size(other):
            return other
    return max(a, b) if isinstance(a, int) and isinstance(b, int) else pt.maximum(a, b)


def _is(value: Any, number: int) -> bool:
    return isinstance(value, int) and value == number


def _elementwise(function: Callable[..., Any], count: int) -> Callable[..., Sizes]:
    apply = np.frompyfunc(function, count, 1)

    def on_arrays(*arrays: Sizes, **_: Any) -> Sizes:
        return apply(*arrays)

    return on_arrays


def _product(x: Sizes, axes: Any = None, *, keepdims: int = 1, **_: Any) -> Sizes:
    if x.ndim != 1:
        raise _NotArithmetic
    total: Any = 1
    for value in x:
        total = _mul(total, value)
    result = _object(np.empty((), dtype=object), [total])
    return result.reshape(1) if keepdims else result


_CHAINS: dict[str, Callable[..., Any]] = {
    "Add": _elementwise(_add, 2),
    "Cast": _cast,
    "Concat": _concat,
    "Div": _elementwise(_div, 2),
    "Equal": _elementwise(_equal, 2),
    "Gather": _gather,
    "Identity": lambda x: x,
    "Max": _elementwise(_max, 2),
    "Min": _elementwise(_min, 2),
    "Mul": _elementwise(_mul, 2),
    "ReduceProd": _product,
    "Reshape": _reshape,
    "Slice": _slice,
    "Squeeze": _squeeze,
    "Sub": _elementwise(_sub, 2),
    "Unsqueeze": _unsqueeze,
    "Where": _elementwise(_where, 3),
}
