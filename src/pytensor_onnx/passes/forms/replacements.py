"""Operators replaced where a runtime's kernel is wrong for a shape or an order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from pytensor_onnx.graph.binary_reduction import merge_axes
from pytensor_onnx.graph.builder import Builder, Described, Meaning, name_failure
from pytensor_onnx.graph.traversal import is_bare, is_checked, mark_checked, mark_guarded
from pytensor_onnx.operators.dims import constant_ints, dims_of, is_positive
from pytensor_onnx.operators.inference import attribute_of, dtype_of
from pytensor_onnx.passes.forms.exact import is_finite
from pytensor_onnx.passes.matching import attributes_of, constant_of, producer_of, required
from pytensor_onnx.passes.node_walk import emit_alike


def may_mix_channels(node: ir.Node) -> bool:
    """Return whether a node is a linear Resize of channels with one spatial axis."""
    if node.op_type != "Resize" or "axes" in node.attributes:
        return False
    is_linear = node.attributes.get_string("mode") == "linear"
    dims = dims_of(node.inputs[0]) or ()
    return is_linear and len(dims) == 3 and dims[1] != 1


def resize_as_image(build: Builder, node: ir.Node) -> ir.Value:
    """Resize the array as images of one row."""
    x, region, *targets = node.inputs
    if x is None or region is not None:
        raise TypeError("a Resize of a region")
    images = build.Unsqueeze(x, build.ints([2]))
    attributes = attributes_of(node)
    with_rows = [None if target is None else _with_one_row(build, target) for target in targets]
    return build.Squeeze(build.Resize(images, None, *with_rows, **attributes), build.ints([2]))


def _with_one_row(build: Builder, target: ir.Value) -> ir.Value:
    """Insert a one for the rows into the scales or sizes of an array (N, C, L)."""
    array = constant_of(target)
    if array is not None:
        return build.constant(np.insert(array, 2, 1))
    parts = [build.Slice(target, build.ints([i]), build.ints([j])) for i, j in ((0, 2), (2, 3))]
    return build.Concat(parts[0], build.cast(build.ints([1]), dtype_of(target)), parts[1], axis=0)


def expands_to_nothing(node: ir.Node) -> bool:
    """Return whether an Expand is known to broadcast to a size of zero."""
    return 0 in (constant_ints(node.inputs[1]) or ())


def expand_to_nothing(build: Builder, node: ir.Node) -> ir.Value:
    """Broadcast to an empty shape: expand to size one, then take an empty slice."""
    x, shape = node.inputs
    sizes = np.array(constant_ints(shape), dtype="int64")
    expanded = build.Expand(x, build.constant(np.maximum(sizes, 1)))
    axes = (np.flatnonzero(sizes == 0) - sizes.size).tolist()
    nothing = build.ints([0] * len(axes))
    return build.Slice(expanded, nothing, nothing, build.ints(axes))


def reduces_added_axes(node: ir.Node) -> bool:
    """Return whether a reduction drops the axes of size one that its operand gets for it."""
    added = required(node.inputs[0]).producer()
    if added is None or added.op_type != "Unsqueeze" or attribute_of(node, "keepdims") != 0:
        return False
    axes = [constant_ints(x) for x in (*node.inputs[1:2], added.inputs[1])]
    return len(axes) == 2 and axes[0] is not None and axes[0] == axes[1]


def reduce_then_squeeze(build: Builder, node: ir.Node) -> ir.Value:
    """Reduce with the axes kept, then drop them."""
    x, axes = node.inputs
    reduced = build.op(node.op_type, x, axes, keepdims=1)
    mark_guarded(reduced)
    return build.Squeeze(reduced, axes)


Pooling = Callable[[Builder, ir.Value], ir.Value]


def keep_non_finite(build: Builder, node: ir.Node) -> list[ir.Value]:
    """Pool with propagation of NaN and minus infinity."""
    return GUARDED[node.op_type](build, node)


def may_be_non_finite(node: ir.Node) -> bool:
    """Return whether a pool is not guarded yet, and an element may be NaN or infinite."""
    return is_bare(node) and not is_finite(node.inputs[0])


def max_pool(build: Builder, node: ir.Node) -> list[ir.Value]:
    """Pool, and recompute the result if the sum of the values is not finite.

    NaN is then found by pooling a mask. The kernel with indices as second output is right for minus
    infinity.
    """
    attributes = attributes_of(node)

    def pool_with_care(inner: Builder, x: ir.Value) -> ir.Value:
        largest, _ = inner.op("MaxPool", x, outputs=2, **attributes)
        mark_guarded(largest)
        is_nan = inner.MaxPool(inner.cast(inner.IsNaN(x), "uint8"), **attributes)
        for pooled in (largest, is_nan):
            mark_checked(pooled)
        return inner.Where(inner.cast(is_nan, "bool"), float("nan"), largest)

    return _guard(build, node, pool_with_care)


def global_max_pool(build: Builder, node: ir.Node) -> list[ir.Value]:
    """Pool, and reduce exactly if the sum of the values is not finite."""
    axes = range(2, len(dims_of(node.inputs[0]) or ()))

    def reduce(inner: Builder, x: ir.Value) -> ir.Value:
        return inner.ReduceMax(x, inner.ints(list(axes)), keepdims=1)

    return _guard(build, node, reduce)


def _guard(build: Builder, node: ir.Node, pool_with_care: Pooling) -> list[ir.Value]:
    x = required(node.inputs[0])
    pooled, *indices = emit_alike(build, node, [x])
    mark_guarded(pooled)
    mark_checked(pooled)

    def keep(inner: Builder, x: ir.Value, pooled: ir.Value) -> ir.Value:
        total = inner.Abs(inner.ReduceSum(x, keepdims=0))
        is_finite = inner.Less(total, float("inf"))
        (kept,) = inner.cond(is_finite, lambda _: pooled, lambda other: pool_with_care(other, x))
        return kept

    rank = len(dims_of(x) or ())
    key = (node.op_type, dtype_of(x), rank, str(attributes_of(node)))
    name = f"KeepNonFiniteIn{node.op_type}"
    described = Described(meaning=Meaning("KeepNonFinite"))
    variant = str(dtype_of(x).numpy())
    kept = build.call(name, keep, x, pooled, variant=variant, key=key, described=described)
    return [kept, *indices]


def counts_too_many(node: ir.Node) -> bool:
    """Return whether ceil mode counts a window behind the array, by the standard before opset 22.

    Runtimes leave it out, and are told sizes that their results do not have.
    """
    return _floored_pads(node) is not None


def in_floor_mode(build: Builder, node: ir.Node) -> list[ir.Value]:
    """Pool windows without ceil mode, by the padding that gives the same ones."""
    attributes = {**attributes_of(node), "ceil_mode": 0, "pads": _floored_pads(node)}
    results = build.op("MaxPool", node.inputs[0], outputs=len(node.outputs), **attributes)
    return [results] if isinstance(results, ir.Value) else list(results)


def _floored_pads(node: ir.Node) -> list[int] | None:
    """Return padding without ceil mode, None if ceil mode is right or there is no such padding."""
    get, sizes = node.attributes.get_ints, (dims_of(node.inputs[0]) or ())[2:]
    is_ceiled = attribute_of(node, "ceil_mode")
    if not is_ceiled or "auto_pad" in node.attributes or not sizes:
        return None
    rank = len(sizes)
    windows, strides, gaps = get("kernel_shape"), get("strides"), get("dilations")
    pads = list(get("pads") or [0] * 2 * rank)
    is_wrong = False
    for axis, size in enumerate(sizes):
        if not isinstance(size, int) or windows is None:
            return None
        step = strides[axis] if strides else 1
        reach = (windows[axis] - 1) * (gaps[axis] if gaps else 1) + 1
        counted = -(-(size + pads[axis] + pads[rank + axis] - reach) // step) + 1
        count = min(counted, (size + pads[axis] - 1) // step + 1)
        is_wrong = is_wrong or count < counted
        pads[rank + axis] = max(0, (count - 1) * step + reach - size - pads[axis])
        if pads[rank + axis] >= windows[axis]:
            return None
    return pads if is_wrong else None


GUARDED = {"MaxPool": max_pool, "GlobalMaxPool": global_max_pool}
"""Forms by operator."""


POOLS = frozenset({"AveragePool", "LpPool", "MaxPool"})


def may_be_short(node: ir.Node) -> bool:
    """Return whether the array of a pool may be shorter than a window.

    The number of windows is a quotient rounded down, plus one. Rounded towards zero, it is one if
    less than a stride is missing. The runtime refuses empty axes itself.
    """
    return not is_checked(node) and any(_least_sizes(node))


def check_room(build: Builder, node: ir.Node) -> list[ir.Value]:
    """Make a pool fail if an axis is shorter than a window."""
    message = "a window of a pool is larger than the padded array"
    checked = _at_least(build, node.inputs[0], _least_sizes(node), message)
    return _with_operand(build, node, 0, checked)


def may_have_no_taps(node: ir.Node) -> bool:
    """Return whether the filters of a convolution may have a spatial size of zero."""
    if is_checked(node) or "kernel_shape" in node.attributes:
        return False
    dims = dims_of(node.inputs[1])
    return dims is not None and not all(map(is_positive, dims[2:]))


def check_taps(build: Builder, node: ir.Node) -> list[ir.Value]:
    """Make a convolution fail if its filters are empty."""
    dims = dims_of(node.inputs[1]) or ()
    least = [0 if is_positive(dim) else 1 for dim in dims[2:]]
    message = f"the filters of {node.op_type} are empty"
    return _with_operand(build, node, 1, _at_least(build, node.inputs[1], least, message))


def may_have_empty_channels(node: ir.Node) -> bool:
    """Return whether channels to normalise may have a spatial size of zero."""
    dims = dims_of(node.inputs[0])
    return not is_checked(node) and dims is not None and not all(map(is_positive, dims[2:]))


def check_channels(build: Builder, node: ir.Node) -> list[ir.Value]:
    """Let a normalisation fail where its channels are empty.

    Where there are none at all, the result keeps the sizes of the operand.
    """
    x = node.inputs[0]
    dims = dims_of(x) or ()
    least = [0 if is_positive(dim) else 1 for dim in dims[2:]]
    message = f"the channels of {node.op_type} are empty"
    results = _with_operand(build, node, 0, _at_least(build, x, least, message))
    if all(map(is_positive, dims[:2])):
        return results
    return [build.Reshape(results[0], build.Shape(x), allowzero=1), *results[1:]]


def _at_least(build: Builder, x: ir.Value | None, least: Sequence[int], message: str) -> ir.Value:
    """Reshape an array to its own sizes, or to larger required ones, which fails."""
    if x is None:
        raise TypeError(f"an operand is missing where {message}")
    sizes = build.Max(build.Shape(x), build.ints([0, 0, *least]))
    mark_guarded(sizes)
    checked = build.Reshape(x, sizes)
    checked.shape = x.shape
    name_failure(build, checked, ValueError(message))
    return checked


def _with_operand(
    build: Builder, node: ir.Node, position: int, operand: ir.Value
) -> list[ir.Value]:
    """Emit a node with another operand, marked as checked."""
    operands = [operand if i == position else old for i, old in enumerate(node.inputs)]
    results = emit_alike(build, node, operands)
    mark_checked(results[0]).meta.update(node.meta)
    return results


def _least_sizes(node: ir.Node) -> list[int]:
    """Return the smallest sizes of the spatial axes for a window, 0 without a condition."""
    kernel = node.attributes["kernel_shape"].as_ints()
    rank = len(kernel)
    dims = (dims_of(node.inputs[0]) or (None,) * (2 + rank))[2:]
    fills_windows = str(attribute_of(node, "auto_pad")).startswith("SAME")
    if fills_windows or attribute_of(node, "ceil_mode") != 0:
        return [0] * rank
    pads = node.attributes.get_ints("pads", (0,) * (2 * rank))
    strides, dilations = (
        node.attributes.get_ints(name, (1,) * rank) for name in ("strides", "dilations")
    )
    least = [
        (taps - 1) * dilation + 1 - before - after
        for taps, dilation, before, after in zip(
            kernel, dilations, pads[:rank], pads[rank:], strict=True
        )
    ]
    return [
        0 if size <= 1 or stride == 1 or (isinstance(dim, int) and dim >= size) else size
        for size, stride, dim in zip(least, strides, dims, strict=True)
    ]


_MOST_POSITIONS = 4096
"""Elements of a Slice from a computed start above which their positions are not stored."""
_HELD = (ir.DataType.INT32, ir.DataType.INT64)
"""Dtypes that can hold every position within an array."""


def has_known_strides(node: ir.Node) -> bool:
    """Return whether a Slice takes every k-th element of one axis, at known positions."""
    return _strided(node) is not None


def gather_strided(build: Builder, node: ir.Node) -> ir.Value:
    """Gather the elements of a Slice with steps."""
    positions, axis = _strided(node) or ([], 0)
    return build.Gather(node.inputs[0], build.ints(positions), axis=axis)


def gathered(build: Builder, node: ir.Node) -> ir.Value | None:
    """Return the elements of a Slice with known steps, or of a known number from a computed start.

    Other Slices have no such form: their bounds may be clipped, as Gather's positions are not.
    """
    if has_known_strides(node):
        return gather_strided(build, node)
    bounds = [constant_ints(value) for value in node.inputs[3:]]
    dims = dims_of(node.inputs[0])
    if len(bounds) < 2 or dims is None or any(b is None or len(b) != 1 for b in bounds):
        return None
    (axis,), (step,) = (b or [0] for b in bounds)
    start, count = node.inputs[1], _count(node.inputs[1], node.inputs[2])
    size, last = dims[axis], _largest(start)
    if step != 1 or count is None or last is None or not isinstance(size, int):
        return None
    if not 0 < count <= min(size - last, _MOST_POSITIONS):
        return None
    return build.Gather(node.inputs[0], build.Add(start, np.arange(count)), axis=axis)


def _count(start: ir.Value | None, end: ir.Value | None) -> int | None:
    """Return the difference of two bounds, vectors of one element, if one is the other plus it."""
    nodes = [producer_of(value, "Unsqueeze") for value in (start, end)]
    first, last = (None if node is None else node.inputs[0] for node in nodes)
    total = producer_of(last, "Add")
    if first is None or total is None or first not in total.inputs:
        return None
    count = constant_of(total.inputs[1 - total.inputs.index(first)])
    return None if count is None or count.size != 1 else int(count.item())


def _largest(start: ir.Value | None) -> int | None:
    """Return the largest value of a bound that is the low bits of a number, and not negative."""
    node = producer_of(start, "Unsqueeze")
    while node is not None and node.op_type != "BitwiseAnd":
        if node.outputs[0].dtype not in _HELD:
            return None
        node = producer_of(node.inputs[0], "Unsqueeze", "Cast", "BitwiseAnd")
    mask = None if node is None else constant_of(node.inputs[1])
    return None if mask is None or mask.size != 1 or mask.item() < 0 else int(mask.item())


def _strided(node: ir.Node) -> tuple[list[int], int] | None:
    """Return the positions of a Slice along its axis, None where they are unknown or successive."""
    bounds = [constant_ints(value) for value in node.inputs[1:]]
    if len(bounds) < 4 or any(b is None or len(b) != 1 for b in bounds):
        return None
    (start,), (end,), (axis,), (step,) = (b or [0] for b in bounds)
    size = (dims_of(node.inputs[0]) or (None,))[axis] if dims_of(node.inputs[0]) else None
    if step in (1, -1) or not isinstance(size, int):
        return None
    return list(range(*slice(start, end, step).indices(size))), axis


# Forms of TopK and Unique for runtimes with wrong results for NaN and empty slices.
#
# The order is NumPy's: a NaN is larger than every number.


def top_k(build: Builder, node: ir.Node) -> list[ir.Value]:
    """Sort with the runtime's kernel if no element is NaN, else in two stable rounds."""
    axis, largest = attribute_of(node, "axis"), attribute_of(node, "largest")
    order = {"axis": axis, "largest": largest}

    def body(inner: Builder, x: ir.Value, k: ir.Value) -> list[ir.Value]:
        is_nan = inner.IsNaN(x)
        any_nan = inner.ReduceMax(inner.cast(is_nan, "int32"), keepdims=0)
        return inner.cond(
            inner.Greater(any_nan, 0),
            lambda careful: _numbers_then_nan(careful, x, k, is_nan, order),
            lambda plain: _guarded(plain.TopK(x, k, outputs=2, **order)),
        )

    x, k = node.inputs
    name = f"TopK{'Largest' if largest else 'Smallest'}Axis{axis}".replace("-", "Minus")
    variant = str(dtype_of(x).numpy())
    described = Described(meaning=Meaning("TopK", variant, attributes=order))
    operands = required(x), required(k)
    return list(build.call(name, body, *operands, variant=variant, described=described))


def _numbers_then_nan(
    build: Builder, x: ir.Value, k: ir.Value, is_nan: ir.Value, order: dict[str, int]
) -> list[ir.Value]:
    """Sort with infinity in place of NaN, then by a NaN mask; both sorts are stable."""
    axis = order["axis"]
    size = build.Shape(x, start=axis, **({} if axis == -1 else {"end": axis + 1}))
    numbers = build.Where(is_nan, float("inf"), x)
    first = _guarded(build.TopK(numbers, size, outputs=2, **order))[1]
    flags = build.GatherElements(build.cast(is_nan, "int32"), first, axis=axis)
    second = build.TopK(flags, k, outputs=2, **order)[1]
    positions = build.GatherElements(first, second, axis=axis)
    return [build.GatherElements(x, positions, axis=axis), positions]


def unique(build: Builder, node: ir.Node) -> list[ir.Value]:
    """Return the unique numbers, then one NaN if there is any; or all in order of appearance."""
    is_sorted = _is_sorted(node)

    def body(inner: Builder, x: ir.Value) -> list[ir.Value]:
        flat = inner.Reshape(x, inner.ints([-1]))
        is_nan = inner.IsNaN(flat)
        numbers = inner.Squeeze(inner.NonZero(inner.Not(is_nan)), inner.ints([0]))
        others = inner.Squeeze(inner.NonZero(is_nan), inner.ints([0]))
        values, index, inverse, counts = _guarded(
            inner.Unique(inner.Gather(flat, numbers, axis=0), outputs=4)
        )
        first = inner.Slice(others, inner.ints([0]), inner.ints([1]))
        zeros = inner.ConstantOfShape(inner.Shape(flat), value=np.zeros(1, "int64"))
        last = inner.Add(zeros, inner.Shape(values))
        found = [
            inner.Concat(values, inner.Gather(flat, first, axis=0), axis=0),
            inner.Concat(inner.Gather(numbers, index, axis=0), first, axis=0),
            inner.ScatterElements(last, numbers, inverse, axis=0),
            inner.Concat(
                counts,
                inner.Slice(inner.Shape(others), inner.ints([0]), inner.Shape(first)),
                axis=0,
            ),
        ]
        if is_sorted:
            return found
        order, *rest = _by_appearance(inner, found[1:])
        return [inner.Gather(found[0], order, axis=0), *rest]

    name = "Unique" if is_sorted else "UniqueUnsorted"
    return list(build.call(name, body, required(node.inputs[0])))[: len(node.outputs)]


def _is_sorted(node: ir.Node) -> bool:
    return bool(attribute_of(node, "sorted"))


def _by_appearance(build: Builder, results: list[ir.Value]) -> list[ir.Value]:
    """Return the order of first places, and first places, inverse and counts in that order."""
    first, inverse, counts = results
    order = build.TopK(first, build.Shape(first), largest=0, outputs=2)[1]
    ranks = build.TopK(order, build.Shape(first), largest=0, outputs=2)[1]
    return [
        order,
        build.Gather(first, order, axis=0),
        build.Gather(ranks, inverse, axis=0),
        build.Gather(counts, order, axis=0),
    ]


def unique_slices(build: Builder, node: ir.Node) -> list[ir.Value]:
    """Compare slices as rows of ranks, never empty, with a unique rank for a slice with NaN.

    As in NumPy, slices with NaN are all different, and stay in order.
    """
    x = required(node.inputs[0])
    dims = dims_of(x)
    if dims is None:
        raise build.unsupported("Unique of slices of a value of unknown rank")
    axis = attribute_of(node, "axis") % len(dims)
    rows = merge_axes(build, x, [i for i in range(len(dims)) if i != axis])
    one_each = build.Concat(build.Shape(x, start=axis, end=axis + 1), build.ints([1]), axis=0)
    if dtype_of(x).is_floating_point():
        ranks = build.Reshape(build.Unique(rows, outputs=4)[2], build.Shape(rows), allowzero=1)
        has_nan = build.ReduceMax(build.cast(build.IsNaN(rows), "int32"), build.ints([1]))
        number = build.CumSum(build.Expand(build.ints([1]), one_each), build.ints([0]))
        last = build.Where(build.Greater(has_nan, 0), number, 0)
    else:
        ranks = rows
        last = build.Expand(build.number_like(x, 0), one_each)
    last.shape = ir.Shape([dims[axis], 1])
    padded = build.Concat(ranks, last, axis=1)
    _, *rest = _guarded(build.Unique(padded, axis=0, outputs=4))
    if not _is_sorted(node):
        _, *rest = _by_appearance(build, rest)
    return [build.Gather(x, rest[0], axis=axis), *rest][: len(node.outputs)]


def is_of_elements(node: ir.Node) -> bool:
    """Return whether a Unique compares elements, not slices."""
    return is_bare(node) and "axis" not in node.attributes


def is_of_slices(node: ir.Node) -> bool:
    """Return whether a Unique compares slices along an axis."""
    return is_bare(node) and "axis" in node.attributes


def may_have_empty_slices(node: ir.Node) -> bool:
    """Return whether a Unique along an axis may get slices without elements."""
    if not is_of_slices(node):
        return False
    dims = dims_of(node.inputs[0])
    if dims is None:
        return True
    axis = attribute_of(node, "axis") % len(dims)
    return not all(isinstance(d, int) and d > 0 for i, d in enumerate(dims) if i != axis)


def _guarded(values: list[ir.Value]) -> list[ir.Value]:
    mark_guarded(values[0])
    return values
