"""Singular values and vectors of bidiagonal matrices, by divide and conquer.

M. Gu and S. C. Eisenstat, A divide-and-conquer algorithm for the bidiagonal SVD, SIAM Journal on
Matrix Analysis and Applications 16 (1995), with matrices of ``2**k - 1`` rows at level ``k``. There
is no deflation: singular values of the parts that are equal are set apart by a rounding error, and
zeros of the secular equation become tiny numbers, so that all merges of a level are one.
"""

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.linalg.secular import differences
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.registry import define, own_signature
from pytensor_onnx.ops.linalg.factorisations import BidiagonalVectors, SecularRoots

# Singular values are brought below one, and those of padding are larger.
_PADDING = 1.25
_APART = _PADDING * np.finfo("float64").eps
_TINY = 1e-30
# Numbers whose squares underflow.
_NEGLIGIBLE = 1e-140
_POWERS = 2 ** np.arange(31)


@define(BidiagonalVectors, own_signature)
def singular_vectors(
    diagonal: TensorVariable, above: TensorVariable, *, with_left: bool
) -> list[TensorVariable]:
    """Return the right, and the left, singular vectors of upper bidiagonal matrices, in rows.

    The rows are sorted by ascending singular values. Their orthogonality and the backward error
    are a few rounding errors. The singular values are not returned, since those computed from the
    vectors are more accurate.

    Parameters
    ----------
    diagonal, above
        Elements on the diagonal and above it, a matrix in each row, in float64. The last element
        of ``above`` is zero.
    with_left
        Whether left singular vectors are wanted.
    """
    batch, n = diagonal.shape[0], diagonal.shape[1]
    zero = pt.zeros((batch, 1))
    size = pt.abs(above)
    before = pt.concatenate([zero, size], axis=1)[:, :n]
    size = pt.abs(diagonal) + pt.maximum(size, before)
    norm = pt.concatenate([size, zero], axis=1).max(axis=1, keepdims=True)
    norm = pt.switch(pt.gt(norm, 0.0), norm, 1.0)
    level = pt.gt(n + 1, _POWERS).sum()
    size = pt.constant(_POWERS)[level]
    filling = pt.zeros((batch, size - n))
    rows = pt.concatenate([diagonal / norm, filling + _PADDING], axis=1)
    couplings = pt.concatenate([above / norm, filling], axis=1)

    one = pt.minimum(size, 1)
    kinds = 2 if with_left else 1
    values = pt.zeros((batch * size, one))
    vectors = pt.ones((kinds, batch * size, one, one))
    _, merged = iterate(
        _merge,
        [values, vectors],
        [rows, couplings],
        n_steps=level,
        sequences=[pt.constant(_POWERS)[:level]],
    )
    merged = merged.reshape((kinds, batch, size, size))[:, :, 1 : n + 1, :n]
    return [merged[kind] for kind in range(kinds)]


def _merge(
    size: TensorVariable,
    values: TensorVariable,
    vectors: TensorVariable,
    diagonal: TensorVariable,
    above: TensorVariable,
) -> list[TensorVariable]:
    """Merge each two neighbouring parts and the row between them.

    A part has one row less than columns. Its first right vector is that of the kernel, its first
    value zero. Left vectors have the row below the part as their last element, and the first of
    them is the unit vector of this row.
    """
    kinds, pairs, count = vectors.type.shape[0], values.shape[0] // 2, 2 * size - 1
    values = values.reshape((pairs, 2, size))
    blocks = vectors.reshape((kinds, pairs, 2, size, size))
    upper = diagonal.reshape((pairs, 2 * size))[:, size - 1, None] * blocks[0, :, 0, :, size - 1]
    lower = above.reshape((pairs, 2 * size))[:, size - 1, None] * blocks[0, :, 1, :, 0]
    length = pt.sqrt(upper[:, :1] * upper[:, :1] + lower[:, :1] * lower[:, :1])
    is_zero = pt.lt(length, _NEGLIGIBLE)
    divisor = pt.switch(is_zero, 1.0, length)
    cosine, sine = pt.switch(is_zero, 1.0, upper[:, :1] / divisor), lower[:, :1] / divisor

    z = pt.concatenate([length, upper[:, 1:], lower[:, 1:]], axis=1)
    poles = pt.concatenate([values[:, 0], values[:, 1, 1:]], axis=1)
    order = pt.argsort(poles, axis=1)
    place = pt.argsort(order, axis=1)
    first = pt.arange(pairs)[:, None] * count
    ascending = _apart(poles.flatten()[order + first], count)
    z = pt.switch(pt.lt(pt.abs(z), _TINY), pt.switch(pt.lt(z, 0.0), -_TINY, _TINY), z)
    nearest, shift = SecularRoots()(ascending, z.flatten()[order + first])
    weights = _weights(ascending, nearest, shift, count).flatten()[place + first]
    weights = pt.switch(pt.lt(z, 0.0), -weights, weights)
    poles = ascending.flatten()[place + first]

    right = weights[:, None, :] / (differences(nearest, poles) - shift[:, :, None])
    parts = [_halves(_normalised(right), cosine, sine, size)]
    if kinds > 1:
        is_first = pt.eq(pt.arange(count), 0)
        left = pt.switch(is_first, -1.0, poles[:, None, :] * right)
        parts.append(_halves(_normalised(left), pt.ones_like(sine), pt.zeros_like(sine), size))
        cosine = pt.stack([cosine, pt.ones_like(sine)])
        sine = pt.stack([sine, pt.zeros_like(sine)])
    else:
        cosine, sine = cosine[None], sine[None]
    products = pt.matmul(pt.stack(parts), blocks)
    kernel = [-sine * blocks[:, :, 0, 0], cosine * blocks[:, :, 1, 0]]
    merged = pt.concatenate(
        [
            pt.concatenate(kernel, axis=2)[:, :, None],
            pt.concatenate([products[:, :, 0], products[:, :, 1]], axis=3),
        ],
        axis=2,
    )
    root = pt.sqrt(nearest * nearest + shift)
    return [pt.concatenate([pt.zeros((pairs, 1)), root], axis=1), merged]


def _apart(poles: TensorVariable, count: TensorVariable) -> TensorVariable:
    """Move poles that are equal apart, by one rounding error each; the first stays zero."""
    rows = pt.arange(count)
    steps = rows.astype("float64") * _APART
    shifted = poles - steps
    is_after = pt.gt(rows[None, :], rows[:, None])
    running = pt.switch(is_after, -np.inf, shifted[:, None, :]).max(axis=2)
    return pt.switch(pt.eq(rows, 0), 0.0, running + steps)


def _weights(
    poles: TensorVariable, nearest: TensorVariable, shift: TensorVariable, count: TensorVariable
) -> TensorVariable:
    """Return the absolute values of ``z`` for which the roots are exact, by Löwner's formula."""
    rows = pt.arange(count)
    to_roots = differences(poles, nearest) + shift[:, None, :]
    to_poles = differences(poles, poles)
    last = pt.zeros_like(to_poles[:, :, :1]) + 1.0
    to_next = pt.concatenate([to_poles[:, :, 1:], last], axis=2)
    is_below = pt.lt(rows[None, :], rows[:, None])
    ratios = to_roots / pt.switch(is_below, to_poles, to_next)
    return pt.sqrt(ratios.prod(axis=2))


def _normalised(rows: TensorVariable) -> TensorVariable:
    """Return rows of length one."""
    return rows / pt.sqrt((rows * rows).sum(axis=2, keepdims=True))


def _halves(
    rows: TensorVariable, cosine: TensorVariable, sine: TensorVariable, size: TensorVariable
) -> TensorVariable:
    """Return the coefficients of the vectors of both parts; the first ones are combined."""
    first = rows[:, :, :1]
    upper = pt.concatenate([first * cosine[:, :, None], rows[:, :, 1:size]], axis=2)
    lower = pt.concatenate([first * sine[:, :, None], rows[:, :, size:]], axis=2)
    return pt.stack([upper, lower], axis=1)
