"""Lower sorting, always stable and with NaN last, and order statistics."""

from collections.abc import Iterator, Sequence

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply
from pytensor.tensor.sort import ArgSortOp, SortOp

from pytensor_onnx.dispatch.registry.basic import onnx_funcify
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.inference import dtype_of
from pytensor_onnx.graph.node_flags import mark_guarded
from pytensor_onnx.ops.sorting import OrderStatistics

_FEW = 0.725
"""ONNX Runtime selects fewer elements than this power of the size in one sorted heap."""


@onnx_funcify.register(SortOp)
def lower_sort(op: SortOp, node: Apply, build: Builder, x: ir.Value) -> ir.Value:
    """Return all elements in ascending order."""
    return build.cast(_ascending(build, x, op.axis)[0], dtype_of(x))


@onnx_funcify.register(ArgSortOp)
def lower_argsort(op: ArgSortOp, node: Apply, build: Builder, x: ir.Value) -> ir.Value:
    """Return the positions of all elements in ascending order, stable for equal elements."""
    return _ascending(build, x, op.axis)[1]


def _ascending(build: Builder, x: ir.Value, axis: int) -> list[ir.Value]:
    if x.dtype == ir.DataType.BOOL:
        x = build.cast(x, "uint8")
    results = build.TopK(x, build.sizes(x, axis, axis + 1), axis=axis, largest=0, outputs=2)
    for result in results:
        result.shape = x.shape
    return results


@onnx_funcify.register(OrderStatistics)
def lower_order_statistics(
    op: OrderStatistics, node: Apply, build: Builder, x: ir.Value
) -> ir.Value:
    """Select each run of places from the elements that are not above it, the highest run first."""
    if 2 * len(op.places) >= op.size:
        found = build.Gather(_select(build, x, op.size, largest=0), np.array(op.places), axis=0)
    else:
        found = _by_runs(build, x, op)
    # A sum of magnitudes is NaN where one is, and no infinities cancel.
    total = build.ReduceSum(build.Abs(x), build.ints([0]))
    return build.Where(build.IsNaN(total), float("nan"), found)


def _by_runs(build: Builder, x: ir.Value, op: OrderStatistics) -> ir.Value:
    parts: list[ir.Value] = []
    size = op.size
    for first, last in reversed(list(runs(op.places))):
        n = last - first + 1
        if size - first < size**_FEW:
            top = _select(build, x, size - first, largest=1)
            parts.append(_reversed(build, top, size - last - 1, size - first))
            continue
        if last + 1 < size**_FEW:
            lowest = _select(build, x, last + 1, largest=0)
            parts.append(_range(build, lowest, first, last + 1))
            continue
        x, size = _select(build, x, last + 1, largest=0, sorted=0), last + 1
        parts.append(_reversed(build, _select(build, x, n, largest=1), 0, n))
    return build.Concat(*reversed(parts), axis=0)


def runs(places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and last of each run of consecutive places.

    Examples
    --------
    >>> list(runs([0, 1, 2, 5, 6]))
    [(0, 2), (5, 6)]
    """
    first = last = places[0]
    for place in places[1:]:
        if place != last + 1:
            yield first, last
            first = place
        last = place
    yield first, last


def _select(build: Builder, x: ir.Value, k: int, **order: int) -> ir.Value:
    """Return k elements along the first axis; the order beside NaN does not matter."""
    selected = build.TopK(x, build.ints([k]), axis=0, outputs=2, **order)[0]
    mark_guarded(selected)
    return selected


def _reversed(build: Builder, x: ir.Value, start: int, stop: int) -> ir.Value:
    """Return a range of the first axis in reverse."""
    if stop - start == 1:
        return _range(build, x, start, stop)
    return build.Gather(x, np.arange(stop - 1, start - 1, -1), axis=0)


def _range(build: Builder, x: ir.Value, start: int, stop: int) -> ir.Value:
    return build.Slice(x, build.ints([start]), build.ints([stop]), build.ints([0]))
