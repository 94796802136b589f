"""QR factorisation with every mode of LAPACK, and with pivoting."""

import pytensor.tensor as pt
from pytensor.tensor.linalg.decomposition.qr import QR
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.linalg.elimination import without_first
from pytensor_onnx.functions.linalg.matrix_batches import flat, unflat
from pytensor_onnx.functions.linalg.matrix_blocks import as_float, nothing
from pytensor_onnx.functions.linalg.scaling import power_of_two
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.registry import define, own_signature
from pytensor_onnx.ops.linalg.factorisations import Eliminate, Reflect


@define(QR, own_signature)
def qr(a: TensorVariable, *, mode: str, pivoting: bool) -> list[TensorVariable]:
    """QR factorisation by Householder reflectors, with the signs of LAPACK.

    Columns are scaled by powers of two before they are squared. With pivoting, columns are chosen
    by norms that are computed anew in every step, where LAPACK updates them; so the order of
    columns may differ where norms are equal up to rounding errors. Where LAPACK finds the element
    of a column below the diagonal to be zero, nothing is reflected, and the diagonal element of
    the factor may be positive.

    The backward error and the orthogonality are those of LAPACK. NaN in a column reaches all
    columns behind it. Without the native library it also reaches columns before it, as blocks of
    columns are reflected at once.

    Examples
    --------
    >>> from pytensor_onnx import compile_onnx
    >>> x = pt.matrix("x")
    >>> compile_onnx([x], pt.linalg.qr(x, mode="r"))([[3.0, 5.0], [4.0, 10.0]]).round(6)
    array([[ -5., -11.],
           [  0.,   2.]])
    """
    (a,) = as_float(a)
    matrices = flat(a)
    order = pivots(matrices) if pivoting else None
    if order is not None:
        matrices = taken(matrices.mT, order).mT
    m, n = a.shape[-2], a.shape[-1]
    k = pt.minimum(m, n)
    vectors, factors, scales, rows = Eliminate()(matrices)
    r = pt.concatenate([rows, pt.zeros((rows.shape[0], m - k, n), a.type.dtype)], axis=1)
    match mode:
        case "full":
            q = orthogonal_columns(vectors, factors, m, m)
            results: list[tuple[TensorVariable, ...]] = [(q, m, m), (r, m, n)]
        case "economic":
            q = orthogonal_columns(vectors, factors, k, m)
            results = [(q, m, k), (rows, k, n)]
        case "raw":
            packed = _packed(vectors, r, m, n)
            results = [(packed, m, n), (_in_rows(scales, k), k), (rows, k, n)]
        case _:
            results = [(r, m, n)]
    if order is not None:
        results.append((order.astype("int32"), n))
    return [unflat(x, a, *sizes) for x, *sizes in results]


def orthogonal_columns(
    vectors: TensorVariable, factors: TensorVariable, count: TensorVariable, size: TensorVariable
) -> TensorVariable:
    """Return the first columns of the product of reflectors."""
    dtype = vectors.type.dtype
    unit = pt.eq(pt.arange(count)[:, None], pt.arange(vectors.shape[3])[None, :]).astype(dtype)
    rows = unit + pt.zeros((vectors.shape[1], 1, 1), dtype)
    return Reflect()(rows, vectors, factors)[:, :, :size].mT


def pivots(a: TensorVariable) -> TensorVariable:
    """Return the order of columns in which each is the one furthest from those before it.

    G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed., algorithm 5.4.1: in every step
    the column with the largest rest changes places with the first.
    """
    batch, n = a.shape[0], a.shape[2]

    def step(
        rest: TensorVariable, order: TensorVariable, chosen: TensorVariable
    ) -> list[TensorVariable]:
        largest = (rest * rest).sum(axis=2).argmax(axis=1)[:, None]
        rows = pt.arange(rest.shape[1])
        moved = pt.switch(pt.eq(rows, 0), largest, pt.switch(pt.eq(rows, largest), 0, rows))
        rest, order = taken(rest, moved), taken(order, moved)
        chosen = pt.concatenate([chosen, order[:, :1]], axis=1)
        return [without_first(rest)[0], order[:, 1:], chosen]

    columns = (a * power_of_two(a, axis=(1, 2))).mT
    order = pt.arange(n)[None, :] + pt.zeros((batch, 1), "int64")
    chosen = pt.zeros((batch, nothing(n)), "int64")
    n_steps = pt.minimum(a.shape[1], n)
    _, order, chosen = iterate(step, [columns, order, chosen], n_steps=n_steps)
    # The shapes that PyTensor infers for the last states are those of the first.
    return pt.concatenate([chosen, order], axis=1)[:, :n]


def taken(x: TensorVariable, order: TensorVariable) -> TensorVariable:
    """Return the elements of the second axis in another order for each element of the first.

    Examples
    --------
    >>> import numpy as np
    >>> x, order = pt.matrix("x"), pt.lmatrix("order")
    >>> taken(x, order).eval({x: np.array([[5.0, 6.0]]), order: np.array([[1, 0]])}, mode="ONNX")
    array([[6., 5.]])
    """
    batch, count = x.shape[0], x.shape[1]
    others = [x.shape[axis] for axis in range(2, x.type.ndim)]
    rows = x.reshape((batch * count, *others), ndim=x.type.ndim - 1)
    return rows[order + pt.arange(batch)[:, None] * count]


def _in_rows(scales: TensorVariable, count: TensorVariable) -> TensorVariable:
    """Return the scales of all reflectors of a matrix in a row."""
    blocks, batch, width = scales.shape[0], scales.shape[1], scales.shape[2]
    return scales.transpose(1, 0, 2).reshape((batch, blocks * width))[:, :count]


def _packed(
    vectors: TensorVariable, r: TensorVariable, m: TensorVariable, n: TensorVariable
) -> TensorVariable:
    """Return the triangular factor, and below it the vectors of the reflectors."""
    blocks, batch, width, size = (vectors.shape[axis] for axis in range(4))
    columns = vectors.transpose(1, 3, 0, 2).reshape((batch, size, blocks * width))[:, :m]
    beside = pt.zeros((batch, m, n), r.type.dtype)
    columns = pt.concatenate([columns, beside], axis=2)[:, :, :n]
    below = pt.gt(pt.arange(m)[:, None], pt.arange(n)[None, :])
    return pt.switch(below, columns, r)
