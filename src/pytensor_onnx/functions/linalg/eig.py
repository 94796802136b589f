"""Eigenvalues of general matrices."""

from collections.abc import Sequence

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.linalg.decomposition.eigen import Eig
from pytensor.tensor.linalg.decomposition.schur import Schur
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.complex.complex_arithmetic import Parts
from pytensor_onnx.functions.linalg.blocks import (
    as_float,
    behind,
    checked_size,
    diagonals,
    finite,
    flat,
    length,
    lower_diagonal,
    not_empty,
    power_of_two,
    scaled_parts,
    unflat,
    upper_diagonal,
)
from pytensor_onnx.functions.linalg.complex_factors import real_at_largest
from pytensor_onnx.functions.linalg.complex_schur import complex_schur
from pytensor_onnx.functions.linalg.hessenberg import balance
from pytensor_onnx.functions.linalg.schur import real_schur
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.operation import operation, performed
from pytensor_onnx.functions.registry import define, own_signature
from pytensor_onnx.functions.shape import zeros
from pytensor_onnx.ops.linalg.complex_matrices import OF_PARTS

_EPS = np.finfo("float64").eps
# The smallest difference of two eigenvalues of matrices of a scale near one.
_SMALLEST = np.float64(1e-140)


def _schur_of_pytensor(x: np.ndarray, *, sort: str | None) -> tuple[np.ndarray, ...]:
    t, z = performed(Schur(output="complex", sort=sort), x)
    return t.real, t.imag, z.real, z.imag


@operation("(m,m)->(m,m),(m,m),(m,m),(m,m)", reference=_schur_of_pytensor)
def triangular_schur(a: TensorVariable, *, sort: str | None = None) -> list[TensorVariable]:
    """Parts of triangular Schur forms and of the unitary matrices, from the real Schur form.

    Examples
    --------
    >>> import pytensor
    >>> x = pt.matrix("x")
    >>> t, z = pt.linalg.schur(x, output="complex")
    >>> pytensor.function([x], t, mode="ONNX")([[1.0, 2.0], [-2.0, 1.0]]).round(6)
    array([[1.+2.j, 0.+0.j],
           [0.+0.j, 1.-2.j]])
    """
    (a,) = as_float(a)
    n = checked_size(a, "expected square matrix")
    parts = triangular(*real_schur(flat(a).astype("float64"), n, sort), n)
    return [unflat(x.astype(a.type.dtype), a, n, n) for x in parts]


_EXPONENT = 1 / np.pi


def _eig_of_numpy(x: np.ndarray) -> tuple[np.ndarray, ...]:
    values, vectors = np.linalg.eig(x)
    order = np.argsort(values.real, kind="stable")
    values, vectors = values[order], vectors[:, order]
    sums = (np.arange(1, len(x) + 1) ** _EXPONENT) @ vectors
    sizes = np.abs(sums)
    turned = vectors * (np.where(sizes > 0, sums.conj(), 1) / np.where(sizes > 0, sizes, 1))
    return values.real, values.imag, turned.real, turned.imag


@operation("(m,m)->(m),(m),(m,m),(m,m)", reference=_eig_of_numpy)
def real_eig(a: TensorVariable) -> list[TensorVariable]:
    """Parts of the eigenvalues and eigenvectors of matrices.

    Eigenvalues have ascending real parts; of two conjugates the one with the positive imaginary
    part comes first. Eigenvectors have the length one, and the sum of their elements, weighted by
    the powers 1/π of 1, 2, 3, …, is real and positive.

    Matrices are balanced and reduced to Schur form, as in LAPACK; eigenvectors of the triangular
    form are found by substitution, in all columns at once. Eigenvalues that are equal are taken
    apart by a rounding error. All results are NaN where an element is not finite, or the iteration
    does not converge. float32 is computed in float64.

    Examples
    --------
    >>> import pytensor
    >>> x = pt.matrix("x")
    >>> w, v = pt.linalg.eig(x)
    >>> pytensor.function([x], w, mode="ONNX")([[1.0, 2.0], [-2.0, 1.0]]).round(6)
    array([1.+2.j, 1.-2.j])
    """
    (a,) = as_float(a)
    n = checked_size(a, "Last 2 dimensions of the array must be square")
    valid, wide = finite(flat(a).astype("float64"))
    scale = power_of_two(wide, axis=(1, 2))
    wide, size = not_empty(wide * scale, n)
    d = balance(wide, size)
    balanced = wide * d[:, None, :] / d[:, :, None]
    # Balancing makes matrices smaller, which may need another scale.
    more = power_of_two(balanced, axis=(1, 2))
    t, z = real_schur(balanced * more, size)
    tr, ti, zr, zi = triangular(t, z, size)
    xr, xi = triangular_vectors(tr, ti, size)
    vr = d[:, :, None] * (pt.matmul(zr, xr) - pt.matmul(zi, xi))
    vi = d[:, :, None] * (pt.matmul(zr, xi) + pt.matmul(zi, xr))
    values = [diagonals(x) / (scale * more)[:, :, 0] for x in (tr, ti)]
    (wr, wi), (vr, vi) = in_order(values, _turned(vr, vi, size), size)
    dtype = a.type.dtype
    return [
        *(unflat((x[:, :n] + valid[:, :, 0]).astype(dtype), a, n) for x in (wr, wi)),
        *(unflat((x[:, :n, :n] + valid).astype(dtype), a, n, n) for x in (vr, vi)),
    ]


def in_order(
    values: Sequence[TensorVariable], vectors: Sequence[TensorVariable], n: TensorVariable
) -> tuple[list[TensorVariable], list[TensorVariable]]:
    """Return parts of eigenvalues with ascending real parts, and of their vectors in columns."""
    batch = values[0].shape[0]
    order = pt.argsort(values[0], axis=1, kind="stable")
    rows = order + pt.arange(batch)[:, None] * n
    return (
        [x.flatten()[rows] for x in values],
        [x.mT.reshape((batch * n, n))[rows].mT for x in vectors],
    )


def triangular(t: TensorVariable, z: TensorVariable, n: TensorVariable) -> list[TensorVariable]:
    """Return parts of triangular matrices and unitary ones, for real Schur forms.

    Each block of two rows is made triangular by its eigenvector ``(p, i q)``.
    """
    below, above = lower_diagonal(t), upper_diagonal(t)
    is_first = pt.neq(below, 0.0)
    root_b = pt.switch(is_first, pt.sqrt(pt.abs(above)), 1.0)
    root_c = pt.switch(is_first, pt.sqrt(pt.abs(below)), 0.0)
    size = length(root_b, root_c)
    p = pt.switch(is_first & pt.lt(above, 0.0), -root_b, root_b) / size
    q, omega = root_c / size, root_b * root_c
    index = pt.arange(n)
    row, column = index[:, None], index[None, :]
    is_second = behind(is_first)
    p = pt.switch(is_second, behind(p), p)
    upper = pt.switch(pt.eq(row + 1, column), q[:, :, None], 0.0)
    q = upper + upper.mT
    across, down = p[:, None, :], p[:, :, None]
    real = down * t * across + pt.matmul(pt.matmul(q, t), q)
    imag = down * pt.matmul(t, q) - pt.matmul(q, t) * across
    is_above, is_diagonal = pt.lt(row, column), pt.eq(row, column)
    width = omega - behind(omega)
    real = pt.switch(is_above, real, pt.switch(is_diagonal, t, 0.0))
    imag = pt.switch(is_above, imag, pt.switch(is_diagonal, width[:, :, None], 0.0))
    return [real, imag, z * across, pt.matmul(z, q)]


def triangular_vectors(
    tr: TensorVariable, ti: TensorVariable, n: TensorVariable
) -> tuple[TensorVariable, TensorVariable]:
    """Return parts of eigenvectors of triangular matrices, in columns.

    Rows are substituted from the last to the first. Columns become smaller when an element
    becomes larger than one, so that none overflows.
    """
    index = pt.arange(n)
    wr, wi = diagonals(tr), diagonals(ti)
    dr, di = wr[:, None, :] - wr[:, :, None], wi[:, None, :] - wi[:, :, None]
    least = pt.maximum(_EPS * (pt.abs(wr) + pt.abs(wi)), _SMALLEST)[:, None, :]
    is_equal = pt.lt(pt.abs(dr) + pt.abs(di), least)
    dr, di = pt.switch(is_equal, least, dr), pt.switch(is_equal, 0.0, di)
    larger = pt.maximum(pt.abs(dr), pt.abs(di))
    sr, si = dr / larger, di / larger
    square = (sr * sr + si * si) * larger
    inverse = pt.stack([sr / square, -si / square], axis=1)
    is_later = pt.lt(index[:, None], index[None, :])
    inverse = pt.switch(is_later, inverse, 0.0)
    unit = pt.eq(index[:, None], index[None, :]).astype("float64")

    def step(
        k: TensorVariable,
        inverse: TensorVariable,
        unit: TensorVariable,
        x: TensorVariable,
        rows: TensorVariable,
    ) -> list[TensorVariable]:
        n = unit.shape[0]
        # Rows of both parts, beside each other.
        sums = pt.matmul(rows[:, :, k, k + 1 :], x)
        real = sums[:, 0, :n] - sums[:, 1, n:]
        imag = sums[:, 0, n:] + sums[:, 1, :n]
        ir, ii = inverse[:, 0], inverse[:, 1]
        found = pt.concatenate([real * ir - imag * ii + unit, real * ii + imag * ir], axis=1)
        size = pt.maximum(pt.abs(found[:, :n]), pt.abs(found[:, n:]))
        shrink = 1.0 / pt.maximum(size, 1.0)
        x = pt.concatenate([found[:, None], x], axis=1)
        return [x * pt.concatenate([shrink, shrink], axis=1)[:, None]]

    batch = tr.shape[0]
    (x,) = iterate(
        step,
        [zeros((batch, pt.minimum(n, 0), 2 * n))],
        [pt.stack([tr, ti], axis=1)],
        n_steps=n,
        sequences=[
            index[::-1],
            inverse.transpose(2, 0, 1, 3)[::-1],
            unit[::-1],
        ],
    )
    x = x.reshape((batch, n, 2 * n))
    return x[:, :, :n], x[:, :, n:]


def _turned(vr: TensorVariable, vi: TensorVariable, n: TensorVariable) -> list[TensorVariable]:
    """Return columns of length one, whose weighted sums are real and positive."""
    largest = pt.maximum(pt.abs(vr), pt.abs(vi)).max(axis=1, keepdims=True)
    vr, vi = vr / largest, vi / largest
    weights = ((pt.arange(n) + 1.0) ** _EXPONENT)[None, :]
    sr, si = pt.matmul(weights, vr), pt.matmul(weights, vi)
    size = pt.sqrt(sr * sr + si * si)
    is_zero = pt.eq(size, 0.0)
    length = pt.sqrt((vr * vr + vi * vi).sum(axis=1, keepdims=True))
    divisor = length * pt.switch(is_zero, 1.0, size)
    cosine, sine = pt.switch(is_zero, 1.0, sr) / divisor, si / divisor
    return [vr * cosine + vi * sine, vi * cosine - vr * sine]


@define(OF_PARTS[Eig], own_signature)
def eig(real: TensorVariable, imag: TensorVariable) -> list[TensorVariable]:
    """Parts of the eigenvalues and eigenvectors of complex matrices.

    Matrices are balanced and reduced to Schur form, as in LAPACK; eigenvectors of the triangular
    form are found by substitution. Eigenvalues have ascending real parts. Eigenvectors have the
    length one, and their largest element is real and positive, as in LAPACK: the first of several
    that are equal but for rounding. All results are NaN where an element is not finite.
    complex64 is computed in float64.

    Examples
    --------
    >>> import pytensor
    >>> z = pt.zmatrix("z")
    >>> w, v = pt.linalg.eig(z)
    >>> w, v = pytensor.function([z], [w, v], mode="ONNX")([[1j, 1.0], [0.0, 2.0]])
    >>> w.round(6)
    array([0.+1.j, 2.+0.j])
    """
    n = checked_size(real, "Last 2 dimensions of the array must be square")
    like, dtype = real, real.type.dtype
    (real, imag), size, scale, valid = scaled_parts(Parts(real, imag), n)
    d = balance(pt.sqrt(real * real + imag * imag), size)
    ratio = d[:, None, :] / d[:, :, None]
    balanced = Parts(real * ratio, imag * ratio)
    # Balancing makes matrices smaller, which may need another scale.
    more = power_of_two(pt.concatenate(list(balanced), axis=2), axis=(1, 2))
    t, z = complex_schur(balanced.scaled(more), size)
    vectors = z @ Parts(*triangular_vectors(t.real, t.imag, size))
    vectors = _turned_pairs(vectors.scaled(d[:, :, None]))
    values = [diagonals(x) / (scale * more)[:, :, 0] for x in t]
    (wr, wi), (vr, vi) = in_order(values, list(vectors), size)
    return [
        *(unflat((x[:, :n] + valid[:, :, 0]).astype(dtype), like, n) for x in (wr, wi)),
        *(unflat((x[:, :n, :n] + valid).astype(dtype), like, n, n) for x in (vr, vi)),
    ]


def _turned_pairs(v: Parts) -> Parts:
    """Return columns of length one, whose largest element is real and positive."""
    largest = pt.maximum(pt.abs(v.real), pt.abs(v.imag)).max(axis=1, keepdims=True)
    v = Parts(v.real / largest, v.imag / largest)
    square = v.real * v.real + v.imag * v.imag
    return real_at_largest(v.scaled(1.0 / pt.sqrt(square.sum(axis=1, keepdims=True))))
