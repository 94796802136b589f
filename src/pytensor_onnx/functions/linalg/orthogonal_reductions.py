"""Orthogonal reductions of matrices to tridiagonal and bidiagonal form."""

from collections.abc import Sequence

import pytensor
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.linalg.reflectors import behind_zeros, in_blocks, reflector
from pytensor_onnx.functions.registry import define
from pytensor_onnx.ops.linalg.factorisations import Bidiagonalise, Tridiagonalise


@define(Tridiagonalise, Tridiagonalise.gufunc_signature)
def tridiagonal(a: TensorVariable) -> list[TensorVariable]:
    """Reduce a batch of symmetric matrices ``A`` to the tridiagonal form ``Q.T @ A @ Q``.

    G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed., algorithm 8.3.1. A row and a
    column of zeros at the end give the last step a reflector, the identity.

    Parameters
    ----------
    a
        Symmetric matrices with one batch axis, in float64 and of a scale near one.

    Returns
    -------
    list of TensorVariable
        The diagonals; the elements beside them, followed by a zero; both in rows. Then the
        reflectors of ``Q``, which have one element more than ``A`` has rows.
    """

    def step(k: TensorVariable, rest: TensorVariable) -> list[TensorVariable]:
        vector, scale, length = reflector(rest[:, 0, 1:])
        along = scale * pt.matmul(rest[:, 1:, 1:], vector[:, :, None])[:, :, 0]
        half = 0.5 * scale * (along * vector).sum(axis=1, keepdims=True)
        along = along - half * vector
        following = rest[:, 1:, 1:] - _outer([vector, along], [along, vector])
        unit = behind_zeros(vector, k + 1)
        return [following, rest[:, 0, 0], length[:, 0], unit, scale[:, 0]]

    steps = pytensor.scan(
        step,
        [pt.arange(a.shape[1])],
        [with_zeros(a), None, None, None, None],
        return_updates=False,
        strict=True,
    )
    _, diagonal, beside, vectors, scales = steps
    sizes = a.shape[1], a.shape[0], a.shape[1] + 1
    return [*_in_rows(diagonal, beside, sizes), *in_blocks(vectors, scales, sizes)]


@define(Bidiagonalise, Bidiagonalise.gufunc_signature)
def bidiagonal(a: TensorVariable) -> list[TensorVariable]:
    """Reduce a batch of square matrices ``A`` to the upper bidiagonal form ``Q.T @ A @ P``.

    G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed., algorithm 5.4.2, with the row
    and the column of zeros of `tridiagonal`.

    Parameters
    ----------
    a
        Square matrices with one batch axis, in float64 and of a scale near one.

    Returns
    -------
    list of TensorVariable
        The diagonals; the elements above them, followed by a zero; both in rows. Then the
        reflectors of ``Q`` and ``P``, which have one element more than ``A`` has rows.
    """

    def step(k: TensorVariable, rest: TensorVariable) -> list[TensorVariable]:
        left, left_scale, diagonal = reflector(rest[:, :, 0])
        rest = rest[:, :, 1:]
        across = left_scale * pt.matmul(left[:, None], rest)[:, 0]
        right, right_scale, above = reflector(rest[:, 0] - across)
        along = pt.matmul(rest, right[:, :, None])[:, :, 0]
        along = along - left * (across * right).sum(axis=1, keepdims=True)
        along = (right_scale * along)[:, 1:]
        following = rest[:, 1:] - _outer([left[:, 1:], along], [across, right])
        return [
            following,
            diagonal[:, 0],
            above[:, 0],
            behind_zeros(left, k),
            left_scale[:, 0],
            behind_zeros(right, k + 1),
            right_scale[:, 0],
        ]

    steps = pytensor.scan(
        step,
        [pt.arange(a.shape[1])],
        [with_zeros(a), *[None] * 6],
        return_updates=False,
        strict=True,
    )
    _, diagonal, above, left, left_scales, right, right_scales = steps
    sizes = a.shape[1], a.shape[0], a.shape[1] + 1
    return [
        *_in_rows(diagonal, above, sizes),
        *in_blocks(left, left_scales, sizes),
        *in_blocks(right, right_scales, sizes),
    ]


def _in_rows(
    diagonal: TensorVariable, beside: TensorVariable, sizes: Sequence[TensorVariable]
) -> list[TensorVariable]:
    """Return traces with the axis of the steps last; without steps they have lost the other."""
    return [x.reshape(sizes[:2]).T for x in (diagonal, beside)]


def with_zeros(a: TensorVariable) -> TensorVariable:
    """Return square matrices with a row and a column of zeros added at the end."""
    batch, n = a.shape[0], a.shape[1]
    a = pt.concatenate([a, pt.zeros((batch, n, 1), a.type.dtype)], axis=2)
    return pt.concatenate([a, pt.zeros((batch, 1, n + 1), a.type.dtype)], axis=1)


def _outer(columns: list[TensorVariable], rows: list[TensorVariable]) -> TensorVariable:
    """Return the sum of the products of columns and rows."""
    return pt.matmul(pt.stack(columns, axis=2), pt.stack(rows, axis=1))
