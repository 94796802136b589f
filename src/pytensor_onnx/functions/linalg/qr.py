"""QR factorisations by reflectors."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.tensor.linalg.decomposition.qr import QR
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.linalg.blocks import as_float, flat, nothing, power_of_two, unflat
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.operation import operation
from pytensor_onnx.functions.registry import define, own_signature


@define(QR, own_signature)
def qr(a: TensorVariable, *, mode: str, pivoting: bool) -> list[TensorVariable]:
    """QR factorisation by Householder reflectors, with the signs of LAPACK.

    Columns are scaled by powers of two before they are squared. With pivoting, columns are chosen
    by norms that are computed anew in every step, where LAPACK updates them; so the order of
    columns may differ where norms are equal up to rounding errors. Where LAPACK finds the element
    of a column below the diagonal to be zero, nothing is reflected, and the diagonal element of
    the factor may be positive.

    The backward error and the orthogonality are those of LAPACK. NaN in a column reaches all
    columns behind it. Without the native library it also reaches columns before it, as blocks of
    columns are reflected at once.

    Examples
    --------
    >>> from pytensor_onnx import compile_onnx
    >>> x = pt.matrix("x")
    >>> compile_onnx([x], pt.linalg.qr(x, mode="r"))([[3.0, 5.0], [4.0, 10.0]]).round(6)
    array([[ -5., -11.],
           [  0.,   2.]])
    """
    (a,) = as_float(a)
    matrices = flat(a)
    order = pivots(matrices) if pivoting else None
    if order is not None:
        matrices = taken(matrices.mT, order).mT
    m, n = a.shape[-2], a.shape[-1]
    k = pt.minimum(m, n)
    vectors, factors, scales, rows = eliminate(matrices)
    r = pt.concatenate([rows, pt.zeros((rows.shape[0], m - k, n), a.type.dtype)], axis=1)
    match mode:
        case "full":
            q = orthogonal_columns(vectors, factors, m, m)
            results: list[tuple[TensorVariable, ...]] = [(q, m, m), (r, m, n)]
        case "economic":
            q = orthogonal_columns(vectors, factors, k, m)
            results = [(q, m, k), (rows, k, n)]
        case "raw":
            packed = _packed(vectors, r, m, n)
            results = [(packed, m, n), (_in_rows(scales, k), k), (rows, k, n)]
        case _:
            results = [(r, m, n)]
    if order is not None:
        results.append((order.astype("int32"), n))
    return [unflat(x, a, *sizes) for x, *sizes in results]


def orthogonal_columns(
    vectors: TensorVariable, factors: TensorVariable, count: TensorVariable, size: TensorVariable
) -> TensorVariable:
    """Return the first columns of the product of reflectors."""
    dtype = vectors.type.dtype
    unit = pt.eq(pt.arange(count)[:, None], pt.arange(vectors.shape[3])[None, :]).astype(dtype)
    rows = unit + pt.zeros((vectors.shape[1], 1, 1), dtype)
    return reflect(rows, vectors, factors)[:, :, :size].mT


def pivots(a: TensorVariable) -> TensorVariable:
    """Return the order of columns in which each is the one furthest from those before it.

    G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed., algorithm 5.4.1: in every step
    the column with the largest rest changes places with the first.
    """
    batch, n = a.shape[0], a.shape[2]

    def step(
        rest: TensorVariable, order: TensorVariable, chosen: TensorVariable
    ) -> list[TensorVariable]:
        largest = (rest * rest).sum(axis=2).argmax(axis=1)[:, None]
        rows = pt.arange(rest.shape[1])
        moved = pt.switch(pt.eq(rows, 0), largest, pt.switch(pt.eq(rows, largest), 0, rows))
        rest, order = taken(rest, moved), taken(order, moved)
        chosen = pt.concatenate([chosen, order[:, :1]], axis=1)
        return [without_first(rest)[0], order[:, 1:], chosen]

    columns = (a * power_of_two(a, axis=(1, 2))).mT
    order = pt.arange(n)[None, :] + pt.zeros((batch, 1), "int64")
    chosen = pt.zeros((batch, nothing(n)), "int64")
    n_steps = pt.minimum(a.shape[1], n)
    _, order, chosen = iterate(step, [columns, order, chosen], n_steps=n_steps)
    # The shapes that PyTensor infers for the last states are those of the first.
    return pt.concatenate([chosen, order], axis=1)[:, :n]


def taken(x: TensorVariable, order: TensorVariable) -> TensorVariable:
    """Return the elements of the second axis in another order for each element of the first.

    Examples
    --------
    >>> import numpy as np
    >>> x, order = pt.matrix("x"), pt.lmatrix("order")
    >>> taken(x, order).eval({x: np.array([[5.0, 6.0]]), order: np.array([[1, 0]])}, mode="ONNX")
    array([[6., 5.]])
    """
    batch, count = x.shape[0], x.shape[1]
    others = [x.shape[axis] for axis in range(2, x.type.ndim)]
    rows = x.reshape((batch * count, *others), ndim=x.type.ndim - 1)
    return rows[order + pt.arange(batch)[:, None] * count]


def _in_rows(scales: TensorVariable, count: TensorVariable) -> TensorVariable:
    """Return the scales of all reflectors of a matrix in a row."""
    blocks, batch, width = scales.shape[0], scales.shape[1], scales.shape[2]
    return scales.transpose(1, 0, 2).reshape((batch, blocks * width))[:, :count]


def _packed(
    vectors: TensorVariable, r: TensorVariable, m: TensorVariable, n: TensorVariable
) -> TensorVariable:
    """Return the triangular factor, and below it the vectors of the reflectors."""
    blocks, batch, width, size = (vectors.shape[axis] for axis in range(4))
    columns = vectors.transpose(1, 3, 0, 2).reshape((batch, size, blocks * width))[:, :m]
    beside = pt.zeros((batch, m, n), r.type.dtype)
    columns = pt.concatenate([columns, beside], axis=2)[:, :, :n]
    below = pt.gt(pt.arange(m)[:, None], pt.arange(n)[None, :])
    return pt.switch(below, columns, r)


@operation("(b,m,n)->(p,b,w,l),(p,b,w,w),(p,b,w),(b,k,n)")
def eliminate(a: TensorVariable) -> list[TensorVariable]:
    """Return the reflectors of a batch of matrices, and the triangular matrices.

    The results are the vectors, the triangular factors and the scales of the reflectors, with the
    axes block, batch and reflector, and the triangular matrices. Columns of a block are eliminated
    one after another, the columns behind it by products (G. H. Golub and C. F. Van Loan, Matrix
    Computations, 4th ed., algorithm 5.2.3).
    """
    batch, m, n = a.shape[0], a.shape[1], a.shape[2]
    count = pt.minimum(m, n)
    blocks, width = block_sizes(count)
    more = blocks * width - count
    scale = power_of_two(a, axis=1)
    columns = (a * scale).mT
    dtype = columns.type.dtype
    # Zeros make the blocks equally wide; the reflector of zeros is the identity.
    columns = pt.concatenate([columns, pt.zeros((batch, n, more), dtype)], axis=2)
    columns = pt.concatenate([columns, pt.zeros((batch, more, m + more), dtype)], axis=1)

    def step(
        k: TensorVariable, rest: TensorVariable, width: TensorVariable
    ) -> list[TensorVariable]:
        vectors, scales = _panel(rest[:, :width], width)
        factor = triangular_factor(vectors, scales, width)
        rest = reflected_by_block(rest, vectors, factor)
        done = pt.concatenate(
            [pt.zeros((rest.shape[0], k, width), rest.dtype), rest[:, :, :width]], axis=1
        )
        return [rest[:, width:, width:], behind_zeros(vectors, k), factor, scales, done]

    _, vectors, factors, scales, done = pytensor.scan(
        step,
        [pt.arange(blocks) * width],
        [columns, None, None, None, None],
        [width],
        return_updates=False,
        strict=True,
    )
    rows = done.transpose(1, 0, 3, 2).reshape((batch, count + more, n + more))[:, :count, :n]
    above = pt.le(pt.arange(count)[:, None], pt.arange(n)[None, :])
    rows = pt.switch(above, rows / scale, np.zeros((), dtype))
    return [vectors, factors, scales, rows]


def _panel(columns: TensorVariable, width: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """Return the reflectors of the columns of a block, with the axis of the reflector second.

    Elements stay in their places, those before a reflector's first one are multiplied by zero.
    """
    dtype, size = columns.type.dtype, columns.shape[2]
    place, element = pt.arange(width)[:, None, None], pt.arange(size)[None, None, :]
    unit, behind = pt.eq(element, place).astype(dtype), pt.gt(element, place).astype(dtype)

    def step(
        k: TensorVariable, unit: TensorVariable, behind: TensorVariable, rest: TensorVariable
    ) -> list[TensorVariable]:
        column = rest[:, k]
        others, scale, _ = reflection(column[:, k][:, None], column * behind)
        vector = others + unit
        along = pt.matmul(rest, vector[:, :, None])
        return [rest - along * (scale * vector)[:, None, :], vector, scale[:, 0]]

    _, vectors, scales = iterate(
        step, [columns], n_steps=width, sequences=[pt.arange(width), unit, behind]
    )
    return vectors.transpose(1, 0, 2), scales.T


def without_first(
    columns: TensorVariable,
) -> tuple[TensorVariable, TensorVariable, TensorVariable]:
    """Reflect columns by the reflector of the first, without the first and its row."""
    vector, scale, _ = reflector(columns[:, 0])
    along = pt.matmul(columns[:, 1:], vector[:, :, None])
    rest = columns[:, 1:, 1:] - along * (scale * vector[:, 1:])[:, None, :]
    return rest, vector, scale


WIDTH = 32
"""Largest number of reflectors in a block."""

# Sums of squares that are too small to be accurate; the matrices have a scale near one.
_NEGLIGIBLE = {"float32": 1e-30, "float64": 1e-280}


class Reflector(NamedTuple):
    """``H = I - scale * v @ v.T``, with ``H x`` zero but for the first element ``length``."""

    vector: TensorVariable
    scale: TensorVariable
    length: TensorVariable


def reflector(x: TensorVariable) -> Reflector:
    """Return the reflector of each row, with the signs of LAPACK.

    The first element of the vector is one. The length has the sign opposite to that of the first
    element, unless all other elements are zero, or negligible: then nothing is reflected.

    Parameters
    ----------
    x
        Matrix with at least one column, of elements of a scale near one.

    Examples
    --------
    >>> x = pt.matrix("x")
    >>> [float(y.eval({x: np.array([[3.0, 4.0]])})[0, 0]) for y in reflector(x)]
    [1.0, 1.6, -5.0]
    """
    first = x[:, :1]
    others, scale, length = reflection(first, x[:, 1:])
    return Reflector(pt.concatenate([pt.ones_like(first), others], axis=1), scale, length)


def reflection(first: TensorVariable, others: TensorVariable) -> Reflector:
    """Return the reflectors of rows, without the ones that are the first elements of the vectors.

    Parameters
    ----------
    first, others
        First elements of the rows, and the other ones.
    """
    dtype = others.type.dtype
    zero, one = np.zeros((), dtype), np.ones((), dtype)
    rest = (others * others).sum(axis=1, keepdims=True, dtype=dtype, acc_dtype=dtype)
    norm = pt.sqrt(first * first + rest)
    is_kept = pt.le(rest, np.full((), _NEGLIGIBLE[dtype], dtype))
    length = pt.switch(is_kept, first, pt.switch(pt.lt(first, zero), norm, -norm))
    scale = (length - first) / pt.switch(is_kept, one, length)
    divisor = pt.switch(is_kept, one, first - length)
    return Reflector(others / divisor, scale, length)


def behind_zeros(rows: TensorVariable, count: TensorVariable) -> TensorVariable:
    """Return rows with so many zeros before their elements."""
    sizes = [rows.shape[axis] for axis in range(rows.type.ndim - 1)]
    return pt.concatenate([pt.zeros((*sizes, count), rows.type.dtype), rows], axis=-1)


def block_sizes(count: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """Return the number of blocks of reflectors and the number in each, both at least one.

    Examples
    --------
    >>> count = pt.lscalar("count")
    >>> [[int(x.eval({count: n})) for x in block_sizes(count)] for n in (0, 32, 33, 200)]
    [[1, 1], [1, 32], [2, 17], [7, 29]]
    """
    blocks = pt.maximum((count + (WIDTH - 1)) // WIDTH, 1)
    return blocks, pt.maximum((count + blocks - 1) // blocks, 1)


def triangular_factor(
    vectors: TensorVariable, scales: TensorVariable, width: TensorVariable
) -> TensorVariable:
    """Return the matrix ``T`` with ``H[0] @ H[1] @ … = I - V.T @ T @ V``.

    It is the inverse of a triangular matrix (C. Puglisi, Modification of the Householder method
    based on the compact WY representation, SIAM Journal on Scientific and Statistical Computing
    13, 1992), computed by blocks of twice the size again and again.

    Parameters
    ----------
    vectors
        Vectors of at most `WIDTH` reflectors, the rows of matrices.
    scales
        Their scales; a reflector with the scale zero is the identity.
    width
        Number of reflectors.
    """
    dtype = vectors.type.dtype
    rows = pt.arange(width)
    products = pt.matmul(vectors, vectors.mT)
    scaled = scales[..., :, None] * products
    inverse = pt.eq(rows[:, None], rows[None, :]).astype(dtype)
    half = 1
    while half < WIDTH:
        part = rows // half
        is_pair = pt.eq(part[:, None] + 1, part[None, :]) & pt.eq(part[:, None] % 2, 0)
        beside = pt.switch(is_pair, scaled, np.zeros((), dtype))
        inverse = inverse - (
            beside if half == 1 else pt.matmul(pt.matmul(inverse, beside), inverse)
        )
        half *= 2
    return inverse * scales[..., None, :]


def in_blocks(
    vectors: TensorVariable, scales: TensorVariable, sizes: Sequence[TensorVariable]
) -> list[TensorVariable]:
    """Return the vectors of reflectors in blocks, and the triangular factor of each block.

    Parameters
    ----------
    vectors
        Array with the axes reflector, batch and element.
    scales
        Array with the axes reflector and batch.
    sizes
        The sizes of these axes.
    """
    count, batch, size = sizes
    blocks, width = block_sizes(count)
    more = blocks * width - count
    dtype = vectors.type.dtype
    # The trace of a loop without steps has lost the sizes of its elements.
    vectors, scales = vectors.reshape((count, batch, size)), scales.reshape((count, batch))
    vectors = pt.concatenate([vectors, pt.zeros((more, batch, size), dtype)], axis=0)
    scales = pt.concatenate([scales, pt.zeros((more, batch), dtype)], axis=0)
    vectors = vectors.reshape((blocks, width, batch, size)).transpose(0, 2, 1, 3)
    scales = scales.reshape((blocks, width, batch)).transpose(0, 2, 1)
    return [vectors, triangular_factor(vectors, scales, width)]


@operation("(b,r,l),(p,b,w,l),(p,b,w,w)->(b,r,l)")
def reflect(
    rows: TensorVariable, vectors: TensorVariable, factors: TensorVariable
) -> TensorVariable:
    """Return ``H[0] @ H[1] @ … @ x`` for each row ``x`` of a batch of matrices."""

    def step(
        i: TensorVariable, rows: TensorVariable, vectors: TensorVariable, factors: TensorVariable
    ) -> list[TensorVariable]:
        return [reflected_by_block(rows, vectors[i], factors[i].mT)]

    count = vectors.shape[0]
    (rows,) = iterate(
        step,
        [rows],
        [vectors, factors],
        n_steps=count,
        sequences=[count - 1 - pt.arange(count)],
    )
    return rows


def reflected_by_block(
    rows: TensorVariable, vectors: TensorVariable, factor: TensorVariable
) -> TensorVariable:
    """Return rows, reflected by one block in the order of the factor or, transposed, the other."""
    return rows - pt.matmul(pt.matmul(pt.matmul(rows, vectors.mT), factor), vectors)


# Signs of eigenvectors and singular vectors, which mathematics leaves free.
#
# Files and the graphs that they are verified against have the same ones.

_EXPONENT = 1 / math.pi

# Singular values, relative to the largest, that may be rounding errors.
_ROUNDING = {dtype: 4 * np.finfo(dtype).eps for dtype in ("float32", "float64")}


def signs(rows: TensorVariable) -> TensorVariable:
    """Return the sign of the sum of each row, weighted by powers 1/π of 1, 2, 3, ….

    No simple relation between integers holds for these weights, so that the sum of a vector is
    hardly ever zero.

    Examples
    --------
    >>> x = pt.matrix("x")
    >>> signs(x).eval({x: np.array([[-1.0, 0.5], [0.0, 2.0]])}, mode="ONNX")
    array([[-1.],
           [ 1.]])
    """
    dtype = rows.type.dtype
    positions = (pt.arange(rows.shape[-1]) + 1).astype(dtype)
    weights = positions ** np.asarray(_EXPONENT, dtype)
    sums = pt.matmul(rows, weights[:, None])
    return pt.switch(pt.lt(sums, 0), -1, 1).astype(dtype)


def signed(rows: TensorVariable, sign: TensorVariable, s: TensorVariable) -> TensorVariable:
    """Return right singular vectors, in rows, with the signs of the left ones.

    Vectors without a partner, or with a singular value that is a rounding error, have their own.
    """
    count = s.shape[-1]
    negligible = np.asarray(_ROUNDING[s.type.dtype], s.type.dtype)
    # A maximum of no elements would fail.
    padded = pt.concatenate([s, pt.zeros((*s.shape[:-1], 1), s.type.dtype)], axis=-1)
    is_pair = pt.gt(s, padded.max(axis=-1, keepdims=True) * negligible)
    first, others = rows[..., :count, :], rows[..., count:, :]
    own = signs(first)
    first = first * pt.switch(is_pair[..., None], sign[..., :count, :], own)
    return pt.concatenate([first, others * signs(others)], axis=-2)
