"""Balancing of matrices by powers of two, which makes eigenvalues more accurate."""

import numpy as np
import pytensor.tensor as pt
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate

# Sweeps over all rows, as few matrices need more than four.
_SWEEPS = 20
# The gain for which a row is scaled, as in LAPACK.
_GAIN = 0.95
_LIMIT = np.float64(2.0**200)


def balance(a: TensorVariable, n: TensorVariable) -> TensorVariable:
    """Return the powers of two ``d`` for which ``a * d / d[:, None]`` is balanced.

    R. James, J. Langou and B. Lowery, On matrix balancing and eigenvector computation, 2014: one
    row after another is scaled so that the lengths of its row and its column become nearly equal,
    until no scale changes. The diagonal counts, as in LAPACK, so that errors of the eigenvalues
    do not become large beside the matrix.

    Parameters
    ----------
    a
        Matrices of at least one row with one batch axis.
    n
        Number of rows.
    """
    count = _SWEEPS * n

    def step(
        k: TensorVariable,
        d: TensorVariable,
        idle: TensorVariable,
        rows: TensorVariable,
        columns: TensorVariable,
    ) -> tuple[list[TensorVariable], until]:
        own = d[:, k]
        row = pt.sqrt(((rows[k] * d) ** 2).sum(axis=1)) / own
        column = pt.sqrt(((columns[k] / d) ** 2).sum(axis=1)) * own
        is_scaled = pt.gt(row, 0.0) & pt.gt(column, 0.0)
        ratio = pt.switch(is_scaled, row, 1.0) / pt.switch(is_scaled, column, 1.0)
        factor = 2.0 ** pt.round(0.5 * pt.log2(ratio))
        gains = pt.lt(column * factor + row / factor, _GAIN * (column + row))
        factor = pt.switch(is_scaled & gains, factor, 1.0)
        is_own = pt.eq(pt.arange(d.shape[1]), k)
        scaled = pt.clip(
            pt.switch(is_own, (own * factor)[:, None], d), np.float64(1 / _LIMIT), _LIMIT
        )
        idle = pt.switch(pt.neq(scaled, d).any(), 0, idle + 1)
        return [scaled, idle], until(pt.ge(idle, d.shape[1]))

    d, _ = iterate(
        step,
        [pt.ones((a.shape[0], n)), pt.constant(np.int64(0))],
        [a.transpose(1, 0, 2), a.transpose(2, 0, 1)],
        n_steps=count,
        sequences=[pt.arange(count) % n],
    )
    return d
