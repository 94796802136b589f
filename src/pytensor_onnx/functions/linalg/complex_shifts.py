"""Deflation and shifts of the QR iteration of complex matrices, as those of LAPACK's ``zlahqr``."""

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.complex.complex_arithmetic import Parts, chosen, extent, quotient, root
from pytensor_onnx.functions.linalg.matrix_batches import diagonals
from pytensor_onnx.functions.linalg.shifts import (
    Bulges,
    Unreduced,
    below,
    is_stuck,
    last_rows,
    negligible,
    unreduced,
)
from pytensor_onnx.functions.linalg.standard_blocks import (
    ahead,
    behind,
    lower_diagonal,
    upper_diagonal,
)

_EPS = np.finfo("float64").eps
# Signs of the parts of a number multiplied by the imaginary unit.
_TURNED = np.array([[-1.0], [1.0]])


def interleaved(z: Parts, n: TensorVariable) -> TensorVariable:
    """Return real matrices in which ``[[Re z, -Im z], [Im z, Re z]]`` stands for each element.

    Examples
    --------
    >>> z = Parts(pt.constant([[[1.0]]]), pt.constant([[[2.0]]]))
    >>> interleaved(z, pt.constant(1)).eval()
    array([[[ 1., -2.],
            [ 2.,  1.]]])
    """
    above = pt.stack([z.real, -z.imag], axis=3)
    blocks = pt.stack([above, pt.stack([z.imag, z.real], axis=3)], axis=2)
    return blocks.reshape((z.real.shape[0], 2 * n, 2 * z.real.shape[2]))


def complex_columns(rows: TensorVariable, start: TensorVariable, stop: TensorVariable) -> Parts:
    """Return the matrices that columns of `interleaved` ones stand for."""
    first = rows[:, :, 2 * start : 2 * stop : 2]
    return Parts(first[:, ::2], first[:, 1::2])


def deflated(rows: TensorVariable, n: TensorVariable) -> tuple[TensorVariable, Unreduced]:
    """Set negligible elements below the diagonal to zero, and find the blocks between zeros."""
    d, e, f = _diagonals(complex_columns(rows, pt.constant(0), n))
    before = _behind(d)
    is_small = negligible(extent(e), extent(f), extent(d), extent(before), extent(before - d))
    first = rows[:, :, ::2].reshape((rows.shape[0], n, 2, 2 * n))
    first = pt.switch(below(is_small, n)[:, :, None, :], 0.0, first)
    # Rounding errors of both columns of a block differ, and would never vanish.
    second = first[:, :, ::-1] * _TURNED
    return pt.stack([first, second], axis=4).reshape(rows.shape), unreduced(is_small, n, 1)


def bulges(
    rows: TensorVariable, blocks: Unreduced, waits: TensorVariable, n: TensorVariable
) -> Bulges:
    """Return the first columns of ``H - s`` with the shift of each block.

    A bulge begins in the last row that has two small elements below the diagonal beside it, or
    else in the first row of the block. The first columns have the parts of two elements.
    """
    d, e, f = _diagonals(complex_columns(rows, pt.constant(0), n))
    index = pt.arange(n)
    is_last = last_rows(blocks, n)
    before = _behind(d)
    values = pt.stack([*before, *d, *e, *f, waits], axis=1)
    at_end = pt.matmul(values, is_last.astype("float64"))
    a, shift, c, b = (Parts(at_end[:, i], at_end[:, i + 1]) for i in (0, 2, 4, 6))
    shift = wilkinson_shift(a, b, c, shift, at_end[:, 8])
    gap, under = d - shift, Parts(*(ahead(x) for x in e))
    around = extent(d) + extent(Parts(*(ahead(x) for x in d)))
    fits = blocks.is_active & pt.lt(index, blocks.last)
    neglected = pt.le(extent(e) * extent(under), _EPS * extent(gap) * around)
    begins = fits & (blocks.is_first | neglected)
    is_behind = pt.gt(index, index[:, None]) & pt.le(index, blocks.last[:, :, None])
    begins = begins & ~(is_behind & begins[:, None, :]).any(axis=2)
    first = pt.switch(begins[:, None, :], pt.stack([*gap, *under], axis=1), 0.0)
    return Bulges(first, begins, pt.switch(is_last.any(axis=2), waits + 1.0, 0.0))


def wilkinson_shift(a: Parts, b: Parts, c: Parts, d: Parts, waits: TensorVariable) -> Parts:
    """Return the eigenvalue of ``[[a, b], [c, d]]`` next to ``d``, or an exceptional shift."""
    product = root(b) * root(c)
    half = (a - d).scaled(0.5)
    y = root(half * half + product * product)
    is_opposite = pt.lt(half.real * y.real + half.imag * y.imag, 0.0)
    shift = d - product * quotient(product, half + chosen(is_opposite, -y, y))
    exceptional = Parts(d.real + 0.75 * extent(c), d.imag)
    return chosen(is_stuck(waits), exceptional, shift)


def _diagonals(h: Parts) -> tuple[Parts, Parts, Parts]:
    """Return the diagonal, and the elements below and above it in the same rows and columns."""
    d = Parts(*(diagonals(x) for x in h))
    e = Parts(*(behind(lower_diagonal(x)) for x in h))
    return d, e, Parts(*(behind(upper_diagonal(x)) for x in h))


def _behind(z: Parts) -> Parts:
    return Parts(*(behind(x) for x in z))
