"""Elimination with partial pivoting, in all matrices of a batch at once."""

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.linalg.matrix_batches import batch_first, batch_last
from pytensor_onnx.functions.linalg.matrix_blocks import nothing, zero
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.ops.linalg.pivot_ops import PivotPosition

SMALLEST = {
    dtype: np.finfo(dtype).smallest_subnormal.astype(dtype) for dtype in ("float32", "float64")
}
"""The smallest positive numbers, which replace pivots of zero; other pivots round them away."""


def eliminated_batch(a: TensorVariable, n: TensorVariable) -> list[TensorVariable]:
    """Eliminate the columns of a batch of matrices; return factors, pivots and orders of rows.

    Each step eliminates one column of all matrices.
    """
    dtype = a.type.dtype

    def step(
        j: TensorVariable,
        done: TensorVariable,
        pivots: TensorVariable,
        order: TensorVariable,
        rest: TensorVariable,
        rows: TensorVariable,
    ) -> list[TensorVariable]:
        position = PivotPosition(axis=0)(rest[:, j])
        chosen = pt.eq(pt.arange(rest.shape[0])[:, None], position)
        pivot_row = pt.switch(chosen[:, None], rest, zero(dtype)).sum(axis=0)
        moved = pt.switch(chosen[:, None], rest[:1], rest)[1:]
        pivot = pivot_row[j] + np.array(SMALLEST[dtype])
        multipliers = moved[:, j] / pivot
        following = moved[:, j + 1 :] - multipliers[:, None] * pivot_row[j + 1 :]
        row = pt.switch(chosen, rows, np.int64(0)).sum(axis=0)
        return [
            pt.concatenate([done, pivot_row[None]], axis=0),
            pt.concatenate([pivots, position[None] + j], axis=0),
            pt.concatenate([order, row[None]], axis=0),
            pt.concatenate([moved[:, :j], multipliers[:, None], following], axis=1),
            pt.switch(chosen, rows[:1], rows)[1:],
        ]

    count = a.shape[0]
    start = [
        pt.zeros((nothing(n), n, count), dtype),
        pt.zeros((nothing(n), count), "int64"),
        pt.zeros((nothing(n), count), "int64"),
        batch_last(a),
        pt.arange(n)[:, None] + pt.zeros((1, count), "int64"),
    ]
    done, pivots, order, _, _ = iterate(step, start, n_steps=n, sequences=[pt.arange(n)])
    return [batch_first(done), pivots.T, order.T]


def reduced_batch(a: TensorVariable, n: TensorVariable) -> list[TensorVariable]:
    """Return the rows of upper triangular factors, and the pivots that `eliminated_batch` returns.

    Multipliers are not kept, so that no step has columns that are done.

    Parameters
    ----------
    a
        Matrices with any columns of right-hand sides.
    n
        Number of their rows.
    """
    dtype, count = a.type.dtype, a.shape[0]

    def step(j: TensorVariable, rest: TensorVariable) -> list[TensorVariable]:
        position = PivotPosition(axis=0)(rest[:, 0])
        chosen = pt.eq(pt.arange(rest.shape[0])[:, None], position)[:, None]
        pivot_row = pt.switch(chosen, rest, zero(dtype)).sum(axis=0)
        moved = pt.switch(chosen[1:], rest[:1], rest[1:])
        multipliers = moved[:, 0] / (pivot_row[0] + np.array(SMALLEST[dtype]))
        following = moved[:, 1:] - multipliers[:, None] * pivot_row[1:]
        whole = pt.concatenate([pt.zeros((j, rest.shape[2]), dtype), pivot_row], axis=0)
        return [following, whole, position + j]

    _, rows, pivots = iterate(step, [batch_last(a)], n_steps=n, sequences=[pt.arange(n)])
    # The runtime's stack of no rows forgets their sizes.
    rows = batch_first(rows).reshape((count, n, a.shape[2]))
    return [rows, pivots.reshape((n, count)).T]
