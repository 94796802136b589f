"""Lowerings of shapes, transposes and repeats."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.extra_ops import Repeat
from pytensor.tensor.reshape import JoinDims, SplitDims
from pytensor.tensor.shape import Reshape, Shape, Shape_i, SpecifyShape
from pytensor.tensor.type_other import NoneTypeT

from pytensor_onnx.dispatch.control_flow import check_that
from pytensor_onnx.dispatch.registry.basic import onnx_funcify
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.operators.dims import Dims, constant_ints, dims_of, quotient_dim, sizes_in
from pytensor_onnx.operators.inference import attribute_of


@onnx_funcify.register(Shape)
def lower_shape(op: Shape, node: Apply, build: Builder, x: ir.Value) -> ir.Value:
    """Read the shape."""
    return build.shape(x)


@onnx_funcify.register(Shape_i)
def lower_shape_i(op: Shape_i, node: Apply, build: Builder, x: ir.Value) -> ir.Value:
    """Read the size of one axis."""
    return build.size(x, op.i)


@onnx_funcify.register(Reshape)
def lower_reshape(
    op: Reshape, node: Apply, build: Builder, x: ir.Value, shape: ir.Value
) -> ir.Value:
    """Reshape to sizes that are known at export or read at run time."""
    return _reshape(build, x, shape, node.outputs[0].type.shape)


@onnx_funcify.register(JoinDims)
def lower_join_dims(op: JoinDims, node: Apply, build: Builder, x: ir.Value) -> ir.Value:
    """Merge consecutive axes into one."""
    first, last, rank = op.start_axis, op.start_axis + op.n_axes, node.inputs[0].type.ndim
    if op.n_axes == 0:
        return build.Unsqueeze(x, build.ints([first]))
    parts = [build.sizes(x, 0, first), build.ints([-1]), build.sizes(x, last, rank)]
    return _reshape(build, x, concatenated(build, parts), node.outputs[0].type.shape)


@onnx_funcify.register(SplitDims)
def lower_split_dims(
    op: SplitDims, node: Apply, build: Builder, x: ir.Value, sizes: ir.Value
) -> ir.Value:
    """Split one axis into several."""
    rank = node.inputs[0].type.ndim
    sizes = build.cast(sizes, "int64")
    parts = [build.sizes(x, 0, op.axis), sizes, build.sizes(x, op.axis + 1, rank)]
    return _reshape(build, x, concatenated(build, parts), node.outputs[0].type.shape)


def _reshape(
    build: Builder, x: ir.Value, shape: ir.Value, static: Sequence[int | None]
) -> ir.Value:
    """Reshape to a constant shape if the known sizes allow it.

    A size of zero in PyTensor's type is ignored: PyTensor infers it for every unknown size if
    another size is zero.
    """
    sizes = sizes_in(shape) or (None,) * len(static)
    wanted = tuple(
        size if known is None or known <= 0 else known
        for known, size in zip(static, sizes, strict=True)
    )
    x = _before_reshapes(x)
    dims = dims_of(x)
    if dims is not None:
        dims = tuple(map(build.scope.dims.canonical, dims))
        wanted = tuple(map(build.scope.dims.canonical, wanted))
        rest = quotient_dim(dims, [size for size in wanted if size != -1])
        reached = tuple(rest if size == -1 else size for size in wanted)
        if len(dims) == len(wanted) and (wanted == (-1,) or (reached == dims and None not in dims)):
            return x
        wanted = reached if isinstance(rest, int) else wanted
    target = _constant_target(dims or (), wanted)
    if target is not None:
        return build.Reshape(x, build.ints(target), allowzero=int(0 in wanted))
    return build.Reshape(x, build.cast(shape, "int64"), allowzero=1)


def _before_reshapes(x: ir.Value) -> ir.Value:
    """Return the value before successive reshapes, with its elements in the same order."""
    node = x.producer()
    while node is not None and node.op_type == "Reshape" and not node.domain:
        source = node.inputs[0]
        if source is None or dims_of(source) is None:
            break
        x, node = source, source.producer()
    return x


def _constant_target(dims: Dims, wanted: Dims) -> list[int] | None:
    """Return a target shape for Reshape in which zeros stand for unchanged sizes."""
    target: list[int] = []
    for i, size in enumerate(wanted):
        if isinstance(size, int):
            target.append(size)
        elif size is not None and size == dict(enumerate(dims)).get(i) and 0 not in wanted:
            target.append(0)
        else:
            return None
    return target


@onnx_funcify.register(SpecifyShape)
def lower_specify_shape(
    op: SpecifyShape, node: Apply, build: Builder, x: ir.Value, *shape: Any
) -> ir.Value:
    """Check the unknown sizes of an asserted shape, and return the value."""
    given = {axis: size for axis, size in enumerate(shape) if isinstance(size, ir.Value)}
    if build.scope.fixes_sizes:
        equate_sizes(build, x, {axis: v for axis, v in given.items() if v.const_value is not None})
    conditions = [
        build.Equal(build.size(x, axis), build.cast(size, "int64")) for axis, size in given.items()
    ]
    expected = [
        None if isinstance(v.type, NoneTypeT) else (constant_ints(size) or [v])[0]
        for v, size in zip(node.inputs[1:], shape, strict=True)
    ]
    listing = ", ".join(map(str, expected)) + ("," if len(expected) == 1 else "")
    message = f"SpecifyShape: Got another shape, expected ({listing})."
    return check_that(build, conditions, x, AssertionError(message))


def equate_sizes(build: Builder, x: ir.Value, sizes: Mapping[int, ir.Value]) -> None:
    """Record the sizes that axes of a value must have for the graph to be valid."""
    dims = dims_of(x)
    if dims is not None:
        for axis, size in sizes.items():
            known = constant_ints(size) or sizes_in(size) or ()
            build.equate_sizes([(dims[axis], other) for other in known])


def vector_of(build: Builder, elements: Sequence[ir.Value], dtype: str = "int64") -> ir.Value:
    """Join 0-d values to a vector: a constant for constants, a Shape for sizes of one tensor.

    Examples
    --------
    >>> from pytensor_onnx.graph.builder import Builder
    >>> from pytensor_onnx.graph.scope import ModelScope
    >>> build = Builder(ModelScope(21))
    >>> sizes = [build.constant(np.int64(2)), build.constant(np.int32(3))]
    >>> vector_of(build, sizes).const_value.numpy()
    array([2, 3])
    >>> x = ir.val("x", dtype=ir.DataType.FLOAT, shape=("n", "m"))
    >>> vector_of(build, [build.size(x, 0), build.size(x, 1)]).producer().op_type
    'Shape'
    """
    parts: list[ir.Value] = []
    done = 0
    while done < len(elements):
        part, length = _longest_part(build, elements[done:], dtype)
        parts.append(part)
        done += length
    return concatenated(build, parts, dtype)


def _longest_part(build: Builder, elements: Sequence[ir.Value], dtype: str) -> tuple[ir.Value, int]:
    """Return a vector of the longest prefix with a single source, and its length."""
    sizes = [(sizes_in(element) or (None,))[0] for element in elements]
    for i in range(len(elements) if dtype == "int64" else 0):
        source, axis = _read_from(elements[i])
        dims = dims_of(source) or ()
        if source is None or axis < i or dims[axis - i : axis] != tuple(sizes[:i]):
            continue
        end = axis + 1
        while (
            end < len(dims) and end - axis + i < len(sizes) and dims[end] == sizes[end - axis + i]
        ):
            end += 1
        return build.sizes(source, axis - i, end), end - axis + i
    constants = []
    for element in elements:
        if element.const_value is None:
            break
        constants.append(element.const_value.numpy().astype(dtype))
    if constants:
        return build.constant(np.array(constants, dtype=dtype)), len(constants)
    return build.Unsqueeze(build.cast(elements[0], dtype), build.ints([0])), 1


def _read_from(size: ir.Value) -> tuple[ir.Value | None, int]:
    """Return the tensor and axis from which a 0-d size is read."""
    squeeze = size.producer()
    vector = squeeze.inputs[0] if squeeze is not None and squeeze.op_type == "Squeeze" else None
    shape = vector.producer() if vector is not None else None
    if shape is None or shape.op_type != "Shape":
        return None, 0
    return shape.inputs[0], attribute_of(shape, "start")


def concatenated(build: Builder, vectors: Sequence[ir.Value], dtype: str = "int64") -> ir.Value:
    """Join vectors; vectors that are known to be empty are left out.

    Examples
    --------
    >>> from pytensor_onnx.graph.builder import Builder
    >>> from pytensor_onnx.graph.scope import ModelScope
    >>> build = Builder(ModelScope(21))
    >>> parts = [build.ints(part) for part in ([], [1, 2], [3])]
    >>> concatenated(build, parts).const_value.numpy()
    array([1, 2, 3])
    """
    parts: list[ir.Value] = []
    for vector in vectors:
        if dims_of(vector) == (0,):
            continue
        if parts and parts[-1].const_value is not None and vector.const_value is not None:
            both = [parts[-1].const_value.numpy(), vector.const_value.numpy()]
            parts[-1] = build.constant(np.concatenate(both))
        else:
            parts.append(vector)
    if not parts:
        return build.constant(np.empty(0, dtype))
    return build.Concat(*parts, axis=0) if len(parts) > 1 else parts[0]


@onnx_funcify.register(DimShuffle)
def lower_dim_shuffle(op: DimShuffle, node: Apply, build: Builder, x: ir.Value) -> ir.Value:
    """Squeeze the dropped axes, transpose the kept ones, insert the new ones.

    A constant number gets its axes here, since rewrites do not run in the definition of a function.
    """
    if x.const_value is not None and x.const_value.size == 1:
        return build.constant(x.const_value.numpy().reshape((1,) * node.outputs[0].type.ndim))
    rank = node.inputs[0].type.ndim
    order = _in_place(op.new_order, rank)
    kept = sorted(axis for axis in order if axis != "x")
    permutation = [kept.index(axis) for axis in order if axis != "x"]
    dropped = [axis for axis in range(rank) if axis not in kept]
    inserted = [position for position, axis in enumerate(order) if axis == "x"]
    if dropped:
        x = build.Squeeze(x, build.ints(dropped))
    if permutation != sorted(permutation):
        x = build.Transpose(x, perm=permutation)
    if inserted:
        x = build.Unsqueeze(x, build.ints(inserted))
    return x


def _in_place(order: Sequence[int | str], rank: int) -> list[int | str]:
    """Return an order of axes in which dropped ones, of size one, stand for new ones.

    Examples
    --------
    >>> _in_place(("x", 0, "x"), 2)
    ['x', 0, 1]
    >>> _in_place((1, "x"), 2)
    [1, 'x']
    """
    kept = [axis for axis in order if isinstance(axis, int)]
    if kept != sorted(kept):
        return list(order)
    found: list[int | str] = []
    free, last = [axis for axis in range(rank) if axis not in kept], -1
    for position, axis in enumerate(order):
        chosen = axis
        if axis == "x":
            following = next((a for a in order[position:] if isinstance(a, int)), rank)
            chosen = next((a for a in free if last < a < following), "x")
        found.append(chosen)
        last = chosen if isinstance(chosen, int) else last
    return found


_LONGEST_CONSTANT = 4096


@onnx_funcify.register(Repeat)
def lower_repeat(
    op: Repeat, node: Apply, build: Builder, x: ir.Value, repeats: ir.Value
) -> ir.Value:
    """Gather each slice as often as its count; a single count applies to all slices."""
    return build.Gather(x, _repeated_positions(build, x, repeats, op.axis), axis=op.axis)


def _repeated_positions(build: Builder, x: ir.Value, repeats: ir.Value, axis: int) -> ir.Value:
    size, counts = build.dims(x)[axis], constant_ints(repeats)
    if isinstance(size, int) and counts is not None:
        total = sum(counts) * (size if len(counts) == 1 else 1)
        if len(counts) in (1, size) and min(counts, default=0) >= 0 and total <= _LONGEST_CONSTANT:
            return build.constant(np.repeat(np.arange(size), counts))
    each = _count_for_each(build, build.cast(repeats, "int64"), build.size(x, axis))
    return build.call("RepeatedPositions", _positions_by_count, each, variant="", shapes=[("n",)])


def _count_for_each(build: Builder, repeats: ir.Value, size: ir.Value) -> ir.Value:
    """Return one count for each slice, with a check of their number."""
    length = build.size(repeats, 0)
    if length is not size:
        fits = build.Or(build.Equal(length, size), build.Equal(length, 1))
        error = ValueError("repeats has another length than the axis that it is for")
        repeats = check_that(build, [fits], repeats, error)
        repeats = build.Expand(repeats, build.Unsqueeze(size, build.ints([0])))
    below = build.ReduceMax(build.cast(build.Less(repeats, 0), "int32"), keepdims=0)
    error = ValueError("repeats may not contain negative values.")
    return check_that(build, [build.LessOrEqual(below, 0)], repeats, error)


def _positions_by_count(build: Builder, counts: ir.Value) -> ir.Value:
    """Return each position as often as its count, from the cumulative counts."""
    ends = build.CumSum(counts, np.int64(0))
    total = build.ReduceSum(counts, build.ints([0]))
    places = build.ConstantOfShape(build.Add(total, 1), value=np.zeros(1, "int64"))
    ones = build.Expand(np.int64(1), build.Shape(ends))
    ended = build.ScatterND(places, build.Unsqueeze(ends, build.ints([1])), ones, reduction="add")
    return build.Slice(build.CumSum(ended, np.int64(0)), build.ints([0]), total)
