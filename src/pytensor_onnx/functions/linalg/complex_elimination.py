"""Factors of complex matrices by elimination, and determinants."""

from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.linalg.lu import product_within_range, sign_of_exchanges
from pytensor_onnx.functions.linalg.matrix_batches import diagonals, flat, not_empty, unflat
from pytensor_onnx.functions.linalg.matrix_blocks import checked_size
from pytensor_onnx.functions.linalg.qr import taken
from pytensor_onnx.functions.linalg.scaling import power_of_two
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.registry import define, own_signature
from pytensor_onnx.ops.linalg.complex_matrices import (
    CholeskyOfParts,
    DetOfParts,
    LUFactorOfParts,
    LUOfParts,
    SLogDetOfParts,
)

_NOT_SQUARE = "expected square matrix"


@define(CholeskyOfParts, own_signature)
def cholesky(real: TensorVariable, imag: TensorVariable, *, lower: bool) -> list[TensorVariable]:
    """Parts of Cholesky factors of Hermitian matrices, column by column.

    One triangle is read. All elements are NaN where a matrix is not positive definite.

    Examples
    --------
    >>> import pytensor
    >>> z = pt.zmatrix("z")
    >>> factorise = pytensor.function([z], pt.linalg.cholesky(z), mode="ONNX")
    >>> factorise([[4.0, -2j], [2j, 2.0]])
    array([[2.+0.j, 0.+0.j],
           [0.+1.j, 1.+0.j]])
    """
    like, n = real, checked_size(real, "Input array is expected to be square")
    real, imag = (flat(x).astype("float64") for x in (real, imag))
    real, imag = (real, imag) if lower else (real.mT, -imag.mT)
    (real, size), (imag, _) = not_empty(real, n), not_empty(imag, n)

    def step(k: TensorVariable, rest: TensorVariable) -> list[TensorVariable]:
        n = rest.shape[1]
        pivot = rest[:, k, k]
        root = pt.switch(pt.gt(pivot, 0.0), pt.sqrt(pivot), np.nan)[:, None]
        index = pt.arange(n)
        is_below = pt.gt(index, k)
        first = pt.switch(pt.eq(index, k), root, pt.switch(is_below, rest[:, :, k] / root, 0.0))
        second = pt.switch(is_below, rest[:, :, n + k] / root, 0.0)
        left = pt.stack([first, second], axis=2)
        above = pt.concatenate([first, -second], axis=1)
        below = pt.concatenate([second, first], axis=1)
        return [rest - pt.matmul(left, pt.stack([above, below], axis=1)), left]

    _, columns = iterate(
        step,
        [pt.concatenate([real, imag], axis=2)],
        n_steps=size,
        sequences=[pt.arange(size)],
    )
    valid = pt.switch(pt.isnan(columns).any(axis=(0, 2, 3)), np.nan, 0.0)[:, None, None]
    columns = columns.transpose(3, 1, 2, 0)
    first, second = columns[0, :, :n, :n] + valid, columns[1, :, :n, :n] + valid
    factor = (first, second) if lower else (first.mT, -second.mT)
    return [unflat(x.astype(like.type.dtype), like, n, n) for x in factor]


class _Eliminated(NamedTuple):
    """Factors of complex matrices of a scale near one.

    Attributes
    ----------
    real, imag
        Parts of U in the upper triangle, and of L below.
    pivots
        The row that was exchanged with each one.
    order
        The order of the rows.
    scale
        The powers of two that matrices were multiplied by.
    """

    real: TensorVariable
    imag: TensorVariable
    pivots: TensorVariable
    order: TensorVariable
    scale: TensorVariable


def _eliminated(real: TensorVariable, imag: TensorVariable, n: TensorVariable) -> _Eliminated:
    """Eliminate columns with partial pivoting, by the sum of the magnitudes of both parts."""
    rows = pt.concatenate([flat(x).astype("float64") for x in (real, imag)], axis=2)
    scale = power_of_two(rows, axis=(1, 2))
    batch = rows.shape[0]

    def step(
        k: TensorVariable, rows: TensorVariable, order: TensorVariable
    ) -> list[TensorVariable]:
        n = rows.shape[1]
        index = pt.arange(n)
        size = pt.abs(rows[:, :, k]) + pt.abs(rows[:, :, n + k])
        chosen = pt.switch(pt.ge(index, k), size, -1.0).argmax(axis=1)[:, None]
        moved = pt.switch(pt.eq(index, k), chosen, pt.switch(pt.eq(index, chosen), k, index))
        rows, order = taken(rows, moved), taken(order, moved)
        pivot = rows[:, k]
        first, second = _divided(rows[:, :, k], rows[:, :, n + k], pivot[:, k], pivot[:, n + k])
        is_below = pt.gt(index, k)
        first, second = pt.switch(is_below, first, 0.0), pt.switch(is_below, second, 0.0)
        left = pt.stack([first, second], axis=2)
        upper_real = pt.switch(pt.gt(index, k), pivot[:, :n], 0.0)
        upper_imag = pt.switch(pt.gt(index, k), pivot[:, n:], 0.0)
        above = pt.concatenate([upper_real, upper_imag], axis=1)
        below = pt.concatenate([-upper_imag, upper_real], axis=1)
        rows = rows - pt.matmul(left, pt.stack([above, below], axis=1))
        column = pt.arange(2 * n)
        below_pivot = is_below[:, None]
        rows = pt.switch(below_pivot & pt.eq(column, k), first[:, :, None], rows)
        rows = pt.switch(below_pivot & pt.eq(column, n + k), second[:, :, None], rows)
        return [rows, order, chosen[:, 0]]

    order = pt.arange(n) + pt.zeros((batch, 1), "int64")
    rows, order, pivots = iterate(step, [rows * scale, order], n_steps=n, sequences=[pt.arange(n)])
    # The trace of a loop without steps has lost the number of matrices.
    pivots = pivots.reshape((n, batch)).T
    return _Eliminated(rows[:, :, :n], rows[:, :, n:], pivots, order, scale)


def _divided(
    a: TensorVariable, b: TensorVariable, c: TensorVariable, d: TensorVariable
) -> tuple[TensorVariable, TensorVariable]:
    """Return the parts of ``(a + b i) / (c + d i)`` for rows and numbers, zero for a zero."""
    larger = pt.maximum(pt.abs(c), pt.abs(d))
    larger = pt.switch(pt.eq(larger, 0.0), 1.0, larger)[:, None]
    c, d = c[:, None] / larger, d[:, None] / larger
    square = c * c + d * d
    square = pt.switch(pt.eq(square, 0.0), 1.0, square)
    a, b = a / larger, b / larger
    return (a * c + b * d) / square, (b * c - a * d) / square


@define(LUFactorOfParts, own_signature)
def lu_factor(real: TensorVariable, imag: TensorVariable) -> list[TensorVariable]:
    """Parts of LU factors of complex matrices, and the exchanges; NaN if a pivot is zero."""
    n = checked_size(real, _NOT_SQUARE)
    found = _eliminated(real, imag, n)
    size = pt.abs(diagonals(found.real)) + pt.abs(diagonals(found.imag))
    valid = pt.switch(pt.eq(size, 0.0).any(axis=1), np.nan, 0.0)[:, None, None]
    index = pt.arange(n)
    scale = pt.switch(pt.gt(index[:, None], index), 1.0, found.scale)
    parts = [x / scale + valid for x in (found.real, found.imag)]
    return [
        *(unflat(x.astype(real.type.dtype), real, n, n) for x in parts),
        unflat(found.pivots.astype("int32"), real, n),
    ]


@define(LUOfParts, own_signature)
def lu(
    real: TensorVariable, imag: TensorVariable, *, permute_l: bool, p_indices: bool
) -> list[TensorVariable]:
    """Permutations of rows, and parts of LU factors of complex matrices."""
    n, dtype = checked_size(real, _NOT_SQUARE), real.type.dtype
    found = _eliminated(real, imag, n)
    index = pt.arange(n)
    is_below = pt.gt(index[:, None], index)
    unit = pt.eq(index[:, None], index).astype("float64")
    lower = [pt.switch(is_below, found.real, unit), pt.switch(is_below, found.imag, 0.0)]
    upper = [pt.switch(is_below, 0.0, x / found.scale) for x in (found.real, found.imag)]
    moved = pt.eq(index[:, None], found.order[:, None, :])
    first: list[TensorVariable] = []
    if permute_l:
        lower = [pt.matmul(moved.astype("float64"), x) for x in lower]
    elif p_indices:
        first = [unflat((moved * index).sum(axis=2).astype("int32"), real, n)]
    else:
        first = [unflat(moved.astype(dtype), real, n, n)]
    return [*first, *(unflat(x.astype(dtype), real, n, n) for x in (*lower, *upper))]


def _phases(
    real: TensorVariable, imag: TensorVariable
) -> tuple[TensorVariable, TensorVariable, TensorVariable, _Eliminated]:
    """Return the parts of the phases of determinants, the sizes of pivots, and the factors."""
    found = _eliminated(real, imag, checked_size(real, _NOT_SQUARE))
    first, second = diagonals(found.real), diagonals(found.imag)
    larger = pt.maximum(pt.abs(first), pt.abs(second))
    divisor = pt.switch(pt.eq(larger, 0.0), 1.0, larger)
    size = larger * pt.sqrt((first / divisor) ** 2 + (second / divisor) ** 2)
    divisor = pt.switch(pt.eq(size, 0.0), 1.0, size)

    def step(
        x: TensorVariable, y: TensorVariable, real: TensorVariable, imag: TensorVariable
    ) -> list[TensorVariable]:
        return [real * x - imag * y, real * y + imag * x]

    sign = sign_of_exchanges(found.pivots, "float64")
    turns = [(x / divisor).T for x in (first, second)]
    x, y = iterate(step, [sign, pt.zeros_like(sign)], n_steps=real.shape[-1], sequences=turns)
    return x, y, size, found


@define(DetOfParts, own_signature)
def det(real: TensorVariable, imag: TensorVariable) -> list[TensorVariable]:
    """Parts of the determinants of complex matrices."""
    x, y, size, found = _phases(real, imag)
    size = product_within_range(size / found.scale[:, :, 0], real.shape[-1])
    return [unflat((part * size).astype(real.type.dtype), real) for part in (x, y)]


@define(SLogDetOfParts, own_signature)
def slogdet(real: TensorVariable, imag: TensorVariable) -> list[TensorVariable]:
    """Parts of the phases of determinants, and logarithms of their magnitudes."""
    x, y, size, found = _phases(real, imag)
    logarithm = (pt.log(size) - pt.log(found.scale[:, :, 0])).sum(axis=1)
    return [unflat(part.astype(real.type.dtype), real) for part in (x, y, logarithm)]
