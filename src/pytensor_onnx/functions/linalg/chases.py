"""Chases of bulges along Hessenberg matrices, and their shifts.

A bulge moves down by one row in each step, which turns a few rows and the same columns. So a loop
carries these rows alone, and a second loop the columns, for the rows left behind. A row of a
complex matrix is two rows of the real matrix whose blocks ``[[Re z, -Im z], [Im z, Re z]]`` stand
for its elements.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.linalg.blocks import (
    ahead,
    behind,
    diagonals,
    lower_diagonal,
    upper_diagonal,
)
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.shape import zeros

# Sums of squares that are too small to be divided by; the matrices have a scale near one.
_NEGLIGIBLE = np.float64(1e-280)
_THREE = np.eye(3)
_FOUR = np.eye(4)
_TWO_COMPLEX = np.array(
    [
        [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]],
        [[0, 1, 0, 0], [-1, 0, 0, 0], [0, 0, 0, -1], [0, 0, 1, 0]],
        [[0, 0, 1, 0], [0, 0, 0, 1], [-1, 0, 0, 0], [0, -1, 0, 0]],
        [[0, 0, 0, 1], [0, 0, -1, 0], [0, 1, 0, 0], [-1, 0, 0, 0]],
    ],
    "float64",
)
# Turns as linear functions of the parts of the unit vector that they map to the first axis.
_TURNS = _TWO_COMPLEX.reshape((4, 16))


class Bulge(NamedTuple):
    """Sizes of a bulge.

    Attributes
    ----------
    rows
        Rows that each step turns.
    block
        Real rows that stand for one: two for complex matrices.
    """

    rows: int
    block: int

    @property
    def size(self) -> int:
        """Number of real rows that each step turns."""
        return self.rows * self.block


REAL = Bulge(rows=3, block=1)
"""The bulge of two shifts of real matrices."""

COMPLEX = Bulge(rows=2, block=2)
"""The bulge of one shift of complex matrices."""

Turns = Callable[[TensorVariable, TensorVariable, TensorVariable], tuple[TensorVariable, ...]]


class Range(NamedTuple):
    """Rows through which bulges are chased, with what begins in them.

    Attributes
    ----------
    first
        The first columns of the products of shifted matrices, zero where none begins.
    goes_on
        Zero for a row in which a bulge begins, and else one.
    low, count
        The first row and the number of rows.
    """

    first: TensorVariable
    goes_on: TensorVariable
    low: TensorVariable
    count: TensorVariable


def chased_rows(
    rows: TensorVariable,
    through: Range,
    bulge: Bulge,
    *,
    matrices: int,
    turned: Callable[[TensorVariable], TensorVariable],
    restored: Callable[[TensorVariable], TensorVariable] | None = None,
) -> tuple[TensorVariable, TensorVariable]:
    """Turn the rows of bulges, and the columns in these rows and the next one.

    Parameters
    ----------
    rows
        Square matrices beside each other, and others behind them.
    through
        The rows to chase through.
    bulge
        Sizes of the bulges.
    matrices
        Number of the matrices whose columns are turned.
    turned
        Function of the elements that a turn makes multiples of a unit vector. Returns the unitary
        matrices of the turns, less the identity.
    restored
        Function of the rows of the second matrix in the columns of the bulge. Returns the matrices
        that turn the columns, less the identity; without it these are the adjoints of the turns.

    Returns
    -------
    tuple of TensorVariable
        The rows, and the turns of the columns, with a row for each step.
    """
    block = bulge.block
    batch, n = rows.shape[0], rows.shape[1] // block
    by_row, padded = _by_block(rows, n, bulge, before=True)
    width = by_row.shape[3]
    steps = through.low + pt.arange(through.count)
    places = _places(steps, n, bulge, matrices)
    # Behind the ends of the matrices nothing is turned.
    places = pt.minimum(places, width - 1)
    unit = pt.eq(places[:, :, None], pt.arange(width)).astype("float64")

    def step(
        place: TensorVariable,
        first: TensorVariable,
        goes_on: TensorVariable,
        incoming: TensorVariable,
        places: TensorVariable,
        unit: TensorVariable,
        window: TensorVariable,
    ) -> list[TensorVariable]:
        turn = turned(window[:, :, place] * goes_on + first)
        window = window + pt.matmul(turn, window)
        right = restored(window[:, :, places[bulge.size :]]) if restored else turn.mT
        rows = pt.concatenate([window, incoming], axis=1)
        rows = rows + pt.matmul(_columns(rows, places, right, bulge, matrices), unit)
        return [rows[:, block:], rows[:, :block], right.mT if restored else turn]

    _, finished, turns = iterate(
        step,
        [_window(padded, through.low, bulge, batch)],
        n_steps=through.count,
        sequences=[
            block * steps,
            through.first.transpose(2, 0, 1)[steps],
            through.goes_on.T[steps][:, :, None],
            padded[steps + bulge.rows],
            places,
            unit,
        ],
    )
    by_row = _replaced(by_row, finished, through)
    rows = by_row.transpose(1, 0, 2, 3).reshape((batch, n * block, width))
    return rows[:, :, block:], turns


def chased_columns(
    columns: TensorVariable,
    turns: TensorVariable,
    through: Range,
    bulge: Bulge,
    is_before: TensorVariable,
) -> TensorVariable:
    """Turn the columns of bulges in the rows that a chase has left behind.

    Parameters
    ----------
    columns
        Matrices with columns as rows.
    turns
        Turns of `chased_rows`.
    through
        The rows of the chase.
    bulge
        Sizes of the bulges.
    is_before
        Whether a row is left behind in a step, for the numbers of steps and rows.
    """
    batch, n = columns.shape[0], columns.shape[1] // bulge.block
    by_column, padded = _by_block(columns, n, bulge, before=False)
    steps = through.low + pt.arange(through.count)

    def step(
        turn: TensorVariable,
        is_before: TensorVariable,
        incoming: TensorVariable,
        window: TensorVariable,
    ) -> list[TensorVariable]:
        window = window + pt.matmul(turn, window) * is_before
        following = pt.concatenate([window[:, bulge.block :], incoming], axis=1)
        return [following, window[:, : bulge.block]]

    _, finished = iterate(
        step,
        [_window(padded, through.low, bulge, batch)],
        n_steps=through.count,
        sequences=[turns, is_before, padded[steps + bulge.rows]],
    )
    by_column = _replaced(by_column, finished, through)
    return by_column.transpose(1, 0, 2, 3).reshape(columns.shape)


def _places(
    steps: TensorVariable, n: TensorVariable, bulge: Bulge, matrices: int
) -> TensorVariable:
    """Return the positions of the columns of all matrices that each step turns."""
    block = bulge.block
    return block * steps[:, None] + pt.concatenate(
        [block * (n * i + 1) + np.arange(bulge.size) for i in range(matrices)]
    )


def _columns(
    rows: TensorVariable, places: TensorVariable, turn: TensorVariable, bulge: Bulge, matrices: int
) -> TensorVariable:
    """Return the products of the columns of each matrix and a turn, beside each other."""
    columns = rows[:, :, places]
    if matrices == 1:
        return pt.matmul(columns, turn)
    batch = rows.shape[0]
    turned = pt.matmul(columns.reshape((batch, -1, bulge.size)), turn)
    return turned.reshape((batch, bulge.size + bulge.block, matrices * bulge.size))


def _replaced(by_block: TensorVariable, finished: TensorVariable, through: Range) -> TensorVariable:
    """Return blocks of rows with the rows of a chase replaced."""
    low, count = through.low, through.count
    return pt.concatenate([by_block[:low], finished, by_block[low + count :]], axis=0)


def _by_block(
    rows: TensorVariable, n: TensorVariable, bulge: Bulge, *, before: bool
) -> tuple[TensorVariable, TensorVariable]:
    """Return blocks of rows as the first axis, and these with blocks of zeros behind.

    With ``before``, a column of zeros stands before the others.
    """
    batch, block = rows.shape[0], bulge.block
    if before:
        rows = pt.concatenate([zeros((batch, n * block, block)), rows], axis=2)
    width = rows.shape[2]
    by_row = rows.reshape((batch, n, block, width)).transpose(1, 0, 2, 3)
    behind = zeros((bulge.rows, batch, block, width))
    return by_row, pt.concatenate([by_row, behind], axis=0)


def _window(
    padded: TensorVariable, low: TensorVariable, bulge: Bulge, batch: TensorVariable
) -> TensorVariable:
    """Return the first rows of a chase."""
    rows = padded[low : low + bulge.rows].transpose(1, 0, 2, 3)
    return rows.reshape((batch, bulge.size, padded.shape[3]))


def reflection(x: TensorVariable, place: int = 0) -> TensorVariable:
    """Return reflections of three elements to multiples of a unit vector, less the identity.

    They are zero where all other elements are negligible.

    Parameters
    ----------
    x
        One vector of three elements for each matrix.
    place
        Axis of the unit vector.
    """
    others = np.ones((3, 1))
    others[place] = 0.0
    squares = x * x
    norm = pt.sqrt(pt.matmul(squares, np.ones((3, 1))))
    vector = x + pt.switch(pt.lt(x, 0.0), -norm, norm) * _THREE[place]
    is_reflected = pt.gt(pt.matmul(squares, others), _NEGLIGIBLE)
    factor = pt.switch(is_reflected, -2.0 / pt.matmul(vector * vector, np.ones((3, 1))), 0.0)
    return (vector[:, :, None] * vector[:, None]) * factor[:, :, None]


def rotation(x: TensorVariable) -> TensorVariable:
    """Return rotations of two complex numbers to a positive one and zero, less the identity.

    They are zero where the second number is negligible.

    Parameters
    ----------
    x
        The parts of the first and of the second number.
    """
    squares = x * x
    is_turned = pt.gt(pt.matmul(squares, np.array([[0.0], [0.0], [1.0], [1.0]])), _NEGLIGIBLE)
    norm = pt.sqrt(pt.matmul(squares, np.ones((4, 1))))
    unit = pt.switch(is_turned, x / norm, _FOUR[0])
    return pt.matmul(unit, _TURNS).reshape((x.shape[0], 4, 4)) - _FOUR


_EPS = np.finfo("float64").eps
# Elements of matrices of a scale near one that count as zero; their squares are no divisors.
_SMALLEST = np.float64(1e-140)
# Sweeps without deflation before an exceptional shift.
_PATIENCE = 10


class Unreduced(NamedTuple):
    """Blocks between zeros below the diagonal.

    Attributes
    ----------
    is_first
        Whether a row is the first of its block.
    is_active
        Whether the block of a row has so many rows that it is reduced further.
    last
        The last row of the block of a row.
    """

    is_first: TensorVariable
    is_active: TensorVariable
    last: TensorVariable


class Bulges(NamedTuple):
    """Bulges that a sweep chases.

    Attributes
    ----------
    first
        The first three elements of the first columns, in the second axis; zero where none begins.
    is_begin
        Whether a bulge begins in a row.
    waits
        The numbers of sweeps that blocks with a last row have seen, after this one.
    """

    first: TensorVariable
    is_begin: TensorVariable
    waits: TensorVariable


def deflated(rows: TensorVariable, n: TensorVariable) -> tuple[TensorVariable, Unreduced]:
    """Set negligible elements below the diagonal to zero, and find the blocks between zeros."""
    h = rows[:, :, :n]
    d, e, f = diagonals(h), behind(lower_diagonal(h)), behind(upper_diagonal(h))
    before = behind(d)
    is_small = negligible(pt.abs(e), pt.abs(f), pt.abs(d), pt.abs(before), pt.abs(before - d))
    return pt.switch(below(is_small, n), 0.0, rows), unreduced(is_small, n, 2)


def negligible(
    below: TensorVariable,
    above: TensorVariable,
    d: TensorVariable,
    before: TensorVariable,
    gap: TensorVariable,
) -> TensorVariable:
    """Return whether elements below the diagonal count as zero (Ahues and Tisseur, 1997).

    Parameters
    ----------
    below, above
        Magnitudes of these elements, and of those in the same place above the diagonal.
    d, before
        Magnitudes of the elements on the diagonal in their rows, and in the rows before.
    gap
        Magnitudes of the differences of both.
    """
    scale = d + before
    scale = pt.switch(pt.eq(scale, 0.0), 1.0, scale)
    larger, smaller = pt.maximum(below, above), pt.minimum(below, above)
    far, near = pt.maximum(d, gap), pt.minimum(d, gap)
    total = far + larger
    is_harmless = pt.le(
        smaller * (larger / total), pt.maximum(_SMALLEST, _EPS * (near * (far / total)))
    )
    return pt.le(below, _SMALLEST) | (pt.le(below, _EPS * scale) & is_harmless)


def below(is_small: TensorVariable, n: TensorVariable) -> TensorVariable:
    """Return which elements of Hessenberg matrices, and of others beside them, are set to zero.

    Parameters
    ----------
    is_small
        Whether the element of a row below the diagonal counts as zero.
    n
        Number of rows.
    """
    column = pt.arange(2 * n)
    kept_from = pt.arange(n)[:, None] - pt.switch(is_small, 0, 1)[:, :, None]
    return pt.lt(column, kept_from) & pt.lt(column, n)


def unreduced(is_small: TensorVariable, n: TensorVariable, least: int) -> Unreduced:
    """Return the blocks between zeros; those with more than ``least`` rows are active."""
    index = pt.arange(n)
    row, column = index[:, None], index[None, :]
    splits = is_small[:, None, :]
    last = pt.switch(pt.gt(column, row) & splits, index, n).min(axis=2) - 1
    first = pt.switch(pt.le(column, row) & splits, index, 0).max(axis=2)
    return Unreduced(is_small, pt.ge(last - first, least), last)


def bulges(
    h: TensorVariable, blocks: Unreduced, waits: TensorVariable, n: TensorVariable
) -> Bulges:
    """Return the first columns of ``(H - s) (H - conj(s))`` with the shifts of each block.

    A bulge begins in the last row that has two small elements below the diagonal beside it, or
    else in the first row of the block.

    Parameters
    ----------
    h
        Hessenberg matrices.
    blocks
        Their unreduced blocks.
    waits
        The numbers of sweeps that blocks with a last row have seen.
    n
        Number of rows.
    """
    d, e, f = diagonals(h), behind(lower_diagonal(h)), behind(upper_diagonal(h))
    index = pt.arange(n)
    is_last = last_rows(blocks, n)
    ends = is_last.astype("float64")
    at_end = pt.matmul(pt.stack([behind(d), d, e, f, behind(e), waits], axis=1), ends)
    shift, width = shifts(*(at_end[:, i] for i in range(6)))
    below, following = ahead(e), ahead(d)
    gap = d - shift
    scale = pt.abs(gap) + width + pt.abs(below)
    scale = pt.switch(pt.eq(scale, 0.0), 1.0, scale)
    ratio = below / scale
    columns = [
        ratio * ahead(f) + gap * (gap / scale) + width * (width / scale),
        ratio * (gap + following - shift),
        ratio * ahead(below),
    ]
    around = pt.abs(behind(d)) + pt.abs(d) + pt.abs(following)
    neglected = pt.abs(e) * (pt.abs(columns[1]) + pt.abs(columns[2]))
    fits = blocks.is_active & pt.le(index, blocks.last - 2)
    begins = fits & (blocks.is_first | pt.le(neglected, _EPS * pt.abs(columns[0]) * around))
    is_behind = pt.gt(index, index[:, None]) & pt.le(index, blocks.last[:, :, None])
    begins = begins & ~(is_behind & begins[:, None, :]).any(axis=2)
    first = pt.switch(begins[:, None, :], pt.stack(columns, axis=1), 0.0)
    return Bulges(first, begins, pt.switch(is_last.any(axis=2), waits + 1.0, 0.0))


def last_rows(blocks: Unreduced, n: TensorVariable) -> TensorVariable:
    """Return which column is the last row of an active block, for each row before it."""
    is_last = pt.eq(pt.arange(n)[:, None], blocks.last[:, None, :])
    return is_last & blocks.is_active[:, None, :]


def is_stuck(waits: TensorVariable) -> TensorVariable:
    """Return whether blocks have waited so long for a zero that the shift is exceptional."""
    return pt.gt(waits, 0.0) & pt.eq(waits - _PATIENCE * pt.floor(waits / _PATIENCE), 0.0)


def shifts(
    a: TensorVariable,
    d: TensorVariable,
    c: TensorVariable,
    b: TensorVariable,
    above: TensorVariable,
    waits: TensorVariable,
) -> tuple[TensorVariable, TensorVariable]:
    """Return the real and the imaginary part of a shift, an eigenvalue of ``[[a, b], [c, d]]``.

    Of two real eigenvalues it is the one next to ``d``; after some sweeps it is exceptional.
    """
    size = pt.abs(c) + pt.abs(above)
    waited = is_stuck(waits)
    d = pt.switch(waited, d + 0.75 * size, d)
    a = pt.switch(waited, d, a)
    product = pt.switch(waited, -0.4375 * size * size, b * c)
    half = 0.5 * (a - d)
    discriminant = half * half + product
    root = pt.sqrt(pt.abs(discriminant))
    mean = d + half
    is_complex = pt.lt(discriminant, 0.0)
    real = mean + pt.switch(pt.gt(half, 0.0), -root, root)
    return pt.switch(is_complex, mean, real), pt.switch(is_complex, root, 0.0)


def most_sweeps(n: TensorVariable) -> TensorVariable:
    """Return the largest number of sweeps: 30 for each row, and for ten rows at least."""
    return 30 * pt.maximum(n, 10)


def range_of_chase(
    is_begin: TensorVariable, blocks: Unreduced
) -> tuple[TensorVariable, TensorVariable]:
    """Return the first row and the number of rows through which bulges of a batch are chased.

    Parameters
    ----------
    is_begin
        Whether a bulge begins in a row.
    blocks
        The blocks that the bulges run through.
    """
    n = is_begin.shape[1]
    low = pt.switch(is_begin.any(axis=0), pt.arange(n), n - 1).min()
    last = pt.switch(blocks.is_active, blocks.last, 0).flatten()
    return low, pt.concatenate([last - low, pt.zeros((1,), "int64")]).max() + 1
