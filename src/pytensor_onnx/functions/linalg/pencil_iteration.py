"""The implicit QZ iteration of pencils with double shifts."""

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
from pytensor_onnx.functions.linalg.pencil_shifts import bulges, deflated
from pytensor_onnx.functions.linalg.shifts import most_sweeps, range_of_chase
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.registry import define
from pytensor_onnx.ops.linalg.factorisations import ChasePencil, QuasiTriangularPencil


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
    n = rows.shape[1]
    through = Range(first, goes_on, low, count)
    rows, turns = chased_rows(
        rows, through, REAL, matrices=2, turned=reflection, restored=_restored
    )
    columns = pt.concatenate([rows[:, :, :n], rows[:, :, n : 2 * n], z], axis=1)
    index = pt.arange(3 * n)
    steps = low + pt.arange(count)
    is_before = pt.lt(index % n, steps[:, None]) | pt.ge(index, 2 * n)
    columns = chased_columns(columns.mT, turns, through, REAL, is_before.astype("float64")).mT
    both = pt.concatenate([columns[:, :n], columns[:, n : 2 * n], rows[:, :, 2 * n :]], axis=2)
    return [both, columns[:, 2 * n :]]


def _restored(t: TensorVariable) -> TensorVariable:
    """Return the turns of columns that make the rows of T triangular again."""
    turn = reflection(t[:, 2], 2)
    middle = t[:, 1] + pt.matmul(t[:, 1:2], turn)[:, 0]
    before = reflection(middle * np.array([1.0, 1.0, 0.0]), 1)
    return turn + before + pt.matmul(turn, before)
