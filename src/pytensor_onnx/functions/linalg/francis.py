"""The implicit QR iteration of Hessenberg matrices with double shifts."""

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.linalg.shifts import bulges, deflated, most_sweeps, range_of_chase
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.registry import define
from pytensor_onnx.ops.factorisations import ChaseBulges, QuasiTriangular


@define(QuasiTriangular, QuasiTriangular.gufunc_signature)
def quasi_triangular(rows: TensorVariable) -> list[TensorVariable]:
    """Reduce a batch of Hessenberg matrices to quasi-triangular form.

    G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed., section 7.5. Each sweep chases
    a bulge through every block between two zeros below the diagonal, in all matrices of the batch:
    first from row to row, and then, in the rows that the chase has left behind, from column to
    column. So the loops carry three rows and not the matrix.

    Parameters
    ----------
    rows
        Hessenberg matrices ``H`` of at least one row, of a scale near one and finite, and beside
        them ``Q.T``, which takes part in the operations on rows.

    Returns
    -------
    list of TensorVariable
        The rows afterwards, and zero, or NaN where the iteration has not converged.
    """
    n = rows.shape[1]

    def step(rows: TensorVariable, waits: TensorVariable) -> tuple[list[TensorVariable], until]:
        n = rows.shape[1]
        rows, blocks = deflated(rows, n)
        first, is_begin, waits = bulges(rows[:, :, :n], blocks, waits, n)
        low, count = range_of_chase(is_begin, blocks)
        rows = ChaseBulges()(rows, first, 1.0 - is_begin.astype("float64"), low, count)
        return [rows, waits], until(~blocks.is_active.any())

    waits = pt.zeros((rows.shape[0], n))
    rows, _ = iterate(step, [rows, waits], n_steps=most_sweeps(n))
    rows, blocks = deflated(rows, n)
    return [rows, pt.switch(blocks.is_active.any(axis=1), np.nan, 0.0)]


@define(ChaseBulges, ChaseBulges.gufunc_signature)
def chased(
    rows: TensorVariable,
    first: TensorVariable,
    goes_on: TensorVariable,
    low: TensorVariable,
    count: TensorVariable,
) -> TensorVariable:
    """Chase the bulges that reflections of first columns make through a range of rows."""
    batch, n = rows.shape[0], rows.shape[1]
    steps = low + pt.arange(count)
    by_row = pt.concatenate([pt.zeros((batch, n, 1)), rows], axis=2).transpose(1, 0, 2)
    padded = pt.concatenate([by_row, pt.zeros((3, batch, 2 * n + 1))], axis=0)
    places = pt.minimum(steps[:, None] + pt.arange(1, 4)[None, :], 2 * n)
    unit = pt.eq(places[:, :, None], pt.arange(2 * n + 1)).astype("float64")
    _, finished, vectors, scaled = pytensor.scan(
        _next_row,
        [
            steps,
            first.transpose(2, 0, 1)[steps],
            goes_on.T[steps][:, :, None],
            padded[steps + 3],
            places,
            unit,
        ],
        [padded[low : low + 3].transpose(1, 0, 2), None, None, None],
        return_updates=False,
        strict=True,
    )
    by_row = pt.concatenate([by_row[:low], finished, by_row[low + count :]], axis=0)
    by_column = by_row[:, :, 1 : n + 1].transpose(2, 1, 0)
    padded = pt.concatenate([by_column, pt.zeros((3, batch, n))], axis=0)
    is_before = pt.lt(pt.arange(n)[None, :], steps[:, None]).astype("float64")
    _, finished = pytensor.scan(
        _next_column,
        [vectors, scaled, is_before, padded[steps + 3]],
        [padded[low : low + 3].transpose(1, 0, 2), None],
        return_updates=False,
        strict=True,
    )
    by_column = pt.concatenate([by_column[:low], finished, by_column[low + count :]], axis=0)
    return pt.concatenate(
        [by_column.transpose(1, 2, 0), by_row[:, :, n + 1 :].transpose(1, 0, 2)], axis=2
    )


# Sums of squares that are too small to be divided by; the matrices have a scale near one.
_NEGLIGIBLE = np.float64(1e-280)
_ONES = np.ones((3, 1))
_REST = np.array([[0.0], [1.0], [1.0]])
_FIRST = np.array([1.0, 0.0, 0.0])


def _next_row(
    k: TensorVariable,
    first: TensorVariable,
    goes_on: TensorVariable,
    incoming: TensorVariable,
    places: TensorVariable,
    unit: TensorVariable,
    window: TensorVariable,
) -> list[TensorVariable]:
    """Reflect three rows and the same columns of these rows and the next one."""
    x = window[:, :, k] * goes_on + first
    squares = x * x
    norm = pt.sqrt(pt.matmul(squares, _ONES))
    vector = x + pt.switch(pt.lt(x, 0.0), -norm, norm) * _FIRST
    is_reflected = pt.gt(pt.matmul(squares, _REST), _NEGLIGIBLE)
    factor = pt.switch(is_reflected, 2.0 / pt.matmul(vector * vector, _ONES), 0.0)
    row, column = vector[:, None], (factor * vector)[:, :, None]
    window = window - pt.matmul(column, pt.matmul(row, window))
    rows = pt.concatenate([window, incoming[:, None]], axis=1)
    along = pt.matmul(rows[:, :, places], column)
    rows = rows - pt.matmul(along, pt.matmul(row, unit))
    return [rows[:, 1:], rows[:, 0], row, column]


def _next_column(
    row: TensorVariable,
    column: TensorVariable,
    is_before: TensorVariable,
    incoming: TensorVariable,
    window: TensorVariable,
) -> list[TensorVariable]:
    """Reflect three columns in the rows that the chase has left behind."""
    window = window - pt.matmul(column, pt.matmul(row, window) * is_before)
    return [pt.concatenate([window[:, 1:], incoming[:, None]], axis=1), window[:, 0]]
