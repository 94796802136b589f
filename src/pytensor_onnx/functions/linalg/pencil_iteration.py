"""The implicit QZ iteration of pencils with double shifts."""

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.linalg.pencil_shifts import bulges, deflated
from pytensor_onnx.functions.linalg.shifts import most_sweeps, range_of_chase
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.registry import define
from pytensor_onnx.ops.factorisations import ChasePencil, QuasiTriangularPencil

# Sums of squares that are too small to be divided by; the matrices have a scale near one.
_NEGLIGIBLE = np.float64(1e-280)
_UNIT = np.eye(3)


@define(QuasiTriangularPencil, QuasiTriangularPencil.gufunc_signature)
def quasi_triangular_pencil(rows: TensorVariable, z: TensorVariable) -> list[TensorVariable]:
    """Reduce pencils of Hessenberg and triangular matrices to quasi-triangular form.

    C. B. Moler and G. W. Stewart, An algorithm for generalized matrix eigenvalue problems, SIAM
    Journal on Numerical Analysis 10, 1973. Bulges are chased as those of `quasi_triangular`: from
    row to row, and then from column to column.

    Parameters
    ----------
    rows
        Hessenberg matrices H, triangular matrices T and ``Q.T`` beside each other, finite, with
        norms of at most about one.
    z
        The orthogonal matrices Z.
    """
    n = z.shape[1]

    def step(rows: TensorVariable, z: TensorVariable, waits: TensorVariable) -> tuple[list, until]:
        n = z.shape[1]
        rows, blocks = deflated(rows, n)
        first, is_begin, waits = bulges(rows[:, :, :n], rows[:, :, n : 2 * n], blocks, waits, n)
        low, count = range_of_chase(is_begin, blocks)
        rows, z = ChasePencil()(rows, z, first, 1.0 - is_begin.astype("float64"), low, count)
        return [rows, z, waits], until(~blocks.is_active.any())

    waits = pt.zeros((rows.shape[0], n))
    rows, z, _ = iterate(step, [rows, z, waits], n_steps=most_sweeps(n))
    rows, blocks = deflated(rows, n)
    return [rows, z, pt.switch(blocks.is_active.any(axis=1), np.nan, 0.0)]


@define(ChasePencil, ChasePencil.gufunc_signature)
def chased_pencil(
    rows: TensorVariable,
    z: TensorVariable,
    first: TensorVariable,
    goes_on: TensorVariable,
    low: TensorVariable,
    count: TensorVariable,
) -> list[TensorVariable]:
    """Chase the bulges that reflections of first columns make through a range of rows."""
    batch, n = rows.shape[0], rows.shape[1]
    steps = low + pt.arange(count)
    width = 3 * n + 1
    by_row = pt.concatenate([pt.zeros((batch, n, 1)), rows], axis=2).transpose(1, 0, 2)
    padded = pt.concatenate([by_row, pt.zeros((3, batch, width))], axis=0)
    # Columns of H and of T. Behind their ends nothing is turned.
    places = steps[:, None] + pt.concatenate([pt.arange(1, 4), n + pt.arange(1, 4)])
    places = pt.minimum(places, 3 * n)
    unit = pt.eq(places[:, :, None], pt.arange(width)).astype("float64")
    _, finished, turns = pytensor.scan(
        _next_row,
        [
            steps,
            first.transpose(2, 0, 1)[steps],
            goes_on.T[steps][:, :, None],
            padded[steps + 3],
            places,
            unit,
        ],
        [padded[low : low + 3].transpose(1, 0, 2), None, None],
        return_updates=False,
        strict=True,
    )
    by_row = pt.concatenate([by_row[:low], finished, by_row[low + count :]], axis=0)
    rows = by_row[:, :, 1:].transpose(1, 0, 2)
    columns = pt.concatenate([rows[:, :, :n], rows[:, :, n : 2 * n], z], axis=1)
    by_column = columns.transpose(2, 0, 1)
    padded = pt.concatenate([by_column, pt.zeros((3, batch, 3 * n))], axis=0)
    index = pt.arange(3 * n)
    is_before = pt.lt(index % n, steps[:, None]) | pt.ge(index, 2 * n)
    _, finished = pytensor.scan(
        _next_column,
        [turns, is_before.astype("float64"), padded[steps + 3]],
        [padded[low : low + 3].transpose(1, 0, 2), None],
        return_updates=False,
        strict=True,
    )
    by_column = pt.concatenate([by_column[:low], finished, by_column[low + count :]], axis=0)
    columns = by_column.transpose(1, 2, 0)
    both = pt.concatenate([columns[:, :n], columns[:, n : 2 * n], rows[:, :, 2 * n :]], axis=2)
    return [both, columns[:, 2 * n :]]


def _next_row(
    k: TensorVariable,
    first: TensorVariable,
    goes_on: TensorVariable,
    incoming: TensorVariable,
    places: TensorVariable,
    unit: TensorVariable,
    window: TensorVariable,
) -> list[TensorVariable]:
    """Reflect three rows, and turn three columns of these rows and of the next one.

    The columns are turned so that T becomes triangular again.
    """
    window = pt.matmul(_reflection(window[:, :, k] * goes_on + first, 0), window)
    t = window[:, 1:, places[3:]]
    last = _reflection(t[:, 1], 2)
    middle = pt.matmul(t[:, :1], last)[:, 0] * np.array([1.0, 1.0, 0.0])
    turn = pt.matmul(last, _reflection(middle, 1)) - _UNIT
    rows = pt.concatenate([window, incoming[:, None]], axis=1)
    batch = rows.shape[0]
    added = pt.matmul(rows[:, :, places].reshape((batch, 8, 3)), turn)
    rows = rows + pt.matmul(added.reshape((batch, 4, 6)), unit)
    return [rows[:, 1:], rows[:, 0], turn.mT]


def _next_column(
    turn: TensorVariable,
    is_before: TensorVariable,
    incoming: TensorVariable,
    window: TensorVariable,
) -> list[TensorVariable]:
    """Turn three columns in the rows that the chase has left behind."""
    window = window + pt.matmul(turn, window) * is_before
    return [pt.concatenate([window[:, 1:], incoming[:, None]], axis=1), window[:, 0]]


def _reflection(x: TensorVariable, place: int) -> TensorVariable:
    """Return the reflection of vectors of three elements to multiples of a unit vector.

    It is the identity where all other elements are negligible.
    """
    others = np.ones((3, 1))
    others[place] = 0.0
    squares = x * x
    norm = pt.sqrt(pt.matmul(squares, np.ones((3, 1))))
    vector = x + pt.switch(pt.lt(x, 0.0), -norm, norm) * _UNIT[place]
    is_reflected = pt.gt(pt.matmul(squares, others), _NEGLIGIBLE)
    factor = pt.switch(is_reflected, 2.0 / pt.matmul(vector * vector, np.ones((3, 1))), 0.0)
    return _UNIT - (factor * vector)[:, :, None] * vector[:, None]
