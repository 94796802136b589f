"""Unitary reduction of complex pencils to Hessenberg and triangular form."""

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.complex_numbers.parts import Parts
from pytensor_onnx.functions.linalg.chases import rotation
from pytensor_onnx.functions.linalg.complex_reflectors import reflected_rows, reflection
from pytensor_onnx.functions.linalg.complex_shifts import complex_columns, interleaved
from pytensor_onnx.functions.linalg.hessenberg_triangular import column_rotations
from pytensor_onnx.functions.linalg.standard_blocks import nonzero
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.registry import define
from pytensor_onnx.ops.factorisations import ComplexHessenbergTriangular

# Elements of matrices of a scale near one that count as zero; their squares are no divisors.
_SMALLEST = np.float64(1e-140)


@define(ComplexHessenbergTriangular, ComplexHessenbergTriangular.gufunc_signature)
def hessenberg_triangular(
    a_real: TensorVariable, a_imag: TensorVariable, b_real: TensorVariable, b_imag: TensorVariable
) -> list[TensorVariable]:
    """Reduce complex pencils as `hessenberg_triangular` does real ones.

    Rotations of columns are those of the magnitudes of a row, after the columns were multiplied by
    numbers of magnitude one.

    Parameters
    ----------
    a_real, a_imag, b_real, b_imag
        Parts of square matrices with one batch axis, in float64 and of a scale near one.
    """
    batch, n = a_real.shape[0], a_real.shape[1]
    unit = pt.eye(n) + pt.zeros((batch, 1, 1))
    above = pt.concatenate([b_real, a_real, unit], axis=2)
    below = pt.concatenate([b_imag, a_imag, pt.zeros_like(unit)], axis=2)

    def step(k: TensorVariable, rows: TensorVariable) -> list[TensorVariable]:
        n = rows.shape[1] // 2
        return [reflected_rows(rows, reflection(rows[:, :n, k], rows[:, n:, k], k))]

    (rows,) = iterate(
        step, [pt.concatenate([above, below], axis=1)], n_steps=n, sequences=[pt.arange(n)]
    )
    is_zero = pt.gt(pt.arange(n)[:, None], pt.arange(3 * n))
    rows = interleaved(Parts(*(pt.switch(is_zero, 0.0, x) for x in (rows[:, :n], rows[:, n:]))), n)
    count = pt.maximum(n - 2, 0)
    rows, z = iterate(
        _without_row,
        [rows, interleaved(Parts(unit, pt.zeros_like(unit)), n)],
        n_steps=count,
        sequences=[pt.arange(count)[::-1] + 2],
    )
    below = pt.gt(pt.arange(n)[:, None], pt.arange(n) + 1)
    h = complex_columns(rows, n, 2 * n)
    h = interleaved(Parts(*(pt.switch(below, 0.0, x) for x in h)), n)
    return [pt.concatenate([h, rows[:, :, : 2 * n], rows[:, :, 4 * n :]], axis=2), z]


def _without_row(r: TensorVariable, rows: TensorVariable, z: TensorVariable) -> list:
    """Make the elements of row r of A zero that stand before the Hessenberg form."""
    n, end = z.shape[1] // 2, 2 * r
    real, imag = (rows[:, end + i, 2 * n : 2 * n + end : 2] for i in range(2))
    size = pt.sqrt(real * real + imag * imag)
    size = pt.switch(pt.lt(size, _SMALLEST), 0.0, size)
    is_zero = pt.eq(size, 0.0)
    phase = Parts(pt.switch(is_zero, 1.0, real / nonzero(size)), -imag / nonzero(size))
    turns = column_rotations(size, r)
    turn = interleaved(Parts(*(x[:, :, None] * turns for x in phase)), r)
    b = pt.matmul(rows[:, :, :end], turn)
    a = pt.matmul(rows[:, :, 2 * n : 2 * n + end], turn)
    z = pt.concatenate([pt.matmul(z[:, :, :end], turn), z[:, :, end:]], axis=2)
    rows = pt.concatenate([b, rows[:, :, end : 2 * n], a, rows[:, :, 2 * n + end :]], axis=2)
    batch, width = rows.shape[0], rows.shape[2]
    by_row = rows[:, :end].reshape((batch, r, 2, width)).transpose(1, 0, 2, 3)
    last, finished = pytensor.scan(
        _rotated_rows,
        [2 * pt.arange(r - 1), by_row[1:]],
        [by_row[0], None],
        return_updates=False,
        strict=True,
    )
    finished = finished.transpose(1, 0, 2, 3).reshape((batch, end - 2, width))
    rows = pt.concatenate([finished, last[-1], rows[:, end:]], axis=1)
    row = pt.arange(2 * n)[:, None] // 2
    return [pt.switch(pt.gt(row, pt.arange(6 * n) // 2), 0.0, rows), z]


def _rotated_rows(place: TensorVariable, incoming: TensorVariable, row: TensorVariable) -> list:
    """Rotate two rows so that the second has a zero in a column."""
    both = pt.concatenate([row, incoming], axis=1)
    both = both + pt.matmul(rotation(both[:, :, place]), both)
    return [both[:, 2:], both[:, :2]]
