"""Sums, extrema and cumulative operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.importing.registry.known_values import (
    filled,
    like,
    size,
    static_ints,
    static_number,
)
from pytensor_onnx.importing.registry.operator_imports import onnx_import

type Axes = tuple[int, ...]
type Reduction = Callable[[TensorVariable, Axes, bool], TensorVariable]


def _wide(x: TensorVariable) -> TensorVariable:
    """Return float16 in float32, in which runtimes sum it."""
    return x.astype("float32") if x.type.dtype == "float16" else x


def _sum(x: TensorVariable, axes: Axes, keepdims: bool) -> TensorVariable:
    """Sum in the dtype of the numbers, as runtimes do."""
    dtype = _wide(x).type.dtype
    return _wide(x).sum(axis=axes, keepdims=keepdims, dtype=dtype, acc_dtype=dtype)


def _product(x: TensorVariable, axes: Axes, keepdims: bool) -> TensorVariable:
    dtype = _wide(x).type.dtype
    return _wide(x).prod(axis=axes, keepdims=keepdims, dtype=dtype, acc_dtype=dtype)


def _mean(x: TensorVariable, axes: Axes, keepdims: bool) -> TensorVariable:
    if x.type.dtype.startswith("float"):
        dtype = _wide(x).type.dtype
        return _wide(x).mean(axis=axes, keepdims=keepdims, dtype=dtype, acc_dtype=dtype)
    count = np.prod([size(x, axis) for axis in axes], dtype=object)
    total = _sum(x, axes, keepdims)
    return total // (like(x, count) if isinstance(count, int) else count.astype(x.type.dtype))


def _l1(x: TensorVariable, axes: Axes, keepdims: bool) -> TensorVariable:
    return _sum(pt.abs(x), axes, keepdims)


def _l2(x: TensorVariable, axes: Axes, keepdims: bool) -> TensorVariable:
    return pt.sqrt(_sum(pt.sqr(_wide(x)), axes, keepdims))


def _log_sum(x: TensorVariable, axes: Axes, keepdims: bool) -> TensorVariable:
    return pt.log(_sum(x, axes, keepdims))


def _log_sum_exp(x: TensorVariable, axes: Axes, keepdims: bool) -> TensorVariable:
    if any(x.type.shape[axis] == 0 for axis in axes):
        return _log_sum(pt.exp(x), axes, keepdims)
    return pt.logsumexp(_wide(x), axis=axes, keepdims=keepdims)


def _sum_square(x: TensorVariable, axes: Axes, keepdims: bool) -> TensorVariable:
    return _sum(pt.sqr(_wide(x)), axes, keepdims)


def _maximum(x: TensorVariable, axes: Axes, keepdims: bool) -> TensorVariable:
    return _extremum(pt.max, x, axes, keepdims, largest=False)


def _minimum(x: TensorVariable, axes: Axes, keepdims: bool) -> TensorVariable:
    return _extremum(pt.min, x, axes, keepdims, largest=True)


def _extremum(
    function: Any, x: TensorVariable, axes: Axes, keepdims: bool, largest: bool
) -> TensorVariable:
    """Return an extremum; of no elements it is the bound of the dtype."""
    dtype = x.type.dtype
    if any(x.type.shape[axis] == 0 for axis in axes):
        kept = [1 if axis in axes else size(x, axis) for axis in range(x.type.ndim)]
        shape = kept if keepdims else [kept[a] for a in range(x.type.ndim) if a not in axes]
        return filled(np.asarray(_bound(dtype, largest), dtype=dtype), shape)
    if dtype == "bool":
        return function(x.astype("uint8"), axis=axes, keepdims=keepdims).astype("bool")
    return function(x, axis=axes, keepdims=keepdims)


def _bound(dtype: str, largest: bool) -> Any:
    if dtype == "bool":
        return largest
    if dtype.startswith("float"):
        return np.inf if largest else -np.inf
    return np.iinfo(dtype).max if largest else np.iinfo(dtype).min


_REDUCTIONS: dict[str, Reduction] = {
    "ReduceL1": _l1,
    "ReduceL2": _l2,
    "ReduceLogSum": _log_sum,
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceMax": _maximum,
    "ReduceMean": _mean,
    "ReduceMin": _minimum,
    "ReduceProd": _product,
    "ReduceSum": _sum,
    "ReduceSumSquare": _sum_square,
}


def _register(operator: str, function: Reduction) -> None:
    """Register a reduction: its axes are an attribute, and an operand in newer versions."""

    def over(x: TensorVariable, axes: list[int] | None, keepdims: int, keep: int) -> TensorVariable:
        if not axes and keep:
            # No axis is reduced, but an operation on single elements, such as a square, remains.
            return function(x[None], (0,), False)
        every = range(x.type.ndim)
        return function(x, tuple(sorted(a % x.type.ndim for a in axes or every)), bool(keepdims))

    def by_attribute(
        x: TensorVariable, *, axes: tuple[int, ...] | None = None, keepdims: int = 1
    ) -> TensorVariable:
        return over(x, None if axes is None else list(axes), keepdims, 0)

    def by_operand(
        x: TensorVariable,
        axes: TensorVariable | None = None,
        *,
        keepdims: int = 1,
        noop_with_empty_axes: int = 0,
    ) -> TensorVariable:
        return over(x, static_ints(axes, "axes"), keepdims, noop_with_empty_axes)

    onnx_import(operator)(by_attribute)
    onnx_import(operator, since=13 if operator == "ReduceSum" else 18)(by_operand)


for _operator, _function in _REDUCTIONS.items():
    _register(_operator, _function)


@onnx_import("CumSum")
def cumulative_sum(
    x: TensorVariable, axis: TensorVariable, *, exclusive: int = 0, reverse: int = 0
) -> TensorVariable:
    """Sum all elements up to each, without it if exclusive."""
    return _accumulated(pt.cumsum, x, axis, exclusive, reverse, first=0)


@onnx_import("CumProd")
def cumulative_product(
    x: TensorVariable, axis: TensorVariable, *, exclusive: int = 0, reverse: int = 0
) -> TensorVariable:
    """Multiply all elements up to each, without it if exclusive."""
    return _accumulated(pt.cumprod, x, axis, exclusive, reverse, first=1)


def _accumulated(
    function: Any, x: TensorVariable, axis: TensorVariable, exclusive: int, reverse: int, first: int
) -> TensorVariable:
    position = static_number(axis, "axis", 0) % x.type.ndim
    before = (slice(None),) * position
    backwards = (*before, slice(None, None, -1))
    values = x[backwards] if reverse else x
    if exclusive:
        shape = [1 if a == position else size(x, a) for a in range(x.type.ndim)]
        filler = filled(like(x, first), shape)
        values = pt.concatenate([filler, values[(*before, slice(None, -1))]], axis=position)
    # NumPy widens narrow integers, which PyTensor's type does not tell.
    is_narrow = np.dtype(x.type.dtype).kind in "iu"
    wide = (
        values.astype("uint64" if x.type.dtype.startswith("u") else "int64")
        if is_narrow
        else values
    )
    total = function(wide, axis=position).astype(x.type.dtype)
    return total[backwards] if reverse else total
