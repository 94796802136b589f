"""Householder reflectors, and products of many of them by blocks."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.registry import define
from pytensor_onnx.ops.linalg.factorisations import Reflect

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


@define(Reflect, Reflect.gufunc_signature)
def reflected(
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
