"""Sorting, searching and counting."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.errors import UnsupportedCase
from pytensor_onnx.importing.registry.known_values import elements, like, size
from pytensor_onnx.importing.registry.operator_imports import onnx_import
from pytensor_onnx.ops.networks.kept_operator import MICROSOFT


def _search(function: Any, x: TensorVariable, axis: int, keepdims: int, last: int) -> Any:
    axis %= x.type.ndim
    if last:
        x = x[(*(slice(None),) * axis, slice(None, None, -1))]
    found = function(x, axis=axis)
    if last:
        found = size(x, axis) - 1 - found
    found = found.astype("int64")
    return pt.expand_dims(found, axis) if keepdims else found


@onnx_import("ArgMax")
def argmax(
    x: TensorVariable, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0
) -> TensorVariable:
    """Return the position of the first or last maximum."""
    return _search(pt.argmax, x, axis, keepdims, select_last_index)


@onnx_import("ArgMin")
def argmin(
    x: TensorVariable, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0
) -> TensorVariable:
    """Return the position of the first or last minimum."""
    return _search(pt.argmin, x, axis, keepdims, select_last_index)


@onnx_import("TopK")
def top_k(
    x: TensorVariable, k: TensorVariable, *, axis: int = -1, largest: int = 1, sorted: int = 1
) -> list[TensorVariable]:
    """Return the largest or smallest elements with their positions, of equal ones the first."""
    axis %= x.type.ndim
    (count,) = elements(k)
    before = (slice(None),) * axis
    if largest:
        # The order of the reversed array, backwards, has the first of equal elements first.
        order = pt.argsort(x[(*before, slice(None, None, -1))], axis=axis, stable=True)
        order = size(x, axis) - 1 - order[(*before, slice(None, None, -1))]
    else:
        order = pt.argsort(x, axis=axis, stable=True)
    order = order[(*before, slice(None, count))].astype("int64")
    return [pt.take_along_axis(x, order, axis=axis), order]


@onnx_import("Unique", domain=MICROSOFT)
def unique_by_place(x: TensorVariable, *, outputs: int = 3) -> list[TensorVariable]:
    """Return the different elements in their order, the inverse and counts."""
    values, _, inverse, counts = unique(x, sorted=0, outputs=4)
    return [values, inverse, counts][:outputs]


@onnx_import("Unique")
def unique(
    x: TensorVariable, *, axis: int | None = None, sorted: int = 1, outputs: int = 1
) -> list[TensorVariable]:
    """Return the different elements or subarrays, their first places, the inverse and counts."""
    results = pt.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    values, first, inverse, counts = results
    if not sorted:
        order = pt.argsort(first, stable=True)
        rank = pt.argsort(order, stable=True)
        values = values.take(order, axis=0 if axis is None else axis)
        first, counts, inverse = first[order], counts[order], rank[inverse]
    others = [v.reshape((-1,)).astype("int64") for v in (first, inverse, counts)]
    return [values, *others][:outputs]


@onnx_import("Hardmax")
def hardmax_of_matrix(x: TensorVariable, *, axis: int = 1) -> TensorVariable:
    """Return one at the first maximum of each row of the matrix of axes before and after one."""
    axis %= x.type.ndim
    matrix = x.reshape((pt.prod(x.shape[:axis]), -1)) if axis else x.reshape((1, -1))
    return hardmax(matrix).reshape(x.shape)


@onnx_import("Hardmax", since=13)
def hardmax(x: TensorVariable, *, axis: int = -1) -> TensorVariable:
    """Return one at the first maximum along an axis, zero elsewhere."""
    axis %= x.type.ndim
    first = pt.expand_dims(pt.argmax(x, axis=axis), axis)
    places = pt.arange(size(x, axis))
    places = places.dimshuffle([0 if a == axis else "x" for a in range(x.type.ndim)])
    return pt.switch(pt.eq(first, places), like(x, 1), like(x, 0))


@onnx_import("TfIdfVectorizer")
def counts_of_sequences(
    x: TensorVariable,
    *,
    max_gram_length: int,
    max_skip_count: int,
    min_gram_length: int,
    mode: str,
    ngram_counts: tuple[int, ...],
    ngram_indexes: tuple[int, ...],
    pool_int64s: tuple[int, ...] = (),
    pool_strings: tuple[str, ...] = (),
    weights: tuple[float, ...] = (),
) -> TensorVariable:
    """Count sequences of a pool in rows of integers, with steps between their elements."""
    if pool_strings:
        raise UnsupportedCase("PyTensor has no arrays of string")
    pool, length = np.array(pool_int64s, dtype="int64"), x.shape[-1]
    ends = [*ngram_counts[1:], len(pool)]
    counts: list[TensorVariable] = []
    columns: list[int] = []
    first = 0
    for n, (start, end) in enumerate(zip(ngram_counts, ends, strict=True), start=1):
        sequences = pool[start:end].reshape(-1, n)
        places = ngram_indexes[first : first + len(sequences)]
        first += len(sequences)
        if not min_gram_length <= n <= max_gram_length or not len(sequences):
            continue
        total: Any = 0
        for step in range(1, 2 + (max_skip_count if n > 1 else 0)):
            are_equal = [
                pt.eq(
                    x[..., None, k * step : pt.maximum(length - (n - 1 - k) * step, 0)],
                    sequences[:, k, None].astype(x.type.dtype),
                )
                for k in range(n)
            ]
            total = total + reduce(pt.and_, are_equal).sum(axis=-1)
        counts.append(total)
        columns += places
    width = 1 + max(ngram_indexes)
    found = pt.concatenate(counts, axis=-1).astype("float32")
    whole = pt.zeros((*x.shape[:-1], width), dtype="float32")
    whole = pt.set_subtensor(whole[..., np.array(columns)], found)
    if mode == "TF":
        return whole
    factors = np.ones(width, dtype="float32")
    factors[list(ngram_indexes)] = weights or 1
    return pt.gt(whole, 0) * factors if mode == "IDF" else whole * factors
