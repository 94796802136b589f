"""Shapes and sizes: operators that arrange, join, repeat and create arrays."""

from collections.abc import Sequence

import onnx_ir as ir

from pytensor_onnx.operators.dims import (
    Dim,
    Dims,
    broadcast,
    constant_ints,
    dims_of,
    product_dim,
    quotient_dim,
    sizes_in,
    sum_dim,
)
from pytensor_onnx.operators.facts import (
    ALL,
    LARGEST_SIZE,
    Attributes,
    Interval,
    Operands,
    Operator,
    Pairs,
    Shapes,
    moving,
    same_as_first,
)

_INTEGERS = (ir.DataType.INT16, ir.DataType.INT32, ir.DataType.INT64)


def _transposition(inputs: Operands, attributes: Attributes) -> Dims | None:
    """Return the dimensions of Transpose."""
    dims = dims_of(inputs[0])
    if dims is None:
        return None
    perm = attributes.get("perm", range(len(dims))[::-1])
    return tuple(dims[i] for i in perm)


def _unsqueezing(inputs: Operands, attributes: Attributes) -> Dims | None:
    """Return the dimensions of Unsqueeze."""
    dims, axes = dims_of(inputs[0]), constant_ints(inputs[1])
    if dims is None or axes is None:
        return None
    rank = len(dims) + len(axes)
    new = {axis % rank for axis in axes}
    rest = iter(dims)
    return tuple(1 if axis in new else next(rest) for axis in range(rank))


def _squeezing(inputs: Operands, attributes: Attributes) -> Dims | None:
    """Return the dimensions of Squeeze."""
    dims = dims_of(inputs[0])
    axes = constant_ints(inputs[1] if len(inputs) > 1 else None)
    if dims is None or axes is None:
        return None
    gone = {axis % len(dims) for axis in axes}
    return tuple(d for axis, d in enumerate(dims) if axis not in gone)


def _concatenation(inputs: Operands, attributes: Attributes) -> Dims | None:
    """Return the dimensions of Concat."""
    shapes = [dims_of(value) for value in inputs]
    if any(dims is None for dims in shapes):
        return None
    known = [dims for dims in shapes if dims is not None]
    axis = attributes["axis"] % len(known[0])
    size = sum_dim([dims[axis] for dims in known])
    return tuple(
        size if i == axis else next((s[i] for s in known if isinstance(s[i], int)), d)
        for i, d in enumerate(known[0])
    )


def _size_or_unknown(size: Dim) -> Dim:
    return None if isinstance(size, int) and size < 0 else size


def _filling(inputs: Operands, attributes: Attributes) -> Dims | None:
    """Return the dimensions of ConstantOfShape."""
    sizes = sizes_in(inputs[0])
    return None if sizes is None else tuple(map(_size_or_unknown, sizes))


def _reshaping(inputs: Operands, attributes: Attributes) -> Dims | None:
    """Return the dimensions of Reshape."""
    sizes, dims = sizes_in(inputs[1]), dims_of(inputs[0])
    if sizes is None:
        return None
    if not attributes["allowzero"]:
        copied = (*(dims or ()), *[None] * len(sizes))
        sizes = tuple(copied[i] if size == 0 else size for i, size in enumerate(sizes))
    if -1 in sizes and dims is not None:
        rest = [size for size in sizes if size != -1]
        sizes = tuple(quotient_dim(dims, rest) if size == -1 else size for size in sizes)
    return tuple(map(_size_or_unknown, sizes))


def _flattening(inputs: Operands, attributes: Attributes) -> Dims | None:
    """Return the dimensions of Flatten."""
    dims, axis = dims_of(inputs[0]), attributes["axis"]
    return None if dims is None else (product_dim(dims[:axis]), product_dim(dims[axis:]))


def _expansion(inputs: Operands, attributes: Attributes) -> Dims | None:
    """Return the dimensions of Expand."""
    dims, sizes = dims_of(inputs[0]), sizes_in(inputs[1])
    return None if dims is None or sizes is None else broadcast(dims, sizes)


def _counting(inputs: Operands, attributes: Attributes) -> Dims:
    """Return the dimensions of Range."""
    if constant_ints(inputs[0]) == [0] and constant_ints(inputs[2]) == [1]:
        sizes = sizes_in(inputs[1])
        return (None,) if sizes is None else tuple(map(_size_or_unknown, sizes))
    ends = [constant_ints(value) for value in inputs]
    if inputs[0] is None or inputs[0].dtype not in _INTEGERS or None in ends:
        return (None,)
    return (len(range(*(end[0] for end in ends if end))),)


def _shape(inputs: Operands, attributes: Attributes) -> Dims | None:
    """Return the dimensions of Shape."""
    dims = dims_of(inputs[0])
    if dims is None:
        return (None,)
    return (len(dims[attributes["start"] : attributes.get("end")]),)


def _scalar(inputs: Operands, attributes: Attributes) -> Dims:
    """Return no dimensions, for a 0-d result."""
    return ()


def _padding(inputs: Operands, attributes: Attributes) -> Dims | None:
    """Return the dimensions of Pad."""
    dims, pads = dims_of(inputs[0]), constant_ints(inputs[1])
    if dims is None:
        return None
    if pads is None or len(pads) != 2 * len(dims):
        return (None,) * len(dims)
    added = [before + after for before, after in zip(pads, pads[len(dims) :], strict=False)]
    return tuple(sum_dim(pair) for pair in zip(dims, added, strict=True))


def _tiling(inputs: Operands, attributes: Attributes) -> Dims | None:
    """Return the dimensions of Tile."""
    dims, repeats = dims_of(inputs[0]), sizes_in(inputs[1])
    if dims is None:
        return None
    if repeats is None or len(repeats) != len(dims):
        return (None,) * len(dims)
    return tuple(product_dim(pair) for pair in zip(dims, repeats, strict=True))


def _equal_beside(inputs: Shapes, attributes: Attributes) -> Pairs:
    """Yield the sizes of the axes beside the one that Concat joins."""
    first, *others = inputs
    for dims in others:
        for i, pair in enumerate(zip(first or (), dims or (), strict=False)):
            if i != attributes["axis"] % len(first or ()):
                yield pair


def _range(_: ir.Node, operands: Sequence[Interval]) -> Interval:
    """Count from the start, by no more steps than an array has elements."""
    (low, high), (first, last), (least, most) = operands
    if least < 0:
        return min(low, first), max(high, last)
    return low, min(max(high, last), high + LARGEST_SIZE * most)


OPERATORS: dict[str, Operator] = {
    "Concat": moving(_concatenation, ALL, equal=_equal_beside),
    "ConstantOfShape": Operator(shape=_filling, cost="copy", is_sized_by_values=True),
    "DepthToSpace": moving(),
    "Expand": moving(_expansion),
    "EyeLike": Operator(shape=same_as_first),
    "Flatten": moving(_flattening, cost="view"),
    "OneHot": Operator(is_sized_by_values=True),
    "Pad": Operator(shape=_padding, is_sized_by_values=True),
    "Range": Operator(shape=_counting, bounds=_range, cost="copy", is_sized_by_values=True),
    "Reshape": moving(_reshaping, cost="view"),
    "Shape": Operator(shape=_shape, positions=ALL, cost="view"),
    "Size": Operator(shape=_scalar, positions=ALL, cost="view"),
    "SpaceToDepth": moving(),
    "Split": moving(),
    "Squeeze": moving(_squeezing, cost="view"),
    "Tile": moving(_tiling, is_sized_by_values=True),
    "Transpose": moving(_transposition),
    "Trilu": Operator(shape=same_as_first),
    "Unsqueeze": moving(_unsqueezing, cost="view"),
}
