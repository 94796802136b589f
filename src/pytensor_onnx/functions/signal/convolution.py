"""Convolutions of signals."""

from typing import NamedTuple

import pytensor.tensor as pt
from pytensor.conditional import ifelse
from pytensor.scalar.basic import upcast
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.registry import define, own_signature
from pytensor_onnx.functions.shape import between_zeros
from pytensor_onnx.ops.signal import FullConvolution

_MOST_TAPS = 24
"""Most numbers that are added one by one: below, products of matrices take longer."""


@define(FullConvolution, own_signature)
def convolve(x: TensorVariable, y: TensorVariable, *, axes: int) -> TensorVariable:
    """Return the full convolution over the last axes.

    In products of matrices an infinity meets padding zeros, so that arrays that are not finite are
    convolved number by number, and infinities reach the same results as in NumPy.

    Examples
    --------
    >>> x, y = pt.vector("x"), pt.vector("y")
    >>> convolve(x, y, axes=1).eval({x: [1, 2, 3], y: [1, 10]}, mode="FAST_COMPILE")
    array([ 1., 12., 23., 30.])
    """
    dtype = upcast(x.type.dtype, y.type.dtype)
    # The runtime multiplies matrices of int64; the cast back wraps as narrow integers do.
    wide = dtype if dtype.startswith("float") else "int64"
    x, y = (pt.cast(v, wide) if axes == 2 else pt.cast(v, wide)[..., None, :] for v in (x, y))
    longer, shorter = ifelse(_numbers(x) < _numbers(y), [y, x], [x, y])
    is_long = _numbers(shorter) > _MOST_TAPS
    if wide == dtype:
        is_long &= pt.all([pt.all(pt.isfinite(v)) for v in (x, y)])
    result = ifelse(is_long, by_products(longer, shorter), _by_taps(longer, shorter))
    return pt.cast(result if axes == 2 else result[..., 0, :], dtype)


def _numbers(x: TensorVariable) -> TensorVariable:
    return x.shape[-2] * x.shape[-1]


def _by_taps(x: TensorVariable, y: TensorVariable) -> TensorVariable:
    """Return the sum of copies of the first array, one for each number of the second."""
    lead = [x.shape[axis] for axis in range(x.type.ndim - 2)]
    (height, width), (rows, columns) = ((v.shape[-2], v.shape[-1]) for v in (x, y))
    taps = y.reshape((*lead, rows * columns))
    start = pt.zeros((*lead, height + rows - 1, width + columns - 1), x.type.dtype)

    def step(
        index: TensorVariable,
        total: TensorVariable,
        x: TensorVariable,
        taps: TensorVariable,
        rows: TensorVariable,
        columns: TensorVariable,
    ) -> list[TensorVariable]:
        term = x * taps[..., index][..., None, None]
        row, column = index // columns, index % columns
        term = between_zeros(term, column, columns - 1 - column, -1)
        return [total + between_zeros(term, row, rows - 1 - row, -2)]

    steps = pt.arange(rows * columns)
    constants = [x, taps, rows, columns]
    return iterate(step, [start], constants, sequences=[steps], n_steps=rows * columns)[0]


# Full convolutions of finite numbers, as products with Toeplitz matrices.
#
# A block of ``b`` numbers convolved with a block of ``b`` numbers is its product with a matrix of
# shape ``(b, 2 b)`` whose rows are the second block, each moved by one. All blocks of the first
# array are multiplied at once, and the results that overlap are added.

_SMALLEST, _LARGEST = 16, 256
"""Sizes of a block: the matrix of the largest fits a processor's cache."""


class _Counts(NamedTuple):
    """Rows and blocks of a row of the first array, and of the second one."""

    height: TensorVariable
    parts: TensorVariable
    rows: TensorVariable
    taps: TensorVariable


def by_products(x: TensorVariable, y: TensorVariable) -> TensorVariable:
    """Return the full convolution over the last two axes, for arrays of one dtype.

    A step takes one block of one row of the second array.

    Examples
    --------
    >>> x, y = pt.matrix("x"), pt.matrix("y")
    >>> by_products(x, y).eval({x: [[1, 2]], y: [[1, 10], [0, 1]]}, mode="FAST_COMPILE")
    array([[ 1., 12., 20.],
           [ 0.,  1.,  2.]])
    """
    n_lead = x.type.ndim - 2
    lead = [x.shape[axis] for axis in range(n_lead)]
    (height, width), (rows, columns) = ((v.shape[-2], v.shape[-1]) for v in (x, y))
    block = pt.clip(columns, _SMALLEST, _LARGEST)
    parts, taps = _count(width, block), _count(columns, block)
    left = between_zeros(x, 0, parts * block - width, -1).reshape((*lead, height * parts, block))
    right = between_zeros(y, 0, taps * block - columns, -1).reshape((*lead, rows * taps, block))
    # The zero in the last column fills the entries of the Toeplitz matrix outside the block.
    right = between_zeros(right, 0, 1, -1)
    distances = pt.arange(2 * block) - pt.arange(block)[:, None]
    places = pt.switch((distances >= 0) & (distances < block), distances, block)
    shape = (*lead, height + rows - 1, (parts + taps) * block)

    def step(
        index: TensorVariable,
        total: TensorVariable,
        left: TensorVariable,
        right: TensorVariable,
        places: TensorVariable,
        counts: _Counts,
    ) -> list[TensorVariable]:
        height, parts, rows, taps = counts
        block = places.shape[0]
        matrix = pt.take(right[..., index, :], places, axis=-1)
        lead = [left.shape[axis] for axis in range(n_lead)]
        products = (left @ matrix).reshape((*lead, height * parts, 2, block))
        before, after = (
            products[..., side, :].reshape((*lead, height, parts * block)) for side in (0, 1)
        )
        row, tap = index // taps, index % taps
        moved = between_zeros(before, 0, block, -1) + between_zeros(after, block, 0, -1)
        moved = between_zeros(moved, tap * block, (taps - 1 - tap) * block, -1)
        return [total + between_zeros(moved, row, rows - 1 - row, -2)]

    constants = [left, right, places, _Counts(height, parts, rows, taps)]
    start = pt.zeros(shape, x.type.dtype)
    steps = pt.arange(rows * taps)
    [total] = iterate(step, [start], constants, sequences=[steps], n_steps=rows * taps)
    return total[..., : width + columns - 1]


def _count(size: TensorVariable, block: TensorVariable) -> TensorVariable:
    """Return the number of blocks that hold so many numbers."""
    return (size + block - 1) // block
