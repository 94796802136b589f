"""Fold operators on small constants and static sizes before they are emitted."""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
import onnx_ir as ir

from pytensor_onnx.operators.dims import broadcast, dims_of, same_sizes
from pytensor_onnx.operators.inference import defaults_of

_LARGEST = 64
_DISCRETE = frozenset((ir.DataType.INT64, ir.DataType.INT32, ir.DataType.BOOL))
_ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Neg": np.negative,
    "Abs": np.abs,
    "Max": lambda *arrays: reduce(np.maximum, arrays),
    "Min": lambda *arrays: reduce(np.minimum, arrays),
    "Equal": np.equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "And": np.logical_and,
    "Or": np.logical_or,
    "Xor": np.logical_xor,
    "Not": np.logical_not,
    "Where": np.where,
}


def known_result(
    op_type: str, inputs: Sequence[ir.Value | None], attributes: Mapping[str, Any]
) -> np.ndarray | None:
    """Return the result of an operator on constants, None if it is unknown or not small.

    Parameters
    ----------
    op_type
        Name of a standard operator.
    inputs
        Its inputs.
    attributes
        Its attributes.

    Examples
    --------
    >>> x = ir.val("x", dtype=ir.DataType.FLOAT, shape=("n", 3, 4))
    >>> known_result("Shape", [x], {"start": 1})
    array([3, 4])
    >>> two = ir.val("two", dtype=ir.DataType.INT64, shape=(), const_value=ir.tensor(np.int64(2)))
    >>> known_result("Unsqueeze", [two, ir.Value(const_value=ir.tensor([0]))], {})
    array([2])
    >>> known_result("Shape", [x], {}) is None
    True
    """
    if op_type == "Shape":
        return _static_sizes(inputs[0], attributes)
    if op_type not in _ELEMENTWISE and op_type not in _STRUCTURAL:
        return None
    if op_type == "Unsqueeze" and (vector := _constant_vector(inputs[0])) is not None:
        axes = _small_constant(inputs[1])
        return None if axes is None else np.expand_dims(vector, tuple(axes.ravel()))
    arrays = [_small_constant(value) for value in inputs]
    if not arrays or any(array is None for array in arrays):
        return None
    if op_type in _STRUCTURAL:
        result = _STRUCTURAL[op_type]({**defaults_of(op_type), **attributes}, *arrays)
    else:
        with np.errstate(all="ignore"):
            result = _ELEMENTWISE[op_type](*arrays)
    if result is None or np.size(result) > _LARGEST:
        return None
    return np.asarray(result)


def known_choice(op_type: str, inputs: Sequence[ir.Value | None]) -> ir.Value | None:
    """Return the operand that a Where returns: for a known condition, or equal sizes for both.

    Examples
    --------
    >>> size = ir.val("size", dtype=ir.DataType.INT64, shape=())
    >>> condition = ir.val("condition", dtype=ir.DataType.BOOL, shape=())
    >>> known_choice("Where", [condition, size, size]) is size
    True
    """
    if op_type != "Where":
        return None
    condition, first, second = inputs
    if first is None or second is None or first.dtype != second.dtype:
        return None
    if condition is not None and condition.const_value is not None:
        return _chosen(condition.const_value.numpy(), first, second)
    if any(dims_of(value) != () for value in inputs):
        return None
    return first if same_sizes(first, second) else None


def _chosen(condition: np.ndarray, first: ir.Value, second: ir.Value) -> ir.Value | None:
    """Return the operand that a condition of one value chooses, if the other cannot widen it."""
    if condition.size == 0 or condition.any() != condition.all():
        return None
    chosen, other = (first, second) if condition.any() else (second, first)
    dims = [dims_of(chosen), dims_of(other)]
    if dims[0] is None or dims[1] is None:
        return chosen if condition.ndim == 0 and dims[1] == () else None
    whole = broadcast(broadcast(condition.shape, dims[0]), dims[1])
    return chosen if whole == dims[0] and None not in whole else None


def _constant_vector(value: ir.Value | None) -> np.ndarray | None:
    if value is None or value.const_value is None or dims_of(value) is None:
        return None
    is_parameter = value.is_graph_input() or len(value.const_value.shape) != 1
    return None if is_parameter else value.const_value.numpy()


def _small_constant(value: ir.Value | None) -> np.ndarray | None:
    if value is None or value.const_value is None:
        return None
    constant = value.const_value
    if constant.dtype not in _DISCRETE or constant.size > _LARGEST:
        return None
    return constant.numpy()


def _static_sizes(value: ir.Value | None, attributes: Mapping[str, Any]) -> np.ndarray | None:
    dims = dims_of(value)
    if dims is None:
        return None
    sizes = dims[attributes.get("start") : attributes.get("end")]
    if not all(isinstance(size, int) for size in sizes):
        return None
    return np.array(sizes, dtype="int64").reshape(len(sizes))


def _concat(attributes: Mapping[str, Any], *arrays: np.ndarray) -> np.ndarray:
    return np.concatenate(arrays, axis=attributes["axis"])


def _unsqueeze(attributes: Mapping[str, Any], x: np.ndarray, axes: np.ndarray) -> np.ndarray:
    return np.expand_dims(x, tuple(axes.tolist()))


def _squeeze(
    attributes: Mapping[str, Any], x: np.ndarray, axes: np.ndarray | None = None
) -> np.ndarray:
    return np.squeeze(x, None if axes is None else tuple(axes.tolist()))


def _gather(attributes: Mapping[str, Any], x: np.ndarray, indices: np.ndarray) -> np.ndarray | None:
    axis = attributes["axis"]
    size = x.shape[axis]
    if ((indices < -size) | (indices >= size)).any():
        return None
    return np.take(x, indices, axis=axis)


def _cast(attributes: Mapping[str, Any], x: np.ndarray) -> np.ndarray | None:
    target = ir.DataType(attributes["to"])
    return x.astype(target.numpy()) if target in _DISCRETE else None


def _div(attributes: Mapping[str, Any], x: np.ndarray, y: np.ndarray) -> np.ndarray | None:
    if (y <= 0).any():
        return None
    floor = x // y
    return floor + ((x < 0) & (floor * y != x))


_STRUCTURAL: dict[str, Callable[..., np.ndarray | None]] = {
    "Concat": _concat,
    "Unsqueeze": _unsqueeze,
    "Squeeze": _squeeze,
    "Gather": _gather,
    "Cast": _cast,
    "Div": _div,
}
