"""Chases of bulges along the diagonals of Hessenberg matrices and pencils.

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
