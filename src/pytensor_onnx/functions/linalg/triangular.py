"""Solution of triangular systems by blocks of rows."""

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.linalg.batches import batch_first, batch_last, diagonals, flat, unflat
from pytensor_onnx.functions.linalg.blocks import (
    BATCH_BLOCK,
    BLOCK,
    block_count,
    less_product,
    nothing,
    plus_product,
    poison,
    zero,
)
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.ops.triangles import Triangle

ROWS = 16
"""Rows of a block of one system, whose inverse is computed with those of all other blocks."""


def solved_triangular(
    a: TensorVariable,
    b: TensorVariable,
    n: TensorVariable,
    *,
    lower: bool,
    unit_diagonal: bool = False,
) -> TensorVariable:
    """Return the solutions of triangular systems, read from one triangle of each matrix.

    Parameters
    ----------
    a, b
        Matrices and matrices of right-hand sides of one dtype, with equal batch axes.
    n
        Number of rows of both.
    lower, unit_diagonal
        Which triangle is read, and whether its diagonal counts as one without being read.
    """
    if a.type.ndim == 2:
        return _solution_of_one(a, b, n, lower, unit_diagonal)
    solutions = _solutions_of_batch(flat(a), flat(b), n, lower, unit_diagonal)
    return unflat(solutions, a, n, b.shape[-1])


def _solution_of_one(
    a: TensorVariable, b: TensorVariable, n: TensorVariable, lower: bool, unit_diagonal: bool
) -> TensorVariable:
    """Return the solution of one system.

    The unknowns of a block are the product of the block's inverse and the right-hand side less
    the terms of known unknowns. One step of refinement makes the residual as small as that of
    substitution (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 12.1).

    Where rows are missing in the block that is solved last, it repeats the last equation, on whose
    unknown no other one depends.
    """
    dtype, columns = a.type.dtype, b.shape[1]
    count = block_count(n, ROWS)
    size = count * ROWS
    order = pt.arange(size) if lower else pt.arange(size) + (n - size)
    rows = pt.minimum(order, n - 1) if lower else pt.maximum(order, 0)
    places = rows.reshape((count, ROWS))
    elements = a.reshape((-1,))
    diagonal = elements[places * (n + 1)]
    blocks = elements[(places * n)[:, :, None] + places[:, None, :]]
    if unit_diagonal:
        beside = Triangle(lower=lower, diagonal=-1 if lower else 1)(blocks)
        # The repeated row has an element on the diagonal, which is not read.
        beside = pt.switch(pt.eq(rows, order).reshape((count, ROWS, 1)), beside, zero(dtype))
        blocks = beside + np.eye(ROWS, dtype=dtype)[None]
        inverses = inverted_blocks(beside, ROWS)
    else:
        blocks = Triangle(lower=lower)(blocks)
        inverses = inverted_blocks(blocks / diagonal[:, :, None], ROWS) / diagonal[:, None, :]

    def step(
        bound: TensorVariable,
        rows: TensorVariable,
        b: TensorVariable,
        block: TensorVariable,
        inverse: TensorVariable,
        known: TensorVariable,
        a: TensorVariable,
    ) -> list[TensorVariable]:
        terms = a[rows][:, :bound] if lower else a[rows][:, bound:]
        rest = less_product(b, terms, known)
        first = pt.dot(inverse, rest)
        found = plus_product(first, inverse, less_product(rest, block, first))
        return [pt.concatenate([known, found] if lower else [found, known], axis=0)]

    sequences = [places, b[places], blocks, inverses]
    solved = pt.arange(count) * ROWS
    (solution,) = iterate(
        step,
        [pt.zeros((nothing(n), columns), dtype)],
        [a],
        n_steps=count,
        sequences=[solved, *sequences] if lower else [n - solved, *(x[::-1] for x in sequences)],
    )
    if not unit_diagonal:
        solution += poison(pt.neq(diagonal, 0).all(), dtype)
    return solution[:n] if lower else solution[size - n :]


def inverted_blocks(blocks: TensorVariable, size: int = BLOCK) -> TensorVariable:
    """Return the inverses of unit triangular blocks, whose diagonals are not read.

    A block ``I + N`` of 4 rows has the inverse ``(I - N) (I + N @ N)``. The inverse of
    ``[[A, 0], [C, B]]`` is ``[[1/A, 0], [-1/B C 1/A, 1/B]]``, for blocks of 4 rows, 8 and so on.
    """
    rows, columns = np.ogrid[:size, :size]
    shape = (*(1,) * (blocks.type.ndim - 2), size, size)

    def part(width: int, within: int) -> TensorVariable:
        kept = (rows // width == columns // width) & (rows // within != columns // within)
        return blocks * kept.reshape(shape).astype(blocks.type.dtype)

    beside = part(4, 1)
    first = np.eye(size, dtype=blocks.type.dtype).reshape(shape) - beside
    inverses = plus_product(first, first, pt.matmul(beside, beside))
    width = 4
    while width < size:
        corners = pt.matmul(inverses, part(2 * width, width))
        inverses = less_product(inverses, corners, inverses)
        width *= 2
    return inverses


def _solutions_of_batch(
    a: TensorVariable, b: TensorVariable, n: TensorVariable, lower: bool, unit_diagonal: bool
) -> TensorVariable:
    """Return the solutions of a batch of systems, all at once."""
    dtype = a.type.dtype

    def step(
        k: TensorVariable,
        known: TensorVariable,
        a: TensorVariable,
        b: TensorVariable,
    ) -> list[TensorVariable]:
        end = k + BATCH_BLOCK
        row = a[:, k:end, :k] if lower else a[:, k:end, end:]
        rest = less_product(b[:, k:end], row, known)
        block = a[:, k:end, k:end]
        count = pt.minimum(a.shape[1] - k, BATCH_BLOCK)
        found = batch_first(
            _substituted(batch_last(block), batch_last(rest), count, lower, unit_diagonal)
        )
        return [pt.concatenate([known, found] if lower else [found, known], axis=1)]

    count = block_count(n, BATCH_BLOCK)
    starts = pt.arange(count) * BATCH_BLOCK
    start = pt.zeros((a.shape[0], nothing(n), b.shape[2]), dtype)
    (solutions,) = iterate(
        step,
        [start],
        [a, b],
        n_steps=count,
        sequences=[starts if lower else starts[::-1]],
    )
    if unit_diagonal:
        return solutions
    regular = pt.neq(diagonals(a), 0).all(axis=1)
    return solutions + poison(regular, dtype)[:, None, None]


def _substituted(
    block: TensorVariable,
    rest: TensorVariable,
    count: TensorVariable,
    lower: bool,
    unit_diagonal: bool,
) -> TensorVariable:
    """Return the solutions of systems of so many rows, whose batch axis is the last."""

    def step(
        j: TensorVariable, rest: TensorVariable, block: TensorVariable
    ) -> list[TensorVariable]:
        # The unknowns come from the first equation if lower, and else from the last.
        first, others = (rest[0], rest[1:]) if lower else (rest[-1], rest[:-1])
        found = first if unit_diagonal else first / block[j, j]
        column = block[j + 1 :, j] if lower else block[:j, j]
        return [others - column[:, None] * found, found]

    order = pt.arange(count)
    _, found = pytensor.scan(
        step,
        [order if lower else order[::-1]],
        [rest, None],
        [block],
        return_updates=False,
        strict=True,
    )
    return found if lower else found[::-1]
