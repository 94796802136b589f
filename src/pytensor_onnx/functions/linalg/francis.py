"""The implicit QR iteration of Hessenberg matrices with double shifts."""

import numpy as np
import pytensor.tensor as pt
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.linalg.chases import (
    REAL,
    Range,
    chased_columns,
    chased_rows,
    reflection,
)
from pytensor_onnx.functions.linalg.shifts import bulges, deflated, most_sweeps, range_of_chase
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.registry import define
from pytensor_onnx.ops.linalg.factorisations import ChaseBulges, QuasiTriangular


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
    n = rows.shape[1]
    through = Range(first, goes_on, low, count)
    rows, turns = chased_rows(rows, through, REAL, matrices=1, turned=reflection)
    is_before = pt.lt(pt.arange(n), (low + pt.arange(count))[:, None]).astype("float64")
    columns = chased_columns(rows[:, :, :n].mT, turns, through, REAL, is_before)
    return pt.concatenate([columns.mT, rows[:, :, n:]], axis=2)
