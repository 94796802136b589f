"""Bidiagonal and tridiagonal forms, and the singular vectors of bidiagonal matrices."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.linalg.qr import behind_zeros, in_blocks, reflector
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.operation import operation

# Singular values and vectors of bidiagonal matrices, by divide and conquer.
#
# M. Gu and S. C. Eisenstat, A divide-and-conquer algorithm for the bidiagonal SVD, SIAM Journal on
# Matrix Analysis and Applications 16 (1995), with matrices of ``2**k - 1`` rows at level ``k``.
# There is no deflation: singular values of the parts that are equal are set apart by a rounding
# error, and zeros of the secular equation become tiny numbers, so that all merges of a level are
# one.

# Singular values are brought below one, and those of padding are larger.
_PADDING = 1.25
_APART = _PADDING * np.finfo("float64").eps
_TINY = 1e-30
# Numbers whose squares underflow.
_NEGLIGIBLE = 1e-140
_POWERS = 2 ** np.arange(31)


@operation(lambda op, _: "(b,n),(b,n)->(b,n,n)" + ",(b,n,n)" * op.with_left)
def bidiagonal_vectors(diagonal: TensorVariable, above: TensorVariable, *, with_left: bool) -> Any:
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
    nearest, shift = secular_roots(ascending, z.flatten()[order + first])
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


@operation("(b,n,n)->(b,n),(b,n),(p,b,w,l),(p,b,w,w)")
def tridiagonalise(a: TensorVariable) -> list[TensorVariable]:
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


@operation("(b,n,n)->(b,n),(b,n),(p,b,w,l),(p,b,w,w),(p,b,w,l),(p,b,w,w)")
def bidiagonalise(a: TensorVariable) -> list[TensorVariable]:
    """Reduce a batch of square matrices ``A`` to the upper bidiagonal form ``Q.T @ A @ P``.

    G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed., algorithm 5.4.2, with the row
    and the column of zeros of `tridiagonalise`.

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


_STEPS = 80
_EPS = np.finfo("float64").eps


def differences(x: TensorVariable, y: TensorVariable) -> TensorVariable:
    """Return ``y[j]**2 - x[i]**2`` in row ``i`` and column ``j``, without cancellation.

    Examples
    --------
    >>> x = pt.matrix("x")
    >>> differences(x, x).eval({x: np.array([[1.0, 2.0]])}, mode="ONNX")
    array([[[ 0.,  3.],
            [-3.,  0.]]])
    """
    x, y = x[:, :, None], y[:, None, :]
    return (y - x) * (y + x)


@operation("(b,n),(b,n)->(b,n),(b,n)")
def secular_roots(poles: TensorVariable, z: TensorVariable) -> list[TensorVariable]:
    """Return the roots ``s**2`` of ``1 + sum(z[i]**2 / (poles[i]**2 - s**2))``.

    Each root is the zero of a rational function that interpolates the sums over the poles to its
    left and to its right, again and again (R.-C. Li, Solving secular equations stably and
    efficiently, LAPACK working note 89, 1994, the "middle way"), and a bisection where that
    leaves the bracket. All roots of all equations take a step together.

    Parameters
    ----------
    poles
        Matrix of nonnegative numbers, in each row strictly ascending.
    z
        Matrix of numbers other than zero.

    Returns
    -------
    list of TensorVariable
        The pole next to each root, and the difference of the root and the squared pole, accurate
        as a number of its own; NaN where it has not been found in 80 steps.
    """
    equations, count = poles.shape[0], poles.shape[1]
    square = z * z
    rows = pt.arange(count)
    is_last = pt.eq(rows, count - 1)
    next_pole, next_square = (pt.concatenate([x[:, 1:], x[:, :1]], axis=1) for x in (poles, square))
    next_square = pt.switch(is_last, 0.0, next_square)
    gap = (next_pole - poles) * (next_pole + poles)
    # Beyond the last pole all squares bound the distance of the root.
    bound = 1.0625 * square.sum(axis=1, keepdims=True)
    width = pt.switch(is_last, bound, gap)
    middle = 0.5 * width
    terms = square[:, None, :] / (differences(poles, poles) - middle[:, :, None])
    at_middle = 1.0 + terms.sum(axis=2)
    at_right = pt.lt(at_middle, 0.0) & ~is_last
    pole = pt.switch(at_right, next_pole, poles)
    low = pt.switch(at_right, -middle, pt.switch(is_last & pt.lt(at_middle, 0.0), middle, 0.0))
    high = pt.switch(at_right, 0.0, pt.switch(is_last & pt.lt(at_middle, 0.0), width, middle))
    rest = at_middle + (square - next_square) / middle
    signed_width = pt.switch(at_right, -width, width)
    start = _quadratic_root(
        rest,
        rest * signed_width + square + next_square,
        pt.switch(at_right, next_square, square) * signed_width,
    )
    left = pt.switch(at_right, -width, 0.0)
    shift, found = _refined(
        differences(pole, poles),
        square[:, None, :],
        [_inside(start, low, high, is_last), low, high],
        [left, left + width],
        rows,
        pt.zeros((equations, count), "bool"),
    )
    return [pole, pt.switch(found, shift, np.nan)]


def _refined(
    delta: TensorVariable,
    square: TensorVariable,
    start: Sequence[TensorVariable],
    ends: Sequence[TensorVariable],
    rows: TensorVariable,
    none: TensorVariable,
) -> tuple[TensorVariable, TensorVariable]:
    """Return the shifts of the roots, and whether they have been found.

    Parameters
    ----------
    delta
        Differences of the squared poles and the one next to a root.
    square
        Squares of ``z``, with an axis for the roots.
    start
        The first shifts, and their lower and upper bounds.
    ends
        The poles around each root, relative to the one next to it.
    rows
        Positions of the roots.
    none
        Array that is false for all roots.
    """
    is_below = pt.le(rows[None, :], rows[:, None]).astype("float64")
    is_last = pt.eq(rows, rows.shape[0] - 1)

    def step(
        shift: TensorVariable,
        low: TensorVariable,
        high: TensorVariable,
        _: TensorVariable,
        *constants: TensorVariable,
    ) -> tuple[list[TensorVariable], Any]:
        delta, square, is_below, is_last, left, right = constants
        distance = delta - shift[:, :, None]
        terms = square / distance
        slopes = terms / distance
        value = 1.0 + terms.sum(axis=2)
        size = 1.0 + pt.abs(terms).sum(axis=2)
        slope = slopes.sum(axis=2)
        slope_below = (slopes * is_below).sum(axis=2)
        slope_above = slope - slope_below
        low = pt.switch(pt.lt(value, 0.0), shift, low)
        high = pt.switch(pt.lt(value, 0.0), high, shift)
        nearest = pt.minimum(pt.abs(low), pt.abs(high))
        found = pt.le(pt.abs(value), 2 * _EPS * size) | pt.le(high - low, 4 * _EPS * nearest)
        to_left = left - shift
        # The last root has no pole to its right: the pole is at infinity.
        reciprocal = pt.switch(is_last, 0.0, 1.0 / (right - shift))
        change = _quadratic_root(
            (value - to_left * slope_below) * reciprocal - slope_above,
            (to_left * reciprocal + 1.0) * value - to_left * slope,
            to_left * value,
        )
        proposal = _inside(shift + change, low, high, is_last)
        return [pt.switch(found, shift, proposal), low, high, found], until(pt.all(found))

    shift, _, _, found = pytensor.scan(
        step,
        [],
        [*start, none],
        [delta, square, is_below, is_last, *ends],
        n_steps=_STEPS,
        return_updates=False,
        strict=True,
    )
    return shift[-1], found[-1]


def _quadratic_root(a: TensorVariable, b: TensorVariable, c: TensorVariable) -> TensorVariable:
    """Return the root of ``a x**2 - b x + c`` that stays finite for a small ``a``."""
    root = pt.sqrt(pt.maximum(b * b - 4.0 * a * c, 0.0))
    is_positive = pt.gt(b, 0.0)
    top = pt.switch(is_positive, 2.0 * c, b - root)
    return top / pt.switch(is_positive, b + root, 2.0 * a)


def _inside(
    x: TensorVariable, low: TensorVariable, high: TensorVariable, is_last: TensorVariable
) -> TensorVariable:
    """Return a number, or one between the bounds if it is not inside of them.

    The bounds may differ by many magnitudes, whose geometric mean halves that range.
    """
    product = low * high
    mean = pt.sign(low + high) * pt.sqrt(pt.abs(product))
    near_zero = (low + high) * pt.switch(is_last, 0.5, 1 / 64)
    between = pt.switch(pt.gt(product, 0.0), mean, near_zero)
    return pt.switch(pt.gt(x, low) & pt.lt(x, high), x, between)
