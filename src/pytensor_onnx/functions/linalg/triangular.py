"""Solution of triangular systems by blocks of rows."""

from typing import NamedTuple

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.conditional.op import ifelse
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.linalg.blocks import (
    BATCH_BLOCK,
    BLOCK,
    END,
    batch_first,
    batch_last,
    block_count,
    diagonals,
    flat,
    less_product,
    nothing,
    plus_product,
    poison,
    unflat,
    zero,
)
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.ops.linalg.matrix_parts import Elements, Triangle, Window

ROWS = 16
"""Rows of a block of one system; the inverses of all blocks are computed together."""


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
    """
    return ifelse(pt.gt(n, 0), _solution_by_blocks(a, b, n, lower, unit_diagonal), b)


class _Diagonal(NamedTuple):
    """Blocks on the diagonal of a triangular matrix, and their inverses."""

    blocks: TensorVariable
    inverses: TensorVariable


def _solution_by_blocks(
    a: TensorVariable, b: TensorVariable, n: TensorVariable, lower: bool, unit_diagonal: bool
) -> TensorVariable:
    """Return the solution of one system of at least one equation.

    The block that is solved first has the rows that the other ones leave. It is filled up with
    rows that are solved again, or, where the matrix has too few, with the equation on whose
    unknown no other one depends.
    """
    count = block_count(n, ROWS)
    index = pt.arange(count)
    start, order = _order(n, count, index, lower)
    rows = pt.minimum(order, n - 1) if lower else pt.maximum(order, 0)
    places = (rows * n)[:, :, None] + rows[:, None, :]
    blocks = Elements()(a.reshape((-1,)), places.reshape((-1,))).reshape((-1, ROWS, ROWS))
    diagonal = blocks.reshape((-1, ROWS * ROWS))[:, np.arange(ROWS) * (ROWS + 1)]
    if unit_diagonal:
        beside = Triangle(lower=lower, diagonal=-1 if lower else 1)(blocks)
        # The repeated row has an element on the diagonal, which is not read.
        beside = pt.switch(pt.eq(rows, order)[:, :, None], beside, zero(a.type.dtype))
        blocks = beside + np.eye(ROWS, dtype=a.type.dtype)[None]
        inverses = inverted_blocks(beside, ROWS)
    else:
        blocks = Triangle(lower=lower)(blocks)
        inverses = inverted_blocks(blocks / diagonal[:, :, None], ROWS) / diagonal[:, None, :]
    starts, ends = _windows(start, lower)

    def step(
        i: TensorVariable,
        known: TensorVariable,
        a: TensorVariable,
        starts: TensorVariable,
        ends: TensorVariable,
        b: TensorVariable,
        of: _Diagonal,
    ) -> list[TensorVariable]:
        rest = less_product(b[i], Window()(a, starts[i], ends[i]), known)
        found = refined(rest, of.blocks[i], of.inverses[i])
        return [pt.concatenate([known, found] if lower else [found, known], axis=0)]

    rights, others = b[rows], index[1:]
    known = refined(rights[0], blocks[0], inverses[0])
    (solution,) = iterate(
        step,
        [known[: start[0] + ROWS] if lower else known[start[0] - n :]],
        [a, starts, ends, rights, _Diagonal(blocks, inverses)],
        n_steps=others.shape[0],
        sequences=[others],
    )
    if unit_diagonal:
        return solution
    return solution + poison(pt.neq(diagonal, 0), a.type.dtype).sum()


def _order(
    n: TensorVariable, count: TensorVariable, index: TensorVariable, lower: bool
) -> tuple[TensorVariable, TensorVariable]:
    """Return the first row of each block in the order of solution, and the rows of the blocks.

    The first row is negative where the first block starts before the matrix, and rows of a matrix
    shorter than a block are outside of it.
    """
    within = np.arange(ROWS)
    if lower:
        start = n - (count - index) * ROWS
        return start, pt.maximum(start, 0)[:, None] + within
    start = (count - 1 - index) * ROWS
    return start, pt.minimum(start, n - ROWS)[:, None] + within


def _windows(start: TensorVariable, lower: bool) -> tuple[TensorVariable, TensorVariable]:
    """Return the starts and ends of the terms of each block with unknowns solved before it."""
    first, row_only = start[:, None], np.array([1, 0])
    if lower:
        return first * row_only, first + np.array([ROWS, 0])
    return first + np.array([0, ROWS]), first * row_only + np.array([ROWS, END])


def refined(b: TensorVariable, block: TensorVariable, inverse: TensorVariable) -> TensorVariable:
    """Return the solution of a block of equations by its inverse, refined once."""
    first = pt.dot(inverse, b)
    return plus_product(first, inverse, less_product(b, block, first))


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
