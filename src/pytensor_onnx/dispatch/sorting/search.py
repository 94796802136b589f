"""Lower searches in sorted arrays, for all elements at once."""

from functools import partial

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply
from pytensor.tensor.extra_ops import SearchsortedOp

from pytensor_onnx.dispatch.control_flow.raise_op import check_that
from pytensor_onnx.dispatch.registry.basic import onnx_funcify
from pytensor_onnx.dispatch.registry.batch_axes import with_equal_batches
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.inference import dtype_of


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
