"""Schur forms of complex matrices."""

import numpy as np
import pytensor.tensor as pt
from pytensor.scan.utils import until
from pytensor.tensor.linalg.decomposition.schur import Schur
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.complex.complex_arithmetic import Parts, chosen, extent, quotient, root
from pytensor_onnx.functions.linalg.blocks import (
    ahead,
    behind,
    checked_size,
    diagonals,
    finite,
    flat,
    lower_diagonal,
    not_empty,
    power_of_two,
    unflat,
    upper_diagonal,
)
from pytensor_onnx.functions.linalg.chases import (
    COMPLEX,
    Bulges,
    Range,
    Unreduced,
    below,
    chased_columns,
    chased_rows,
    is_stuck,
    last_rows,
    most_sweeps,
    negligible,
    range_of_chase,
    rotation,
    unreduced,
)
from pytensor_onnx.functions.linalg.complex_factors import (
    complex_columns,
    doubled_matrix,
    interleaved,
    reflected_columns,
    reflected_rows,
    reflection,
    unit,
)
from pytensor_onnx.functions.linalg.qz import normalised, unitary
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.operation import operation
from pytensor_onnx.functions.registry import define, own_signature
from pytensor_onnx.ops.linalg.complex_matrices import OF_PARTS


@define(OF_PARTS[Schur], own_signature)
def schur(real: TensorVariable, imag: TensorVariable, *, sort: str | None) -> list[TensorVariable]:
    """Parts of triangular matrices ``T`` and unitary matrices ``Z`` with ``A = Z @ T @ Z^H``.

    Matrices are reduced to Hessenberg form and then by the QR iteration with one shift. The errors
    are those of LAPACK, relative to the norm of the matrix. The order of the eigenvalues and the
    phases of the columns of Z are left free. With ``sort``, eigenvalues of a half-plane, or inside
    or outside of the unit circle, come first, and keep their order otherwise. All elements are NaN
    where one of the matrix is not finite. complex64 is computed in float64.

    Examples
    --------
    >>> import pytensor
    >>> z = pt.zmatrix("z")
    >>> t, u = pt.linalg.schur(z)
    >>> decompose = pytensor.function([z], [t, u @ t @ u.conj().T], mode="ONNX")
    >>> t, product = decompose([[3j, 1.0], [4.0, 0.0]])
    >>> bool(t[1, 0] == 0)
    True
    >>> product.round(6) + 0
    array([[0.+3.j, 1.+0.j],
           [4.+0.j, 0.+0.j]])
    """
    n = checked_size(real, "expected square matrix")
    a = Parts(*(flat(x).astype("float64") for x in (real, imag)))
    return [
        unflat(x.astype(real.type.dtype), real, n, n)
        for matrix in complex_schur(a, n, sort)
        for x in matrix
    ]


def complex_schur(a: Parts, n: TensorVariable, sort: str | None = None) -> tuple[Parts, Parts]:
    """Return Schur forms of matrices of n rows with one batch axis, in float64."""
    valid_real, first = finite(a.real)
    valid_imag, second = finite(a.imag)
    valid = valid_real + valid_imag
    scale = power_of_two(pt.concatenate([first, second], axis=2), axis=(1, 2))
    (first, size), (second, _) = not_empty(first * scale, n), not_empty(second * scale, n)
    rows, failed = complex_triangular(complex_hessenberg(first, second))
    t = complex_columns(rows, pt.constant(0), size)
    z = complex_columns(rows, size, 2 * size).adjoint()
    if sort is not None:
        selected = _selected(Parts(*(diagonals(x) for x in t)).scaled(1 / scale[:, 0]), sort)
        parts = order_triangular(t.real, t.imag, z.real, z.imag, selected)
        t, z = Parts(*parts[:2]), Parts(*parts[2:])
    valid += failed[:, None, None]
    t, z = t[:, :n, :n], z[:, :n, :n]
    return Parts(*(x / scale + valid for x in t)), Parts(*(x + valid for x in z))


@operation("(b,n,n),(b,n,n)->(b,k,l)")
def complex_hessenberg(real: TensorVariable, imag: TensorVariable) -> TensorVariable:
    """Reduce complex matrices to Hessenberg form, beside the adjoints of the unitary matrices.

    The results are those of `interleaved`.
    """
    batch, n = real.shape[0], real.shape[1]
    count = pt.maximum(n - 2, 0)

    def step(k: TensorVariable, a: TensorVariable, q: TensorVariable) -> list[TensorVariable]:
        n = a.shape[1] // 2
        by = reflection(a[:, :n, k], a[:, n:, k], k + 1)
        a = reflected_columns(reflected_rows(a, by), by)
        return [a, reflected_columns(q, by)]

    a, q = iterate(
        step,
        [doubled_matrix(real, imag), unit(batch, n)],
        n_steps=count,
        sequences=[pt.arange(count)],
    )
    index = pt.arange(n)
    is_kept = pt.ge(index + 1, index[:, None])
    h = Parts(*(pt.switch(is_kept, x, 0.0) for x in (a[:, :n, :n], a[:, n:, :n])))
    q = Parts(q[:, :n, :n], q[:, n:, :n]).adjoint()
    return pt.concatenate([interleaved(h, n), interleaved(q, n)], axis=2)


@operation("(b,k,l)->(b,k,l),(b)")
def complex_triangular(rows: TensorVariable) -> list[TensorVariable]:
    """Reduce a batch of complex Hessenberg matrices to triangular form.

    G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed., section 7.3; the shifts are those
    of LAPACK's ``zlahqr``. Each sweep chases a bulge through every block between two zeros below
    the diagonal, in all matrices of the batch.

    Parameters
    ----------
    rows
        Matrices of `complex_hessenberg`, of a scale near one and finite.

    Returns
    -------
    list of TensorVariable
        The rows afterwards, and zero, or NaN where the iteration has not converged.
    """

    def step(rows: TensorVariable, waits: TensorVariable) -> tuple[list[TensorVariable], until]:
        n = waits.shape[1]
        rows, blocks = deflated(rows, n)
        first, is_begin, waits = bulges(rows, blocks, waits, n)
        goes_on = 1.0 - is_begin.astype("float64")
        through = Range(first, goes_on, *range_of_chase(is_begin, blocks))
        rows, turns = chased_rows(rows, through, COMPLEX, matrices=1, turned=rotation)
        steps = through.low + pt.arange(through.count)
        is_before = pt.lt(pt.arange(2 * n), 2 * steps[:, None]).astype("float64")
        h = chased_columns(rows[:, :, : 2 * n].mT, turns, through, COMPLEX, is_before).mT
        rows = pt.concatenate([h, rows[:, :, 2 * n :]], axis=2)
        return [rows, waits], until(~blocks.is_active.any())

    n = rows.shape[1] // 2
    rows, _ = iterate(step, [rows, pt.zeros((rows.shape[0], n))], n_steps=most_sweeps(n))
    rows, blocks = deflated(rows, n)
    return [rows, pt.switch(blocks.is_active.any(axis=1), np.nan, 0.0)]


@operation("(b,n,n),(b,n,n),(b,n,n),(b,n,n),(b,n)->(b,n,n),(b,n,n),(b,n,n),(b,n,n)")
def order_triangular(
    t_real: TensorVariable,
    t_imag: TensorVariable,
    z_real: TensorVariable,
    z_imag: TensorVariable,
    first: TensorVariable,
) -> list[TensorVariable]:
    """Exchange neighbouring eigenvalues of triangular forms until the selected ones come first.

    An exchange is a rotation (LAPACK's ``ztrexc``). All neighbours in the wrong order change
    places at once, and the others keep their order. ``first`` is one for the rows that come first
    and zero for others.
    """

    def step(
        t_real: TensorVariable,
        t_imag: TensorVariable,
        z_real: TensorVariable,
        z_imag: TensorVariable,
        first: TensorVariable,
    ) -> tuple[list[TensorVariable], until]:
        t, z = Parts(t_real, t_imag), Parts(z_real, z_imag)
        index = pt.arange(t_real.shape[1])
        is_first = pt.gt(first, 0.5)
        starts = ~is_first & pt.gt(ahead(first), 0.5)
        d = Parts(*(diagonals(x) for x in t))
        x, y = normalised(Parts(*(upper_diagonal(x) for x in t)), Parts(*(ahead(x) for x in d)) - d)
        turn = unitary(x, y, starts)
        t, z = turn @ t @ turn.adjoint(), z @ turn.adjoint()
        # Eigenvalues only change places.
        is_second = behind(starts)
        d = Parts(*(pt.switch(starts, ahead(x), pt.switch(is_second, behind(x), x)) for x in d))
        row, column = index[:, None], index
        t = Parts(
            *(
                pt.switch(pt.lt(row, column), x, pt.switch(pt.eq(row, column), y[:, :, None], 0.0))
                for x, y in zip(t, d, strict=True)
            )
        )
        first = pt.switch(starts, 1.0, pt.switch(is_second, 0.0, first))
        return [*t, *z, first], until(~starts.any())

    return iterate(step, [t_real, t_imag, z_real, z_imag, first], n_steps=2 * t_real.shape[1])[:4]


def _selected(w: Parts, sort: str) -> TensorVariable:
    """Return one for the rows of eigenvalues that come first, and zero for others."""
    size = pt.sqrt(w.real * w.real + w.imag * w.imag)
    chosen = {
        "lhp": pt.lt(w.real, 0.0),
        "rhp": pt.ge(w.real, 0.0),
        "iuc": pt.le(size, 1.0),
        "ouc": pt.gt(size, 1.0),
    }
    return chosen[sort].astype("float64")


_EPS = np.finfo("float64").eps
# Signs of the parts of a number multiplied by the imaginary unit.
_TURNED = np.array([[-1.0], [1.0]])


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
