"""Factors of complex matrices by elimination and by reflectors, and what follows from them."""

from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.linalg.decomposition.lu import LU, LUFactor
from pytensor.tensor.linalg.decomposition.qr import QR
from pytensor.tensor.linalg.decomposition.svd import SVD
from pytensor.tensor.linalg.summary import Det, SLogDet
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.complex.complex_arithmetic import Parts
from pytensor_onnx.functions.linalg.blocks import (
    checked_size,
    diagonals,
    finite,
    flat,
    power_of_two,
    scaled_parts,
    unflat,
)
from pytensor_onnx.functions.linalg.eigh import symmetric_eigen
from pytensor_onnx.functions.linalg.lu import product_within_range, sign_of_exchanges
from pytensor_onnx.functions.linalg.qr import taken
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.registry import define, own_signature
from pytensor_onnx.ops.linalg.complex_matrices import NEARLY_LARGEST, OF_PARTS, HermitianEigh

_NOT_SQUARE = "expected square matrix"


class _Eliminated(NamedTuple):
    """Factors of complex matrices of a scale near one.

    Attributes
    ----------
    real, imag
        Parts of U in the upper triangle, and of L below.
    pivots
        The row that was exchanged with each one.
    order
        The order of the rows.
    scale
        The powers of two that matrices were multiplied by.
    """

    real: TensorVariable
    imag: TensorVariable
    pivots: TensorVariable
    order: TensorVariable
    scale: TensorVariable


def _eliminated(real: TensorVariable, imag: TensorVariable, n: TensorVariable) -> _Eliminated:
    """Eliminate columns with partial pivoting, by the sum of the magnitudes of both parts."""
    rows = pt.concatenate([flat(x).astype("float64") for x in (real, imag)], axis=2)
    scale = power_of_two(rows, axis=(1, 2))
    batch = rows.shape[0]

    def step(
        k: TensorVariable, rows: TensorVariable, order: TensorVariable
    ) -> list[TensorVariable]:
        n = rows.shape[1]
        index = pt.arange(n)
        size = pt.abs(rows[:, :, k]) + pt.abs(rows[:, :, n + k])
        chosen = pt.switch(pt.ge(index, k), size, -1.0).argmax(axis=1)[:, None]
        moved = pt.switch(pt.eq(index, k), chosen, pt.switch(pt.eq(index, chosen), k, index))
        rows, order = taken(rows, moved), taken(order, moved)
        pivot = rows[:, k]
        first, second = _divided(rows[:, :, k], rows[:, :, n + k], pivot[:, k], pivot[:, n + k])
        is_below = pt.gt(index, k)
        first, second = pt.switch(is_below, first, 0.0), pt.switch(is_below, second, 0.0)
        left = pt.stack([first, second], axis=2)
        upper_real = pt.switch(pt.gt(index, k), pivot[:, :n], 0.0)
        upper_imag = pt.switch(pt.gt(index, k), pivot[:, n:], 0.0)
        above = pt.concatenate([upper_real, upper_imag], axis=1)
        below = pt.concatenate([-upper_imag, upper_real], axis=1)
        rows = rows - pt.matmul(left, pt.stack([above, below], axis=1))
        column = pt.arange(2 * n)
        below_pivot = is_below[:, None]
        rows = pt.switch(below_pivot & pt.eq(column, k), first[:, :, None], rows)
        rows = pt.switch(below_pivot & pt.eq(column, n + k), second[:, :, None], rows)
        return [rows, order, chosen[:, 0]]

    order = pt.arange(n) + pt.zeros((batch, 1), "int64")
    rows, order, pivots = iterate(step, [rows * scale, order], n_steps=n, sequences=[pt.arange(n)])
    # The trace of a loop without steps has lost the number of matrices.
    pivots = pivots.reshape((n, batch)).T
    return _Eliminated(rows[:, :, :n], rows[:, :, n:], pivots, order, scale)


def _divided(
    a: TensorVariable, b: TensorVariable, c: TensorVariable, d: TensorVariable
) -> tuple[TensorVariable, TensorVariable]:
    """Return the parts of ``(a + b i) / (c + d i)`` for rows and numbers, zero for a zero."""
    larger = pt.maximum(pt.abs(c), pt.abs(d))
    larger = pt.switch(pt.eq(larger, 0.0), 1.0, larger)[:, None]
    c, d = c[:, None] / larger, d[:, None] / larger
    square = c * c + d * d
    square = pt.switch(pt.eq(square, 0.0), 1.0, square)
    a, b = a / larger, b / larger
    return (a * c + b * d) / square, (b * c - a * d) / square


@define(OF_PARTS[LUFactor], own_signature)
def lu_factor(real: TensorVariable, imag: TensorVariable) -> list[TensorVariable]:
    """Parts of LU factors of complex matrices, and the exchanges; NaN if a pivot is zero."""
    n = checked_size(real, _NOT_SQUARE)
    found = _eliminated(real, imag, n)
    size = pt.abs(diagonals(found.real)) + pt.abs(diagonals(found.imag))
    valid = pt.switch(pt.eq(size, 0.0).any(axis=1), np.nan, 0.0)[:, None, None]
    index = pt.arange(n)
    scale = pt.switch(pt.gt(index[:, None], index), 1.0, found.scale)
    parts = [x / scale + valid for x in (found.real, found.imag)]
    return [
        *(unflat(x.astype(real.type.dtype), real, n, n) for x in parts),
        unflat(found.pivots.astype("int32"), real, n),
    ]


@define(OF_PARTS[LU], own_signature)
def lu(
    real: TensorVariable, imag: TensorVariable, *, permute_l: bool, p_indices: bool
) -> list[TensorVariable]:
    """Permutations of rows, and parts of LU factors of complex matrices."""
    n, dtype = checked_size(real, _NOT_SQUARE), real.type.dtype
    found = _eliminated(real, imag, n)
    index = pt.arange(n)
    is_below = pt.gt(index[:, None], index)
    unit = pt.eq(index[:, None], index).astype("float64")
    lower = [pt.switch(is_below, found.real, unit), pt.switch(is_below, found.imag, 0.0)]
    upper = [pt.switch(is_below, 0.0, x / found.scale) for x in (found.real, found.imag)]
    moved = pt.eq(index[:, None], found.order[:, None, :])
    first: list[TensorVariable] = []
    if permute_l:
        lower = [pt.matmul(moved.astype("float64"), x) for x in lower]
    elif p_indices:
        first = [unflat((moved * index).sum(axis=2).astype("int32"), real, n)]
    else:
        first = [unflat(moved.astype(dtype), real, n, n)]
    return [*first, *(unflat(x.astype(dtype), real, n, n) for x in (*lower, *upper))]


def _phases(
    real: TensorVariable, imag: TensorVariable
) -> tuple[TensorVariable, TensorVariable, TensorVariable, _Eliminated]:
    """Return the parts of the phases of determinants, the sizes of pivots, and the factors."""
    found = _eliminated(real, imag, checked_size(real, _NOT_SQUARE))
    first, second = diagonals(found.real), diagonals(found.imag)
    larger = pt.maximum(pt.abs(first), pt.abs(second))
    divisor = pt.switch(pt.eq(larger, 0.0), 1.0, larger)
    size = larger * pt.sqrt((first / divisor) ** 2 + (second / divisor) ** 2)
    divisor = pt.switch(pt.eq(size, 0.0), 1.0, size)

    def step(
        x: TensorVariable, y: TensorVariable, real: TensorVariable, imag: TensorVariable
    ) -> list[TensorVariable]:
        return [real * x - imag * y, real * y + imag * x]

    sign = sign_of_exchanges(found.pivots, "float64")
    turns = [(x / divisor).T for x in (first, second)]
    x, y = iterate(step, [sign, pt.zeros_like(sign)], n_steps=real.shape[-1], sequences=turns)
    return x, y, size, found


@define(OF_PARTS[Det], own_signature)
def det(real: TensorVariable, imag: TensorVariable) -> list[TensorVariable]:
    """Parts of the determinants of complex matrices."""
    x, y, size, found = _phases(real, imag)
    size = product_within_range(size / found.scale[:, :, 0], real.shape[-1])
    return [unflat((part * size).astype(real.type.dtype), real) for part in (x, y)]


@define(OF_PARTS[SLogDet], own_signature)
def slogdet(real: TensorVariable, imag: TensorVariable) -> list[TensorVariable]:
    """Parts of the phases of determinants, and logarithms of their magnitudes."""
    x, y, size, found = _phases(real, imag)
    logarithm = (pt.log(size) - pt.log(found.scale[:, :, 0])).sum(axis=1)
    return [unflat(part.astype(real.type.dtype), real) for part in (x, y, logarithm)]


@define(OF_PARTS[QR], own_signature)
def qr(
    real: TensorVariable, imag: TensorVariable, *, mode: str, pivoting: bool
) -> list[TensorVariable]:
    """Parts of QR factors of complex matrices, with the signs of LAPACK.

    The diagonal of R is real. With pivoting, the column with the largest rest comes first in every
    step. The error and the orthogonality are those of LAPACK.

    Examples
    --------
    >>> import pytensor
    >>> z = pt.zmatrix("z")
    >>> decompose = pytensor.function([z], pt.linalg.qr(z, mode="r"), mode="ONNX")
    >>> decompose([[3j, 1.0], [4.0, 0.0]]).round(6)
    array([[-5. +0.j ,  0. +0.6j],
           [ 0. +0.j ,  0.8+0.j ]])
    """
    like, (m, n) = real, real.shape[-2:]
    rows = pt.concatenate([flat(x).astype("float64") for x in (real, imag)], axis=1)
    scale, batch = power_of_two(rows, axis=(1, 2)), rows.shape[0]
    k = pt.minimum(m, n)

    def step(
        k: TensorVariable, rows: TensorVariable, q: TensorVariable, *order: TensorVariable
    ) -> list[TensorVariable]:
        rows, *orders = _with_largest_column(k, rows, *order) if pivoting else [rows]
        m = rows.shape[1] // 2
        by = reflection(rows[:, :m, k], rows[:, m:, k], k)
        rest = [by.vector[:, :, 0], by.scale[:, :, 0]] if mode == "raw" else []
        return [reflected_rows(rows, by), reflected_columns(q, by), *orders, *rest]

    order = [pt.arange(n) + pt.zeros((batch, 1), "int64")] if pivoting else []
    rows, q, *others = iterate(
        step, [rows * scale, unit(batch, m), *order], n_steps=k, sequences=[pt.arange(k)]
    )
    index = pt.arange(m)[:, None]
    parts = [rows[:, :m] / scale, rows[:, m:] / scale]
    upper = [
        pt.switch(pt.le(index, pt.arange(n)), parts[0], 0.0),
        pt.switch(pt.lt(index, pt.arange(n)), parts[1], 0.0),
    ]
    unitary = [q[:, :m, :m], q[:, m:, :m]]
    results: list[tuple[TensorVariable, ...]] = []
    if mode == "full":
        results = [*((x, m, m) for x in unitary), *((x, m, n) for x in upper)]
    elif mode == "economic":
        results = [*((x[:, :, :k], m, k) for x in unitary), *((x[:, :k], k, n) for x in upper)]
    elif mode == "raw":
        # The traces of a loop without steps have lost the other sizes.
        vectors, scales = (
            x.reshape((k, batch, c)) for x, c in zip(others[-2:], (2 * m, 2), strict=True)
        )
        below = pt.concatenate([vectors, pt.zeros((n - k, batch, 2 * m))], axis=0)
        below = below.transpose(1, 2, 0)
        packed = [
            pt.switch(pt.gt(index, pt.arange(n)), x, y)
            for x, y in zip((below[:, :m], below[:, m:]), upper, strict=True)
        ]
        factors = [scales[:, :, 0].T, scales[:, :, 1].T]
        results = [
            *((x, m, n) for x in packed),
            *((x, k) for x in factors),
            *((x[:, :k], k, n) for x in upper),
        ]
    else:
        results = [(x, m, n) for x in upper]
    found = [unflat(x.astype(like.type.dtype), like, *sizes) for x, *sizes in results]
    return [*found, unflat(others[0].astype("int32"), like, n)] if pivoting else found


def _with_largest_column(
    k: TensorVariable, rows: TensorVariable, order: TensorVariable
) -> list[TensorVariable]:
    """Exchange column k with the later one whose rest is largest."""
    m, column = rows.shape[1] // 2, pt.arange(rows.shape[2])
    is_left = pt.ge(pt.arange(2 * m) % m, k)[:, None]
    sizes = pt.switch(is_left, rows * rows, 0.0).sum(axis=1)
    chosen = pt.switch(pt.ge(column, k), sizes, -1.0).argmax(axis=1)[:, None]
    is_chosen = pt.eq(column, chosen)

    def exchanged(x: TensorVariable, is_chosen: TensorVariable) -> TensorVariable:
        zero = np.zeros((), x.type.dtype)
        largest = pt.switch(is_chosen, x, zero).sum(axis=-1, keepdims=True)
        moved = pt.switch(is_chosen, x[..., k][..., None], x)
        return pt.switch(pt.eq(column, k), largest, moved)

    return [exchanged(rows, is_chosen[:, None]), exchanged(order, is_chosen)]


@define(OF_PARTS[SVD], own_signature)
def svd(real: TensorVariable, imag: TensorVariable, *, full_matrices: bool) -> list[TensorVariable]:
    """Singular values of complex matrices, descending, and parts of their singular vectors.

    Matrices are reduced to real bidiagonal ones (G. H. Golub and C. F. Van Loan, Matrix
    Computations, 4th ed., section 5.4.8). All results are NaN where an element is not finite.

    Examples
    --------
    >>> import pytensor
    >>> z = pt.zmatrix("z")
    >>> u, s, v = pytensor.function([z], pt.linalg.svd(z), mode="ONNX")([[3j, 1.0], [4.0, 0.0]])
    >>> (u * s @ v).round(6) + 0
    array([[0.+3.j, 1.+0.j],
           [4.+0.j, 0.+0.j]])
    """
    like, (m, n) = real, real.shape[-2:]
    valid_first, first = finite(flat(real).astype("float64"))
    valid_second, second = finite(flat(imag).astype("float64"))
    valid = valid_first + valid_second
    scale = power_of_two(pt.concatenate([first, second], axis=2), axis=(1, 2))
    batch, k = first.shape[0], pt.minimum(m, n)

    def step(
        k: TensorVariable, a: TensorVariable, q: TensorVariable, p: TensorVariable
    ) -> list[TensorVariable]:
        m, n = q.shape[1] // 2, p.shape[1] // 2
        left = reflection(a[:, :m, k], a[:, m:, k], k)
        a = reflected_rows(a, left)
        right = reflection(a[:, k, :n], a[:, k, n:], k + 1)
        return [
            reflected_columns(a, right),
            reflected_columns(q, left),
            reflected_columns(p, right),
        ]

    a, q, p = iterate(
        step,
        [doubled_matrix(first * scale, second * scale), unit(batch, m), unit(batch, n)],
        n_steps=k,
        sequences=[pt.arange(k)],
    )
    row, column = pt.arange(m)[:, None], pt.arange(n)
    is_near = pt.eq(row, column) | pt.eq(row + 1, column)
    # With fewer rows than columns, the last column beside the square has an element too.
    u, s, v = pt.linalg.svd(pt.switch(is_near, a[:, :m, :n], 0.0), full_matrices=full_matrices)
    left = [pt.matmul(x, u) for x in (q[:, :m, :m], q[:, m:, :m])]
    right = [pt.matmul(v, x.mT) for x in (p[:, :n, :n], -p[:, n:, :n])]
    dtype = like.type.dtype
    rows, columns = (m, n) if full_matrices else (k, k)
    return [
        *(unflat((x + valid).astype(dtype), like, m, rows) for x in left),
        unflat((s / scale[:, :, 0] + valid[:, :, 0]).astype(dtype), like, k),
        *(unflat((x + valid).astype(dtype), like, columns, n) for x in right),
    ]


# Sums of squares that are too small to be accurate; the matrices have a scale near one.
_NEGLIGIBLE = np.float64(1e-280)


class Reflection(NamedTuple):
    """``H = I - v τ v^H`` by real matrices that stand for v and τ.

    The product of ``H^H`` and a vector is zero but for one element, which is real.

    Attributes
    ----------
    vector
        ``[[Re v, -Im v], [Im v, Re v]]``.
    scale
        ``[[Re τ, -Im τ], [Im τ, Re τ]]``.
    """

    vector: TensorVariable
    scale: TensorVariable


def reflection(real: TensorVariable, imag: TensorVariable, k: TensorVariable) -> Reflection:
    """Return reflections of rows to their element k, as those of LAPACK's ``zlarfg``.

    Elements before it are left alone, and the element receives the sign opposite to that of its
    real part.
    """
    index = pt.arange(real.shape[1])
    is_own = pt.eq(index, k).astype("float64")
    is_behind = pt.gt(index, k)
    first = (real * is_own).sum(axis=1, keepdims=True)
    turn = (imag * is_own).sum(axis=1, keepdims=True)
    real, imag = pt.switch(is_behind, real, 0.0), pt.switch(is_behind, imag, 0.0)
    others = (real * real + imag * imag).sum(axis=1, keepdims=True) + turn * turn
    is_kept = pt.le(others, _NEGLIGIBLE)
    norm = pt.sqrt(first * first + others)
    length = pt.switch(pt.lt(first, 0.0), norm, -norm)
    divisor = pt.switch(is_kept, 1.0, length)
    cosine = pt.switch(is_kept, 0.0, (length - first) / divisor)
    sine = pt.switch(is_kept, 0.0, -turn / divisor)
    # Elements are divided by that of the vector, which is not zero.
    x, y = pt.switch(is_kept, 1.0, first - length), pt.switch(is_kept, 0.0, turn)
    square = x * x + y * y
    real, imag = (real * x + imag * y) / square, (imag * x - real * y) / square
    return Reflection(doubled(real + is_own, imag), doubled(cosine, sine))


def doubled(real: TensorVariable, imag: TensorVariable) -> TensorVariable:
    """Return real matrices of twice the size for complex columns, given as rows."""
    first = pt.concatenate([real, imag], axis=1)
    return pt.stack([first, pt.concatenate([-imag, real], axis=1)], axis=2)


def reflected_rows(a: TensorVariable, by: Reflection) -> TensorVariable:
    """Return ``H^H @ A`` for matrices that have the imaginary parts below the real ones."""
    inside = pt.matmul(by.scale.mT, pt.matmul(by.vector.mT, a))
    return a - pt.matmul(by.vector, inside)


def reflected_columns(a: TensorVariable, by: Reflection) -> TensorVariable:
    """Return ``A @ H`` for the real matrices of twice the size."""
    return a - pt.matmul(pt.matmul(pt.matmul(a, by.vector), by.scale), by.vector.mT)


def doubled_matrix(real: TensorVariable, imag: TensorVariable) -> TensorVariable:
    """Return the real matrices of twice the size for complex matrices.

    Examples
    --------
    >>> real, imag = pt.tensor3("real"), pt.tensor3("imag")
    >>> doubled_matrix(real, imag).eval({real: [[[1.0]]], imag: [[[2.0]]]})
    array([[[ 1., -2.],
            [ 2.,  1.]]])
    """
    above = pt.concatenate([real, -imag], axis=-1)
    return pt.concatenate([above, pt.concatenate([imag, real], axis=-1)], axis=-2)


def unit(batch: TensorVariable, n: TensorVariable) -> TensorVariable:
    """Return identity matrices of twice a size."""
    return pt.eye(2 * n) + pt.zeros((batch, 1, 1))


def real_at_largest(v: Parts) -> Parts:
    """Return columns whose largest element is real and positive, with their lengths.

    Of several elements that are equal but for rounding the first counts. A column of zeros is NaN.

    Examples
    --------
    >>> real, imag = pt.constant([[[3.0]]]), pt.constant([[[4.0]]])
    >>> [float(x.eval().item()) for x in real_at_largest(Parts(real, imag))]
    [5.0, 0.0]
    """
    largest = pt.maximum(pt.abs(v.real), pt.abs(v.imag)).max(axis=1, keepdims=True)
    scaled = Parts(v.real / largest, v.imag / largest)
    square = scaled.real * scaled.real + scaled.imag * scaled.imag
    is_largest = pt.ge(square, NEARLY_LARGEST * square.max(axis=1, keepdims=True))
    place = is_largest.argmax(axis=1)[:, None, :]
    is_chosen = pt.eq(pt.arange(v.real.shape[1])[:, None], place)
    x, y = (pt.switch(is_chosen, part, 0.0).sum(axis=1, keepdims=True) for part in scaled)
    size = pt.sqrt(x * x + y * y)
    turned = v * Parts(x / size, -y / size)
    return Parts(turned.real, pt.switch(is_chosen, 0.0, turned.imag))


@define(OF_PARTS[HermitianEigh], own_signature)
def eigh(real: TensorVariable, imag: TensorVariable) -> list[TensorVariable]:
    """Eigenvalues of Hermitian matrices in ascending order, and parts of orthonormal eigenvectors.

    Matrices are reduced to real tridiagonal ones by reflections (G. H. Golub and C. F. Van Loan,
    Matrix Computations, 4th ed., section 8.3.1), whose eigenvectors those of `eigh` are. The
    errors are those of LAPACK, relative to the norm of the matrix. The largest element of an
    eigenvector is real and positive; those of an eigenvalue that is repeated are any basis. All
    results are NaN where an element is not finite. complex64 is computed in float64.

    Examples
    --------
    >>> import pytensor
    >>> z = pt.zmatrix("z")
    >>> values = pytensor.function([z], pt.linalg.eigh(z)[0], mode="ONNX")
    >>> values([[2.0, -1j], [1j, 2.0]]).round(6)
    array([1., 3.])
    """
    n = checked_size(real, "expected square matrix")
    like, dtype = real, real.type.dtype
    (real, imag), size, scale, valid = scaled_parts(Parts(real, imag), n)

    def step(k: TensorVariable, a: TensorVariable, q: TensorVariable) -> list[TensorVariable]:
        n = q.shape[1] // 2
        by = reflection(a[:, :n, k], a[:, n:, k], k + 1)
        return [reflected_columns(reflected_rows(a, by), by), reflected_columns(q, by)]

    a, q = iterate(
        step,
        [doubled_matrix(real, imag), unit(real.shape[0], size)],
        n_steps=size,
        sequences=[pt.arange(size)],
    )
    row, column = pt.arange(size)[:, None], pt.arange(size)
    is_near = pt.eq(row, column) | pt.eq(row, column + 1)
    tridiagonal = pt.switch(is_near, a[:, :size, :size], 0.0)
    values, vectors = symmetric_eigen(tridiagonal, size, lower=True)
    parts = (pt.matmul(x[:, :, :size], vectors.mT) for x in (q[:, :size], q[:, size:]))
    return [
        unflat((values[:, :n] / scale[:, :, 0] + valid[:, :, 0]).astype(dtype), like, n),
        *(
            unflat((x[:, :n, :n] + valid).astype(dtype), like, n, n)
            for x in real_at_largest(Parts(*parts))
        ),
    ]


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
