"""Elimination of the elements below the diagonal, by blocks of Householder reflectors."""

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.linalg.reflectors import (
    behind_zeros,
    block_sizes,
    reflected_by_block,
    reflection,
    reflector,
    triangular_factor,
)
from pytensor_onnx.functions.linalg.scaling import power_of_two
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.registry import define
from pytensor_onnx.ops.linalg.factorisations import Eliminate


@define(Eliminate, Eliminate.gufunc_signature)
def eliminated(a: TensorVariable) -> list[TensorVariable]:
    """Return the reflectors of a batch of matrices, and the triangular matrices.

    Columns of a block are eliminated one after another, the columns behind it by products (G. H.
    Golub and C. F. Van Loan, Matrix Computations, 4th ed., algorithm 5.2.3).
    """
    batch, m, n = a.shape[0], a.shape[1], a.shape[2]
    count = pt.minimum(m, n)
    blocks, width = block_sizes(count)
    more = blocks * width - count
    scale = power_of_two(a, axis=1)
    columns = (a * scale).mT
    dtype = columns.type.dtype
    # Zeros make the blocks equally wide; the reflector of zeros is the identity.
    columns = pt.concatenate([columns, pt.zeros((batch, n, more), dtype)], axis=2)
    columns = pt.concatenate([columns, pt.zeros((batch, more, m + more), dtype)], axis=1)

    def step(
        k: TensorVariable, rest: TensorVariable, width: TensorVariable
    ) -> list[TensorVariable]:
        vectors, scales = _panel(rest[:, :width], width)
        factor = triangular_factor(vectors, scales, width)
        rest = reflected_by_block(rest, vectors, factor)
        done = pt.concatenate(
            [pt.zeros((rest.shape[0], k, width), rest.dtype), rest[:, :, :width]], axis=1
        )
        return [rest[:, width:, width:], behind_zeros(vectors, k), factor, scales, done]

    _, vectors, factors, scales, done = pytensor.scan(
        step,
        [pt.arange(blocks) * width],
        [columns, None, None, None, None],
        [width],
        return_updates=False,
        strict=True,
    )
    rows = done.transpose(1, 0, 3, 2).reshape((batch, count + more, n + more))[:, :count, :n]
    above = pt.le(pt.arange(count)[:, None], pt.arange(n)[None, :])
    rows = pt.switch(above, rows / scale, np.zeros((), dtype))
    return [vectors, factors, scales, rows]


def _panel(columns: TensorVariable, width: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """Return the reflectors of the columns of a block, with the axis of the reflector second.

    Elements stay in their places, those before a reflector's first one are multiplied by zero.
    """
    dtype, size = columns.type.dtype, columns.shape[2]
    place, element = pt.arange(width)[:, None, None], pt.arange(size)[None, None, :]
    unit, behind = pt.eq(element, place).astype(dtype), pt.gt(element, place).astype(dtype)

    def step(
        k: TensorVariable, unit: TensorVariable, behind: TensorVariable, rest: TensorVariable
    ) -> list[TensorVariable]:
        column = rest[:, k]
        others, scale, _ = reflection(column[:, k][:, None], column * behind)
        vector = others + unit
        along = pt.matmul(rest, vector[:, :, None])
        return [rest - along * (scale * vector)[:, None, :], vector, scale[:, 0]]

    _, vectors, scales = iterate(
        step, [columns], n_steps=width, sequences=[pt.arange(width), unit, behind]
    )
    return vectors.transpose(1, 0, 2), scales.T


def without_first(
    columns: TensorVariable,
) -> tuple[TensorVariable, TensorVariable, TensorVariable]:
    """Reflect columns by the reflector of the first, without the first and its row."""
    vector, scale, _ = reflector(columns[:, 0])
    along = pt.matmul(columns[:, 1:], vector[:, :, None])
    rest = columns[:, 1:, 1:] - along * (scale * vector[:, 1:])[:, None, :]
    return rest, vector, scale
