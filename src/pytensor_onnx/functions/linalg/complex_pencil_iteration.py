"""The implicit QZ iteration of complex pencils with single shifts."""

import numpy as np
import pytensor.tensor as pt
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.complex.complex_arithmetic import Parts, chosen, extent, quotient
from pytensor_onnx.functions.linalg.chases import (
    COMPLEX,
    Range,
    chased_columns,
    chased_rows,
    rotation,
)
from pytensor_onnx.functions.linalg.complex_shifts import (
    complex_columns,
    interleaved,
    wilkinson_shift,
)
from pytensor_onnx.functions.linalg.matrix_batches import diagonals
from pytensor_onnx.functions.linalg.pencil_shifts import NEGLIGIBLE, below_pencils
from pytensor_onnx.functions.linalg.shifts import (
    Bulges,
    Unreduced,
    last_rows,
    most_sweeps,
    range_of_chase,
    unreduced,
)
from pytensor_onnx.functions.linalg.standard_blocks import (
    ahead,
    behind,
    lower_diagonal,
    upper_diagonal,
)
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.registry import define
from pytensor_onnx.ops.linalg.factorisations import ComplexTriangularPencil

_EPS = np.finfo("float64").eps
# The places of the conjugated second element of a row of T, and of the first one.
_ELEMENTS = np.array([10, 14, 8, 12])
_CONJUGATED = np.array([1.0, -1.0, 1.0, 1.0])


@define(ComplexTriangularPencil, ComplexTriangularPencil.gufunc_signature)
def triangular_pencil(rows: TensorVariable, z: TensorVariable) -> list[TensorVariable]:
    """Reduce complex pencils of Hessenberg and triangular matrices to triangular form.

    C. B. Moler and G. W. Stewart, An algorithm for generalized matrix eigenvalue problems, SIAM
    Journal on Numerical Analysis 10, 1973, with the shifts of LAPACK's ``zhgeqz``. Bulges are
    chased as those of complex Hessenberg matrices.

    Parameters
    ----------
    rows
        Hessenberg matrices H, triangular matrices T and ``Q^H`` of `ComplexHessenbergTriangular`,
        finite, with norms of at most about one.
    z
        The unitary matrices Z.
    """

    def step(rows: TensorVariable, z: TensorVariable, waits: TensorVariable) -> tuple[list, until]:
        n = waits.shape[1]
        rows, blocks = _deflated(rows, n)
        first, is_begin, waits = _bulges(rows, blocks, waits, n)
        goes_on = 1.0 - is_begin.astype("float64")
        through = Range(first, goes_on, *range_of_chase(is_begin, blocks))
        rows, turns = chased_rows(
            rows, through, COMPLEX, matrices=2, turned=rotation, restored=_restored
        )
        columns = [rows[:, :, : 2 * n], rows[:, :, 2 * n : 4 * n], z]
        index, steps = pt.arange(6 * n), 2 * (through.low + pt.arange(through.count))
        is_before = pt.lt(index % (2 * n), steps[:, None]) | pt.ge(index, 4 * n)
        columns = chased_columns(
            pt.concatenate(columns, axis=1).mT,
            turns,
            through,
            COMPLEX,
            is_before.astype("float64"),
        ).mT
        both = [columns[:, : 2 * n], columns[:, 2 * n : 4 * n], rows[:, :, 4 * n :]]
        rows = pt.concatenate(both, axis=2)
        return [rows, columns[:, 4 * n :], waits], until(~blocks.is_active.any())

    n = z.shape[1] // 2
    rows, z, _ = iterate(step, [rows, z, pt.zeros((z.shape[0], n))], n_steps=most_sweeps(n))
    rows, blocks = _deflated(rows, n)
    return [rows, z, pt.switch(blocks.is_active.any(axis=1), np.nan, 0.0)]


def _deflated(rows: TensorVariable, n: TensorVariable) -> tuple[TensorVariable, Unreduced]:
    """Set negligible elements below the diagonals to zero, and find the blocks between zeros."""
    parts = complex_columns(rows, pt.constant(0), 3 * n)
    size = extent(Parts(*(behind(lower_diagonal(x[:, :, :n])) for x in parts)))
    is_small = pt.le(size, NEGLIGIBLE)
    is_zero = below_pencils(is_small, n)
    # Rounding errors of both columns of a block differ, and would never vanish.
    kept = Parts(*(pt.switch(is_zero, 0.0, x) for x in parts))
    return interleaved(kept, n), unreduced(is_small, n, 1)


def _bulges(
    rows: TensorVariable, blocks: Unreduced, waits: TensorVariable, n: TensorVariable
) -> Bulges:
    """Return the first columns of ``H @ inv(T) - s`` with the shift of each block.

    Divisors on the diagonal of T that are zero are replaced: shifts and first columns decide on
    the convergence alone.
    """
    h, t = complex_columns(rows, pt.constant(0), n), complex_columns(rows, n, 2 * n)
    d, e, f = (
        Parts(*(of(x) for x in h))
        for of in (
            diagonals,
            lambda x: behind(lower_diagonal(x)),
            lambda x: behind(upper_diagonal(x)),
        )
    )
    td, tf = (Parts(*(of(x) for x in t)) for of in (diagonals, lambda x: behind(upper_diagonal(x))))
    td = _divisors(td)
    before = _divisors(_moved(td))
    a, c = quotient(_moved(d), before), quotient(e, before)
    values = [a, quotient(f - a * tf, td), c, quotient(d - c * tf, td)]
    stacked = pt.stack([*(part for x in values for part in x), waits], axis=1)
    is_last = last_rows(blocks, n)
    at_end = pt.matmul(stacked, is_last.astype("float64"))
    m11, m12, m21, m22 = (Parts(at_end[:, i], at_end[:, i + 1]) for i in range(0, 8, 2))
    shift = wilkinson_shift(m11, m12, m21, m22, at_end[:, 8])
    under = Parts(*(ahead(x) for x in e))
    first = pt.stack([*(quotient(d, td) - shift), *quotient(under, td)], axis=1)
    largest = pt.abs(first).max(axis=1, keepdims=True)
    first = first / pt.switch(pt.eq(largest, 0.0), 1.0, largest)
    begins = blocks.is_active & blocks.is_first
    first = pt.switch(begins[:, None, :], first, 0.0)
    return Bulges(first, begins, pt.switch(is_last.any(axis=2), waits + 1.0, 0.0))


def _moved(z: Parts) -> Parts:
    return Parts(*(behind(x) for x in z))


def _divisors(z: Parts) -> Parts:
    """Return numbers with those near zero replaced."""
    small = Parts(pt.full_like(z.real, _EPS), pt.zeros_like(z.imag))
    return chosen(pt.gt(extent(z), _EPS), z, small)


def _restored(t: TensorVariable) -> TensorVariable:
    """Return the turns of columns that make the second row of T triangular again."""
    return rotation(t.reshape((t.shape[0], 16))[:, _ELEMENTS] * _CONJUGATED)
