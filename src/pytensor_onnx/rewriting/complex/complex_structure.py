"""Shapes, indices, reductions and searches of complex arrays."""

from collections.abc import Sequence

import numpy as np
import pytensor.tensor as pt
from pytensor.conditional.op import ifelse
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import Op
from pytensor.tensor.basic import (
    Alloc,
    AllocEmpty,
    ARange,
    ExtractDiag,
    Join,
    MakeVector,
    Nonzero,
    PermuteRowElements,
    ScalarFromTensor,
    Split,
    TensorFromScalar,
)
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import CAReduce, DimShuffle
from pytensor.tensor.extra_ops import (
    CumOp,
    FillDiagonal,
    FillDiagonalOffset,
    Repeat,
    SearchsortedOp,
    Unique,
)
from pytensor.tensor.math import Argmax, Max, Min, Prod, Sum
from pytensor.tensor.reshape import JoinDims, SplitDims
from pytensor.tensor.shape import Reshape, Shape, Shape_i, SpecifyShape
from pytensor.tensor.sort import ArgSortOp, SortOp
from pytensor.tensor.subtensor import (
    AdvancedIncSubtensor,
    AdvancedSubtensor,
    IncSubtensor,
    Subtensor,
)
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.encodings.complex_numbers import REAL
from pytensor_onnx.encodings.registry import Tensors
from pytensor_onnx.functions.complex.complex_arithmetic import cumprod, each, prod, select
from pytensor_onnx.ops.elementwise import ChooseFrom
from pytensor_onnx.rewriting.complex.complex_elementwise import (
    ENCODING,
    Parts,
    is_complex,
    joined,
    known_parts,
    operand,
    operands,
    parts_of,
    real_dtype,
)

# Ops that count axes from the first, with the operands that are values and not positions. They
# leave a last axis alone.
_LEADING: dict[type[Op], slice] = {
    Subtensor: slice(1),
    AdvancedSubtensor: slice(1),
    IncSubtensor: slice(2),
    AdvancedIncSubtensor: slice(2),
    Join: slice(None),
    JoinDims: slice(1),
    Split: slice(1),
    SplitDims: slice(1),
}
_OTHER: dict[type[Op], slice] = {
    ChooseFrom: slice(1, None),
    ExtractDiag: slice(1),
    FillDiagonal: slice(2),
    FillDiagonalOffset: slice(2),
    PermuteRowElements: slice(1),
    Repeat: slice(1),
}
# Those whose sizes differ from batch to batch, as far as PyTensor knows.
_BATCHED: dict[type[Op], slice] = {
    Alloc: slice(1),
    MakeVector: slice(None),
    Reshape: slice(1),
    SpecifyShape: slice(1),
}


@ENCODING.rewrites(*_LEADING)
def move_pairs(op: Op, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Move pairs by the Op itself, or each part where the parts are known."""
    values = values_of(op)
    assert values is not None
    if not any(map(is_complex, node.outputs)):
        return _move_real(op, node, inputs)
    if known_parts(inputs[0][0]) is not None:
        return by_part(op, node, inputs, values)
    arguments = [tensors[0] for tensors in inputs]
    dtype = real_dtype(*node.outputs)
    for i in range(*values.indices(len(arguments))):
        variable = node.inputs[i]
        if is_complex(variable):
            arguments[i] = pt.cast(arguments[i], dtype)
        else:
            real, imag = operand(variable, inputs[i], dtype)
            arguments[i] = joined(Parts(real, pt.zeros_like(real) + imag))
    return [[pairs] for pairs in op.make_node(*arguments).outputs]


def _move_real(op: Op, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Set the real parts of numbers in an array that is real, as PyTensor does."""
    arguments = [
        parts_of(tensors[0]).real if is_complex(variable) else tensors[0]
        for variable, tensors in zip(node.inputs, inputs, strict=True)
    ]
    return [[x] for x in op.make_node(*arguments).outputs]


@ENCODING.rewrites(*_OTHER)
def move_parts(op: Op, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Move the real and the imaginary parts by the Op itself."""
    values = values_of(op)
    assert values is not None
    return by_part(op, node, inputs, values)


@ENCODING.rewrites(DimShuffle)
def shuffle(op: DimShuffle, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return the pairs with their axes in another order."""
    if known_parts(inputs[0][0]) is not None:
        return by_part(op, node, inputs, slice(1))
    return [[inputs[0][0].dimshuffle(*op.new_order, node.inputs[0].type.ndim)]]


@ENCODING.rewrites(Reshape)
def reshape(op: Reshape, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return the pairs in another shape; a size of -1 stands for the remaining numbers."""
    (pairs,), (sizes,) = inputs
    if known_parts(pairs) is not None:
        return by_part(op, node, inputs, slice(1))
    return [[pairs.reshape((*(sizes[i] for i in range(op.ndim)), 2), ndim=op.ndim + 1)]]


@ENCODING.rewrites(Alloc)
def allocate(op: Alloc, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return pairs in the shape."""
    (pairs,), *sizes = inputs
    if known_parts(pairs) is not None:
        return by_part(op, node, inputs, slice(1))
    return [[pt.alloc(pairs, *(size for (size,) in sizes), 2)]]


@ENCODING.rewrites(AllocEmpty)
def allocate_empty(op: AllocEmpty, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return pairs that have no values yet."""
    return [[AllocEmpty(REAL[op.dtype])(*(size for (size,) in inputs), 2)]]


@ENCODING.rewrites(SpecifyShape)
def specify_shape(op: SpecifyShape, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return pairs whose sizes are known."""
    (pairs,), *sizes = inputs
    return [[pt.specify_shape(pairs, [*(size for (size,) in sizes), 2])]]


@ENCODING.rewrites(MakeVector)
def make_vector(op: MakeVector, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return the pairs of single numbers."""
    dtype = REAL[op.dtype]
    parts = [operand(v, x, dtype) for v, x in zip(node.inputs, inputs, strict=True)]
    return [[joined(Parts(*(MakeVector(dtype)(*part) for part in zip(*parts, strict=True))))]]


@ENCODING.rewrites(Shape, Shape_i)
def shape(op: Op, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return sizes of the real part."""
    return [[op(parts_of(inputs[0][0]).real)]]


@ENCODING.rewrites(Nonzero)
def nonzero(op: Nonzero, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return the positions of numbers with a part that is not zero."""
    real, imag = parts_of(inputs[0][0])
    return [[x] for x in op.make_node(pt.neq(real, 0) | pt.neq(imag, 0)).outputs]


@ENCODING.rewrites(TensorFromScalar, ScalarFromTensor)
def same_pairs(op: Op, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return the pairs; a scalar type has a tensor of pairs, too."""
    return [inputs[0]]


def values_of(op: Op, *, in_batch: bool = False) -> slice | None:
    """Return the operands whose elements an Op moves, or None if it does more than move them."""
    kinds = {**_LEADING, **_OTHER, **(_BATCHED if in_batch else {})}
    return next((kinds[kind] for kind in type(op).__mro__ if kind in kinds), None)


def by_part(
    op: Op, node: Apply, inputs: Sequence[Tensors], values: slice
) -> list[Sequence[Variable]]:
    """Apply an Op to the real and to the imaginary parts of the operands that are values."""
    dtype = real_dtype(*node.outputs)
    sides: list[list[TensorVariable]] = [[tensors[0] for tensors in inputs] for _ in range(2)]
    for i in range(*values.indices(len(inputs))):
        real, imag = operand(node.inputs[i], inputs[i], dtype)
        if not is_complex(node.inputs[i]):
            imag = pt.zeros_like(real)
        sides[0][i], sides[1][i] = real, imag
    results = [op.make_node(*side).outputs for side in sides]
    return [[joined(Parts(*parts))] for parts in zip(*results, strict=True)]


@ENCODING.rewrites(SortOp)
def sort(op: SortOp, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return the numbers at the positions of `argsort`."""
    z = parts_of(inputs[0][0])
    return [[joined(taken(z, ascending(z, op.axis), op.axis))]]


@ENCODING.rewrites(ArgSortOp)
def argsort(op: ArgSortOp, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return the positions of the numbers in ascending order, stable for equal numbers."""
    return [[ascending(parts_of(inputs[0][0]), op.axis)]]


@ENCODING.rewrites(Max, Min)
def extreme(op: Max | Min, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return the first extreme number along axes."""
    z = parts_of(reduced_last(inputs[0][0], op.axis))
    if op.initial:
        z = _with_first(z, op.scalar_op.identity)
    position = _first_extreme(z, type(op)([-1]))
    return [[joined(taken(z, position[..., None], -1)[..., 0])]]


@ENCODING.rewrites(Argmax)
def argmax(op: Argmax, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return the position of the first largest number along axes.

    The maxima of parts have an initial value, so that the position of none is the error.
    """
    z = parts_of(reduced_last(inputs[0][0], op.axis))
    return [[_first_extreme(z, Max([-1], initial=True))]]


def ascending(z: Parts, axis: int) -> TensorVariable:
    """Return positions in ascending order; NaN imaginary parts are last, but for NaN real parts.

    Stable sorts by the least important key first are a sort by all keys.
    """
    order = pt.argsort(z.imag, axis=axis, stable=True)
    order = _sorted_further(order, z.real, axis)
    is_real_nan, is_imag_nan = pt.isnan(z.real), pt.isnan(z.imag)
    group = pt.switch(is_real_nan, np.int32(2), pt.cast(is_imag_nan, "int32"))
    return ifelse(pt.any(is_imag_nan), _sorted_further(order, group, axis), order)


def taken(z: Parts, positions: TensorVariable, axis: int) -> Parts:
    """Return the numbers at positions along an axis."""
    return each(lambda part: pt.take_along_axis(part, positions, axis), z)


def _sorted_further(order: TensorVariable, key: TensorVariable, axis: int) -> TensorVariable:
    keys = pt.take_along_axis(key, order, axis)
    return pt.take_along_axis(order, pt.argsort(keys, axis=axis, stable=True), axis)


def _first_extreme(z: Parts, reduction: Max | Min) -> TensorVariable:
    """Return the position of the first NaN along the last axis, or of the first extreme number."""
    is_nan = pt.isnan(z.real) | pt.isnan(z.imag)
    worst = pt.constant(reduction.scalar_op.identity, dtype=z.real.type.dtype)
    is_candidate = ~is_nan
    for part in z:
        known = pt.switch(is_candidate, part, worst)
        is_candidate = is_candidate & pt.eq(known, reduction(known)[..., None])
    score = pt.switch(is_nan, np.int32(2), pt.cast(is_candidate, "int32"))
    return pt.argmax(score, axis=-1)


def _with_first(z: Parts, number: float) -> Parts:
    """Return numbers after a real one along the last axis."""
    *batch, _ = z.real.shape
    first = Parts(*(pt.full((*batch, 1), x, z.real.type.dtype) for x in (number, 0.0)))
    return each(lambda x, y: pt.concatenate([x, y], axis=-1), first, z)


@ENCODING.rewrites(ARange)
def number(op: ARange, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors] | None:
    """Return a range as NumPy does: of the shorter of the lengths of the two parts.

    The length is rounded before PyTensor sees it, which infers the size of a range from zero in
    steps of one without rounding up. Rewrites of float64 replace the difference of the first two
    numbers, which NumPy takes for the step, by the step itself, which is more accurate.
    """
    if op.dtype not in REAL:
        return None
    dtype = REAL[op.dtype]
    start, stop, step = operands(node.inputs, inputs, "float64")
    lengths = each(pt.ceil, _quotient(stop - start, step))
    length = lengths.real
    if any(map(is_complex, node.inputs)):
        length = pt.minimum(length, lengths.imag)
    count = ARange(dtype)(0.0, pt.maximum(length, 0.0), 1.0)
    first, second = (each(lambda x: pt.cast(x, dtype), z) for z in (start, start + step))
    return [[joined(each(lambda x, change: x + count * change, first, second - first))]]


def _quotient(x: Parts, y: Parts) -> Parts:
    """Return a quotient as Python rounds it, whose numbers NumPy computes the length with."""
    is_imag = pt.abs(y.real) < pt.abs(y.imag)
    large, small = select(is_imag, y.imag, y.real), select(is_imag, y.real, y.imag)
    ratio = small / large
    real = select(is_imag, x.real * ratio + x.imag, x.real + x.imag * ratio)
    imag = select(is_imag, x.imag * ratio - x.real, x.imag - x.real * ratio)
    divisor = large + small * ratio
    return Parts(real / divisor, imag / divisor)


@ENCODING.rewrites(Sum)
def add(op: Sum, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return the sums of the parts, or of the real part for a real result."""
    (output,) = node.outputs
    accumulator = _accumulator(op, node)
    dtype = REAL.get(output.type.dtype, output.type.dtype)
    given = parts_of(inputs[0][0]) if is_complex(node.inputs[0]) else inputs[0]
    reduction = Sum(axis=op.axis, dtype=accumulator)
    sums = [pt.cast(reduction(pt.cast(part, accumulator)), dtype) for part in given]
    real, imag = sums[0], sums[1] if len(sums) == 2 else pt.zeros_like(sums[0])
    return [[joined(Parts(real, imag)) if is_complex(output) else real]]


@ENCODING.rewrites(Prod)
def multiply_elements(op: Prod, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return products along one axis, which all reduced axes become."""
    (output,) = node.outputs
    accumulator = _accumulator(op, node)
    dtype = REAL.get(output.type.dtype, output.type.dtype)
    if not is_complex(node.inputs[0]):
        x = pt.cast(inputs[0][0], accumulator)
        product = pt.cast(Prod(axis=op.axis, dtype=accumulator)(x), dtype)
        whole = joined(Parts(product, pt.zeros_like(product)))
        return [[whole if is_complex(output) else product]]
    pairs = reduced_last(pt.cast(inputs[0][0], accumulator), op.axis)
    result = pt.cast(prod(pairs), dtype)
    return [[result if is_complex(output) else parts_of(result).real]]


def reduced_last(pairs: TensorVariable, axes: Sequence[int] | None) -> TensorVariable:
    """Return pairs whose last axis but one takes the place of some axes, of all for None.

    Examples
    --------
    >>> reduced_last(pt.tensor("pairs", shape=(2, 3, 4, 2)), (0, 1)).type.shape
    (4, 6, 2)
    """
    rank = pairs.type.ndim - 1
    reduced = range(rank) if axes is None else sorted(axis % rank for axis in axes)
    kept = [axis for axis in range(rank) if axis not in reduced]
    ordered = pairs.dimshuffle(*kept, *reduced, rank)
    if len(reduced) == 1:
        return ordered
    sizes = [pairs.shape[axis] for axis in kept]
    count = pt.prod([pairs.shape[axis] for axis in reduced], dtype="int64")
    return ordered.reshape((*sizes, count, 2))


def _accumulator(op: CAReduce, node: Apply) -> str:
    """Return the dtype of the parts while they are added or multiplied."""
    dtype = op.acc_dtype or op.dtype or node.outputs[0].type.dtype
    return REAL.get(dtype, dtype)


@ENCODING.rewrites(CumOp)
def accumulate(op: CumOp, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return cumulative sums of the parts, or cumulative products along the last axis."""
    if op.mode == "add":
        return by_part(op, node, inputs, slice(1))
    last = node.inputs[0].type.ndim - 1
    pairs = inputs[0][0].swapaxes(op.axis, last)
    return [[cumprod(pairs).swapaxes(op.axis, last)]]


@ENCODING.rewrites(SearchsortedOp)
def search(op: SearchsortedOp | Blockwise, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Search integers that are ordered as the numbers are."""
    (x, v), (_, _, *sorter) = node.inputs[:2], inputs
    common = np.promote_types(x.type.dtype, v.type.dtype).name
    numbers = operands([x, v], inputs[:2], REAL[common])
    flat = [_flat(Parts(z.real, z.imag + pt.zeros_like(z.real))) for z in numbers]
    ranks = _ranks(each(lambda a, b: pt.concatenate([a, b]), *flat))
    count = flat[0].real.shape[0]
    halves = ranks[:count], ranks[count:]
    arrays = [half.reshape(z.real.shape) for half, z in zip(halves, numbers, strict=True)]
    return [[op(*arrays, *(order for (order,) in sorter))]]


@ENCODING.rewrites(Unique)
def unique(op: Unique, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return the different numbers, or slices along an axis, in ascending order."""
    ((pairs,),) = inputs
    results = _unique_numbers(op, pairs) if op.axis is None else _unique_slices(op, pairs)
    return [[result] for result in results]


def _unique_numbers(op: Unique, pairs: TensorVariable) -> list[TensorVariable]:
    """Return the first of equal numbers in ascending order; all NaN are equal."""
    z = _flat(parts_of(pairs))
    order = ascending(z, 0)
    z = taken(z, order, 0)
    is_nan = _is_nan(z)
    differs = _differs_from_last(z) & ~(is_nan[1:] & is_nan[:-1])
    is_new = pt.concatenate([pt.ones_like(is_nan[:1]), differs])
    (first,) = pt.nonzero(is_new)
    results = [joined(z[first])]
    if op.return_index:
        results.append(order[first])
    if op.return_inverse:
        results.append(_scattered(_count(is_new) - 1, order))
    if op.return_counts:
        results.append(pt.diff(pt.concatenate([first, order.shape])))
    return results


def _unique_slices(op: Unique, pairs: TensorVariable) -> list[TensorVariable]:
    """Return the different slices along an axis; one with NaN is equal to no other one."""
    z = parts_of(pairs)
    n = pairs.shape[op.axis]
    size = pt.prod(z.real.shape, dtype="int64") // pt.maximum(n, 1)

    def rows(x: TensorVariable) -> TensorVariable:
        return pt.moveaxis(x, op.axis, 0).reshape((n, size))

    ranks = _ranks(_flat(z)).reshape(z.real.shape)
    number = pt.switch(pt.any(rows(_is_nan(z)), axis=1), pt.arange(n), -1)
    unique_rows = Unique(True, op.return_inverse, op.return_counts, axis=0)
    _, index, *others = unique_rows(pt.concatenate([rows(ranks), number[:, None]], axis=1))
    slices = pt.take(pairs, index, axis=op.axis)
    return [slices, index, *others] if op.return_index else [slices, *others]


def _ranks(z: Parts) -> TensorVariable:
    """Return integers that are ordered as the numbers of a vector, with equal ones for equal ones.

    Two NaN in the same part are equal.
    """
    order = ascending(z, 0)
    differs = _differs_from_last(taken(z, order, 0))
    ranks = pt.concatenate([pt.zeros_like(order[:1]), _count(differs)])
    return _scattered(ranks, order)


def _differs_from_last(z: Parts) -> TensorVariable:
    """Return whether each number of a vector but the first differs from the number before it."""
    changes = [
        pt.neq(part[1:], part[:-1]) & ~(pt.isnan(part[1:]) & pt.isnan(part[:-1])) for part in z
    ]
    return changes[0] | changes[1]


def _count(conditions: TensorVariable) -> TensorVariable:
    """Return how many of the first conditions hold, for each of them."""
    return pt.cumsum(pt.cast(conditions, "int64"))


def _is_nan(z: Parts) -> TensorVariable:
    return pt.isnan(z.real) | pt.isnan(z.imag)


def _scattered(values: TensorVariable, positions: TensorVariable) -> TensorVariable:
    return pt.zeros_like(positions)[positions].set(values)


def _flat(z: Parts) -> Parts:
    return each(pt.flatten, z)
