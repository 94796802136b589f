"""Lowerings of sorts, searches and unique elements."""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply
from pytensor.tensor.extra_ops import SearchsortedOp, Unique
from pytensor.tensor.sort import ArgSortOp, SortOp

from pytensor_onnx.dispatch.control_flow import check_that
from pytensor_onnx.dispatch.registry.basic import onnx_funcify
from pytensor_onnx.dispatch.registry.batch_loop import with_equal_batches
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.traversal import mark_guarded
from pytensor_onnx.operators.inference import dtype_of
from pytensor_onnx.ops.sorting import OrderStatistics


@onnx_funcify.register(SearchsortedOp)
def lower_searchsorted(
    op: SearchsortedOp, node: Apply, build: Builder, *inputs: ir.Value
) -> ir.Value:
    """Search for all elements at once by bisection, in the dtype in which NumPy compares.

    In a `Blockwise`, each array of the batch is searched for its own elements.
    """
    dtype = np.promote_types(*(variable.type.dtype for variable in node.inputs[:2]))
    common = "uint8" if dtype.kind == "b" else dtype
    n_batch = node.inputs[0].type.ndim - 1
    x, v, *sorter = _with_same_batch(build, node, n_batch, inputs) if n_batch else inputs
    if sorter:
        x = _sorted_by(build, x, build.cast(sorter[0], "int64"), n_batch)
    wanted = _as_rows(build, v, n_batch) if n_batch else v
    name = f"SearchSorted{op.side.capitalize()}{'InRows' if n_batch else ''}"
    search = partial(_halve, is_right=op.side == "right", by_rows=bool(n_batch))
    positions = build.call(name, search, build.cast(x, common), build.cast(wanted, common))
    if wanted is not v:
        positions = build.Reshape(positions, build.shape(v), allowzero=1)
    positions.shape = v.shape
    return positions


def _with_same_batch(
    build: Builder, node: Apply, n_batch: int, inputs: tuple[ir.Value, ...]
) -> list[ir.Value]:
    """Return inputs with equal batch axes, with a check that they are equal."""
    patterns = [variable.type.broadcastable[:n_batch] for variable in node.inputs]
    conditions = []
    for axis in range(n_batch):
        pairs = zip(inputs, patterns, strict=True)
        sizes = [build.size(x, axis) for x, is_one in pairs if not is_one[axis]]
        conditions += [build.Equal(sizes[0], size) for size in sizes[1:]]
    error = ValueError("the batches of the sorted array and of the values have different sizes")
    checked = [check_that(build, conditions, inputs[0], error), *inputs[1:]]
    cores = [len(build.dims(x)) - n_batch for x in inputs]
    return with_equal_batches(build, checked, patterns, cores)


def _sorted_by(build: Builder, x: ir.Value, sorter: ir.Value, n_batch: int) -> ir.Value:
    same = build.Equal(build.size(sorter, n_batch), build.size(x, n_batch))
    error = ValueError("sorter must have as many elements as the array that it sorts")
    x = check_that(build, [same], x, error)
    if n_batch:
        return build.GatherElements(x, sorter, axis=n_batch)
    return build.Gather(x, sorter, axis=0)


def _as_rows(build: Builder, v: ir.Value, n_batch: int) -> ir.Value:
    """Return an array with one axis after the axes of the batch."""
    rank = len(build.dims(v))
    if rank == n_batch:
        return build.Unsqueeze(v, build.ints([-1]))
    if rank == n_batch + 1:
        return v
    count = build.ReduceProd(build.sizes(v, n_batch, rank), build.ints([0]))
    shape = build.Concat(build.sizes(v, 0, n_batch), count, axis=0)
    return build.Reshape(v, shape, allowzero=1)


def _halve(build: Builder, x: ir.Value, v: ir.Value, *, is_right: bool, by_rows: bool) -> ir.Value:
    """Halve the range of positions for each element until one position is left."""

    def step(
        loop: Builder, i: ir.Value, span: ir.Value, low: ir.Value, high: ir.Value
    ) -> list[ir.Value]:
        open_ = loop.Less(low, high)
        middle = loop.Div(loop.Add(low, high), 2)
        position = loop.Where(open_, middle, 0)
        take = partial(loop.GatherElements, axis=-1) if by_rows else partial(loop.Gather, axis=0)
        element = take(x, position)
        pair = (v, element) if is_right else (element, v)
        is_above = _is_before(loop, *pair)
        is_above = loop.Not(is_above) if is_right else is_above
        above, below = loop.And(open_, is_above), loop.And(open_, loop.Not(is_above))
        half = loop.Div(span, 2)
        return [
            loop.Greater(half, 0),
            half,
            loop.Where(above, loop.Add(middle, 1), low),
            loop.Where(below, middle, high),
        ]

    last_axis = build.Shape(x, start=-1) if by_rows else build.Shape(x)
    shape, size = build.Shape(v), build.Squeeze(last_axis, build.ints([0]))
    first, last = build.Expand(np.int64(0), shape), build.Expand(size, shape)
    return build.loop(None, build.Greater(size, 0), [size, first, last], step)[1]


def _is_before(build: Builder, a: ir.Value, b: ir.Value) -> ir.Value:
    """Return where a precedes b in ascending order, with NaN last."""
    less = build.Less(a, b)
    if not dtype_of(a).is_floating_point():
        return less
    return build.Or(less, build.And(build.IsNaN(b), build.Not(build.IsNaN(a))))


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


@onnx_funcify.register(Unique)
def lower_unique(op: Unique, node: Apply, build: Builder, x: ir.Value) -> list[ir.Value]:
    """Return the unique elements, or slices along an axis, in ascending order."""
    wanted = [0]
    wanted += [1] if op.return_index else []
    wanted += [2] if op.return_inverse else []
    wanted += [3] if op.return_counts else []
    axis = {} if op.axis is None else {"axis": op.axis}
    results = build.Unique(x, outputs=wanted[-1] + 1, **axis)
    results = [results] if isinstance(results, ir.Value) else results
    return [results[i] for i in wanted]
