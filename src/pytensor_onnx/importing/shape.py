"""Shapes, sizes, joins and the creation of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import pytensor.scalar as ps
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Constant
from pytensor.raise_op import Assert
from pytensor.tensor.shape import Reshape
from pytensor.tensor.type import TensorType
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.importing.registry.axis_sizes import axis_sizes, quotient, value_of
from pytensor_onnx.importing.registry.known_values import (
    Size,
    as_vector,
    elements,
    filled,
    is_size,
    is_size_of,
    known,
    like,
    not_known,
    size,
    sizes,
    static,
    static_ints,
)
from pytensor_onnx.importing.registry.operator_imports import dtype_name, onnx_import
from pytensor_onnx.ops.networks.kept_operator import MICROSOFT
from pytensor_onnx.rewriting.engine.predicates import elementwise


@onnx_import("Shape")
def shape(x: TensorVariable, *, start: int = 0, end: int | None = None) -> TensorVariable:
    """Return the sizes of a range of axes; the known ones are numbers."""
    return as_vector(sizes(x)[start:end])


@onnx_import("Size")
def number_of_elements(x: TensorVariable) -> TensorVariable:
    """Multiply the sizes."""
    total: Size = 1
    for length in sizes(x):
        total = length * total
    return pt.constant(total, dtype="int64") if isinstance(total, int) else total


@onnx_import("Reshape")
def reshape(x: TensorVariable, shape: TensorVariable, *, allowzero: int = 0) -> TensorVariable:
    """Give the elements other axes; a zero keeps a size, and -1 takes the rest."""
    wanted = elements(shape)
    if len(wanted) == x.type.ndim and all(_is_own(x, a, n) for a, n in enumerate(wanted)):
        return x
    if not allowzero:
        wanted = [_kept_where_zero(x, axis, n) for axis, n in enumerate(wanted)]
    return _reshaped(x, wanted)


def _is_own(x: TensorVariable, axis: int, wanted: Size) -> bool:
    """Return whether a size is the own one, or the larger of it and 1.

    This package hides operands of operators from a runtime's optimizer by such a Reshape.
    """
    larger = None if isinstance(wanted, int) else elementwise(wanted, ps.Maximum)
    if larger is not None:
        first, second = larger.inputs
        value = known(second)
        return value is not None and value == 1 and is_size_of(first, x, axis)
    return is_size_of(wanted, x, axis)


def _kept_where_zero(x: TensorVariable, axis: int, wanted: Size) -> Size:
    if isinstance(wanted, int):
        return size(x, axis) if wanted == 0 else wanted
    if is_size(wanted) or axis >= x.type.ndim:
        return wanted
    return pt.switch(pt.eq(wanted, 0), size(x, axis), wanted)


def _reshaped(x: TensorVariable, wanted: Sequence[Size]) -> TensorVariable:
    """Reshape; a known number of elements gives the size of -1."""
    if not wanted:
        return x.reshape(())
    if -1 in [n for n in wanted if isinstance(n, int)]:
        others = [n for n in wanted if not (isinstance(n, int) and n == -1)]
        count, rest = _static_product(sizes(x)), _static_product(others)
        if count is not None and rest:
            found: int | None = count // rest
        else:
            found = quotient(axis_sizes(x), [value_of(n) for n in others])
        if found is not None:
            wanted = [found if isinstance(n, int) and n == -1 else n for n in wanted]
        elif rest == 1 and len(others) == len(wanted) - 1 and x.type.ndim == 1:
            wanted = [size(x, 0) if isinstance(n, int) and n == -1 else n for n in wanted]
    shape = as_vector(wanted)
    if isinstance(shape, Constant):
        return x.reshape(shape, ndim=len(wanted))
    # PyTensor would look for known values in the graph of each size.
    known_sizes = [n if isinstance(n, int) and n >= 0 else None for n in wanted]
    if known_sizes.count(None) == 1 and None not in x.type.shape:
        count, rest = _static_product(sizes(x)), _static_product([n for n in known_sizes if n])
        known_sizes = [count // rest if n is None and count and rest else n for n in known_sizes]
    of_type = TensorType(x.type.dtype, known_sizes)
    return Apply(Reshape(len(wanted)), [x, shape], [of_type()]).outputs[0]


def _static_product(values: Sequence[Size]) -> int | None:
    numbers = [n for n in values if isinstance(n, int)]
    return int(np.prod(numbers, dtype="int64")) if len(numbers) == len(values) else None


@onnx_import("Flatten")
def flatten(x: TensorVariable, *, axis: int = 1) -> TensorVariable:
    """Make a matrix of the axes before and after one."""
    axis = axis + x.type.ndim if axis < 0 else axis
    parts = [sizes(x)[:axis], sizes(x)[axis:]]
    products = [_static_product(part) for part in parts]
    single = [p[0] if len(p) == 1 else n for p, n in zip(parts, products, strict=True)]
    if single[0] is None and single[1] is None:
        single[0] = pt.prod(pt.stack(parts[0]))
    return _reshaped(x, [-1 if n is None else n for n in single])


@onnx_import("Transpose")
def transpose(x: TensorVariable, *, perm: tuple[int, ...] | None = None) -> TensorVariable:
    """Permute the axes, by default to the reverse order."""
    order = tuple(reversed(range(x.type.ndim))) if perm is None else perm
    return x if order == tuple(range(x.type.ndim)) else x.dimshuffle(order)


@onnx_import("Squeeze")
def squeeze_by_attribute(
    x: TensorVariable, *, axes: tuple[int, ...] | None = None, rank: int | None = None
) -> TensorVariable:
    """Remove axes of size one."""
    return _squeezed(x, axes, rank)


@onnx_import("Squeeze", since=13)
def squeeze(
    x: TensorVariable, axes: TensorVariable | None = None, *, rank: int | None = None
) -> TensorVariable:
    """Remove axes of size one."""
    return _squeezed(x, static_ints(axes, "axes"), rank)


def _squeezed(x: TensorVariable, axes: Sequence[int] | None, rank: int | None) -> TensorVariable:
    if axes is None:
        axes = [axis for axis, length in enumerate(x.type.shape) if length == 1]
        is_open = [axis for axis, length in enumerate(x.type.shape) if length is None]
        # The rank of the result tells whether open axes are of size one: none of them, or all.
        count = None if rank is None else x.type.ndim - rank - len(axes)
        if is_open and count not in (0, len(is_open)):
            reason = "it removes all axes of size one, and the size of some is not known"
            raise not_known(reason, *(size(x, axis) for axis in is_open))
        axes = [*axes, *is_open] if count else axes
    removed = {axis % x.type.ndim for axis in axes}
    for axis in removed:
        if x.type.shape[axis] is None:
            x = pt.specify_shape(x, [1 if a == axis else None for a in range(x.type.ndim)])
    return x.dimshuffle([axis for axis in range(x.type.ndim) if axis not in removed])


@onnx_import("Unsqueeze")
def unsqueeze_by_attribute(x: TensorVariable, *, axes: tuple[int, ...]) -> TensorVariable:
    """Insert axes of size one."""
    return _unsqueezed(x, axes)


@onnx_import("Unsqueeze", since=13)
def unsqueeze(x: TensorVariable, axes: TensorVariable) -> TensorVariable:
    """Insert axes of size one."""
    return _unsqueezed(x, static_ints(axes, "axes") or [])


@onnx_import("ExpandDims", domain=MICROSOFT)
def expand_dims(x: TensorVariable, axis: TensorVariable) -> TensorVariable:
    """Insert one axis of size one."""
    return _unsqueezed(x, [static(axis, "its axis").item()])


def _unsqueezed(x: TensorVariable, axes: Sequence[int]) -> TensorVariable:
    rank = x.type.ndim + len(axes)
    inserted = {axis % rank for axis in axes}
    own = iter(range(x.type.ndim))
    return x.dimshuffle(["x" if axis in inserted else next(own) for axis in range(rank)])


@onnx_import("Concat")
def concatenate(*parts: TensorVariable, axis: int) -> TensorVariable:
    """Join along an axis."""
    return parts[0] if len(parts) == 1 else pt.concatenate(parts, axis=axis)


@onnx_import("Split")
def split_by_attribute(
    x: TensorVariable, *, axis: int = 0, split: tuple[int, ...] | None = None, outputs: int = 1
) -> list[TensorVariable]:
    """Divide along an axis, into equal parts by default."""
    return _parts(x, axis, list(split) if split else None, outputs)


@onnx_import("Split", since=13)
def split_by_operand(
    x: TensorVariable,
    lengths: TensorVariable | None = None,
    *,
    axis: int = 0,
    num_outputs: int | None = None,
    outputs: int = 1,
) -> list[TensorVariable]:
    """Divide along an axis, into equal parts by default."""
    return _parts(x, axis, None if lengths is None else elements(lengths), outputs)


def _parts(
    x: TensorVariable, axis: int, lengths: Sequence[Size] | None, count: int
) -> list[TensorVariable]:
    if lengths is None:
        each = -(-size(x, axis) // count)
        lengths = [each] * (count - 1)
        lengths = [*lengths, size(x, axis) - each * (count - 1)]
    if len(lengths) == 1:
        return [x]
    return pt.split(x, as_vector(lengths), n_splits=len(lengths), axis=axis % x.type.ndim)


@onnx_import("Expand")
def expand(
    x: TensorVariable, shape: TensorVariable, *, kept_axes: frozenset[int] = frozenset()
) -> TensorVariable:
    """Broadcast an array and a shape to each other."""
    wanted = elements(shape)
    rank = max(len(wanted), x.type.ndim)
    x = x.dimshuffle([*["x"] * (rank - x.type.ndim), *range(x.type.ndim)])
    wanted = [1] * (rank - len(wanted)) + list(wanted)
    for axis, number in enumerate(wanted):
        is_kept = axis - rank in kept_axes or is_size_of(number, x, axis)
        if x.type.shape[axis] is None and not is_kept:
            x = _repeated(x, axis, number)
    if all(isinstance(n, int) and n == 1 for n in wanted):
        return x
    lengths = [n if x.type.shape[a] == 1 else size(x, a) for a, n in enumerate(wanted)]
    return filled(x, lengths)


def _repeated(x: TensorVariable, axis: int, wanted: Size) -> TensorVariable:
    """Repeat an axis of unknown size, if that is 1 at run time, and keep it otherwise."""
    if isinstance(wanted, int) and wanted == 1:
        return x
    own = x.shape[axis]
    length = wanted if isinstance(wanted, int) else pt.switch(pt.eq(wanted, 1), own, wanted)
    fits = Assert(f"axis {axis} is broadcast to another size, but its size is not 1")(
        pt.arange(length), pt.eq(own, 1) | pt.eq(own, length)
    )
    repeated = x.take(pt.minimum(fits, own - 1), axis=axis)
    if not isinstance(wanted, int):
        return repeated
    return pt.specify_shape(repeated, [wanted if a == axis else None for a in range(x.type.ndim)])


@onnx_import("Tile")
def tile(x: TensorVariable, repeats: TensorVariable) -> TensorVariable:
    """Repeat the whole array along each axis."""
    counts = elements(repeats)
    tiled = [
        axis for axis, count in enumerate(counts) if not (isinstance(count, int) and count == 1)
    ]
    if not tiled:
        return x
    own, order = sizes(x), list[Any]()
    lengths, whole = list[Size](), list[Size]()
    for axis, count in enumerate(counts):
        order += ["x", axis] if axis in tiled else [axis]
        lengths += [count, own[axis]] if axis in tiled else [own[axis]]
        whole.append(_product(count, own[axis]))
    return _reshaped(filled(x.dimshuffle(order), lengths), whole)


def _product(a: Size, b: Size) -> Size:
    return b if isinstance(a, int) and a == 1 else a if isinstance(b, int) and b == 1 else a * b


@onnx_import("ConstantOfShape")
def constant_of_shape(shape: TensorVariable, *, value: np.ndarray | None = None) -> TensorVariable:
    """Return an array of one number, float32 zero by default."""
    number = np.float32(0) if value is None else value.reshape(())
    return filled(number, elements(shape))


@onnx_import("Range")
def ranging(start: TensorVariable, limit: TensorVariable, step: TensorVariable) -> TensorVariable:
    """Return numbers from a start to before a limit."""
    start, limit, step = (v.reshape(()) for v in (start, limit, step))
    if start.type.dtype.startswith("float") and any(known(v) is None for v in (start, limit, step)):
        # PyTensor adds the steps up, ONNX multiplies them.
        count = pt.maximum(pt.ceil((limit - start) / step), like(start, 0)).astype("int64")
        return start + pt.arange(count).astype(start.type.dtype) * step
    return pt.arange(start, limit, step, dtype=start.type.dtype)


@onnx_import("Range", domain=MICROSOFT)
def ranging_by_one(
    start: TensorVariable, limit: TensorVariable, step: TensorVariable | None = None
) -> TensorVariable:
    """Return numbers from a start to before a limit, whose difference is one by default."""
    return ranging(start, limit, like(start, 1) if step is None else step)


@onnx_import("EyeLike")
def eye_like(x: TensorVariable, *, dtype: int | None = None, k: int = 0) -> TensorVariable:
    """Return ones on a diagonal of a matrix of the shape of another."""
    name = x.type.dtype if dtype is None else dtype_name(ir.DataType(dtype))
    return pt.eye(size(x, 0), size(x, 1), k, dtype=name)


@onnx_import("Pad")
def pad_by_attributes(
    x: TensorVariable, *, pads: tuple[int, ...], mode: str = "constant", value: float = 0.0
) -> TensorVariable:
    """Extend the axes by numbers of attributes."""
    rank = x.type.ndim
    return _padded(x, list(zip(pads[:rank], pads[rank:], strict=True)), mode, like(x, value))


@onnx_import("Pad", since=11)
def pad(
    x: TensorVariable,
    pads: TensorVariable,
    value: TensorVariable | None = None,
    axes: TensorVariable | None = None,
    *,
    mode: str = "constant",
) -> TensorVariable:
    """Extend axes before and after; a negative number shortens them."""
    numbers = elements(pads)
    count = len(numbers) // 2
    padded = static_ints(axes, "axes")
    padded = list(range(x.type.ndim)) if padded is None else [a % x.type.ndim for a in padded]
    pairs: list[tuple[Size, Size]] = [(0, 0)] * x.type.ndim
    for position, axis in enumerate(padded):
        pairs[axis] = (numbers[position], numbers[position + count])
    filler = like(x, 0) if value is None else value.reshape(())
    return _padded(x, pairs, mode, filler)


@onnx_import("Pad", domain=MICROSOFT)
def pad_by_row(
    x: TensorVariable,
    pads: TensorVariable,
    value: TensorVariable | None = None,
    *,
    mode: str = "constant",
) -> TensorVariable:
    """Extend all axes, by numbers that may be the row of a matrix."""
    return pad(x, pads.reshape((-1,)), value, mode=mode)


def _padded(
    x: TensorVariable, pairs: Sequence[tuple[Size, Size]], mode: str, filler: Any
) -> TensorVariable:
    """Extend by indices into the array: those of each mode along one axis after the other."""
    for axis, (before, after) in enumerate(pairs):
        if _is_zero(before) and _is_zero(after):
            continue
        if mode == "constant":
            x = _padded_by_constant(x, axis, before, after, filler)
            continue
        length = size(x, axis)
        positions = pt.arange(-before, length + after)
        if mode == "edge":
            positions = pt.clip(positions, 0, length - 1)
        elif mode == "wrap":
            positions = pt.mod(positions, length)
        else:
            last = length - 1
            period = 2 * last if isinstance(last, int) else pt.maximum(2 * last, 1)
            positions = pt.mod(positions, max(period, 1) if isinstance(period, int) else period)
            positions = last - pt.abs(positions - last)
        x = x.take(positions, axis=axis)
    return x


def _padded_by_constant(
    x: TensorVariable, axis: int, before: Size, after: Size, filler: Any
) -> TensorVariable:
    cut = [_negative_part(before), _negative_part(after)]
    if not all(map(_is_zero, cut)):
        inner = slice(cut[0], size(x, axis) - cut[1])
        x = x[(*(slice(None),) * axis, inner)]
    parts = [x]
    for position, count in ((0, before), (len(parts) + 1, after)):
        if isinstance(count, int) and count <= 0:
            continue
        number = count if isinstance(count, int) else pt.maximum(count, 0)
        shape = [number if a == axis else size(x, a) for a in range(x.type.ndim)]
        parts.insert(position, filled(pt.as_tensor(filler).astype(x.type.dtype), shape))
    return parts[0] if len(parts) == 1 else pt.concatenate(parts, axis=axis)


def _negative_part(count: Size) -> Size:
    if isinstance(count, int):
        return max(-count, 0)
    return 0 if is_size(count) else pt.maximum(-count, 0)


def _is_zero(count: Size) -> bool:
    return isinstance(count, int) and count == 0


@onnx_import("DepthToSpace")
def depth_to_space(x: TensorVariable, *, blocksize: int, mode: str = "DCR") -> TensorVariable:
    """Move blocks of channels to the two spatial axes."""
    n, c, h, w = sizes(x)
    depth, b = c // (blocksize * blocksize), blocksize
    if mode == "DCR":
        blocks = x.reshape((n, b, b, depth, h, w)).dimshuffle(0, 3, 4, 1, 5, 2)
    else:
        blocks = x.reshape((n, depth, b, b, h, w)).dimshuffle(0, 1, 4, 2, 5, 3)
    return blocks.reshape((n, depth, h * b, w * b))


@onnx_import("SpaceToDepth")
def space_to_depth(x: TensorVariable, *, blocksize: int, mode: str = "DCR") -> TensorVariable:
    """Move blocks of the two spatial axes to channels."""
    n, c, h, w = sizes(x)
    b = blocksize
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    blocks = x.reshape((n, c, h // b, b, w // b, b)).dimshuffle(order)
    return blocks.reshape((n, c * b * b, h // b, w // b))


@onnx_import("CenterCropPad")
def center_crop_pad(
    x: TensorVariable, shape: TensorVariable, *, axes: tuple[int, ...] | None = None
) -> TensorVariable:
    """Cut or extend axes to sizes, equally on both sides."""
    wanted = elements(shape)
    cropped = range(x.type.ndim) if axes is None else [a % x.type.ndim for a in axes]
    for axis, target in zip(cropped, wanted, strict=True):
        length = size(x, axis)
        if not (isinstance(length, int) and isinstance(target, int)):
            reason = "the sizes before and after must be known at import"
            raise not_known(reason, length, target)
        if length > target:
            start = (length - target) // 2
            x = x[(*(slice(None),) * axis, slice(start, start + target))]
        else:
            before = (target - length) // 2
            pairs = [(0, 0)] * x.type.ndim
            pairs[axis] = (before, target - length - before)
            x = _padded(x, pairs, "constant", like(x, 0))
    return x


@onnx_import("ReverseSequence")
def reverse_sequence(
    x: TensorVariable, lengths: TensorVariable, *, batch_axis: int = 1, time_axis: int = 0
) -> TensorVariable:
    """Reverse the first steps of each sequence."""
    steps = pt.arange(size(x, time_axis))
    steps = steps[:, None] if time_axis == 0 else steps[None, :]
    ends = lengths[None, :] if time_axis == 0 else lengths[:, None]
    order = pt.switch(steps < ends, ends - 1 - steps, steps)
    batch = pt.arange(size(x, batch_axis))
    batch = batch[None, :] if time_axis == 0 else batch[:, None]
    return x[(order, batch) if time_axis == 0 else (batch, order)]
