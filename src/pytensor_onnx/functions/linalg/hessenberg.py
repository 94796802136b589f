"""Orthogonal reduction of matrices to Hessenberg form."""

import pytensor
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.linalg.orthogonal_reductions import with_zeros
from pytensor_onnx.functions.linalg.qr import orthogonal_columns
from pytensor_onnx.functions.linalg.reflectors import behind_zeros, in_blocks, reflector
from pytensor_onnx.functions.registry import define
from pytensor_onnx.ops.linalg.factorisations import Hessenberg


@define(Hessenberg, Hessenberg.gufunc_signature)
def hessenberg(a: TensorVariable) -> list[TensorVariable]:
    """Reduce a batch of matrices ``A`` to the Hessenberg form ``Q.T @ A @ Q``.

    G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed., algorithm 7.4.2. A row and a
    column of zeros at the end give the last step a reflector, the identity.

    Parameters
    ----------
    a
        Square matrices with one batch axis, in float64 and of a scale near one.

    Returns
    -------
    list of TensorVariable
        The Hessenberg matrices and the orthogonal matrices ``Q``.
    """

    def step(k: TensorVariable, rest: TensorVariable) -> list[TensorVariable]:
        vector, scale, _ = reflector(rest[:, k + 1 :, k])
        row = behind_zeros(vector, k + 1)
        column = row[:, :, None]
        along, across = pt.matmul(rest, column), pt.matmul(row[:, None], rest)
        twice = pt.matmul(row[:, None], along)
        factor = scale[:, :, None]
        left = pt.concatenate([column, along - factor * twice * column], axis=2)
        right = pt.concatenate([across, row[:, None]], axis=1)
        return [rest - pt.matmul(left, factor * right), row, scale[:, 0]]

    batch, n = a.shape[0], a.shape[1]
    result, vectors, scales = pytensor.scan(
        step, [pt.arange(n)], [with_zeros(a), None, None], return_updates=False, strict=True
    )
    index = pt.arange(n)
    below = pt.lt(index[None, :], index[:, None] - 1)
    blocks, factors = in_blocks(vectors, scales, (n, batch, n + 1))
    return [pt.switch(below, 0.0, result[-1][:, :n, :n]), orthogonal_columns(blocks, factors, n, n)]
