"""Factors of complex matrices by unitary ones: QR and singular values."""

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.linalg.complex_reflectors import (
    doubled_matrix,
    reflected_columns,
    reflected_rows,
    reflection,
    unit,
)
from pytensor_onnx.functions.linalg.matrix_batches import flat, unflat
from pytensor_onnx.functions.linalg.scaling import finite, power_of_two
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.registry import define, own_signature
from pytensor_onnx.ops.linalg.complex_matrices import QROfParts, SVDOfParts


@define(QROfParts, own_signature)
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


@define(SVDOfParts, own_signature)
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
