"""Standard form of the 2 × 2 blocks of quasi-triangular matrices."""

from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.linalg.matrix_batches import diagonals
from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.shape import zeros
from pytensor_onnx.ops.linalg.factorisations import StandardBlocks

_EPS = np.finfo("float64").eps


class Blocks(NamedTuple):
    """Elements ``[[a, b], [c, d]]`` of blocks in standard form, and the rotations to it."""

    a: TensorVariable
    b: TensorVariable
    c: TensorVariable
    d: TensorVariable
    cosine: TensorVariable
    sine: TensorVariable


def standard_form(
    a: TensorVariable, b: TensorVariable, c: TensorVariable, d: TensorVariable
) -> Blocks:
    """Return blocks ``[[a, b], [c, d]]`` in standard form, as LAPACK's ``dlanv2``.

    Either ``c`` is zero, or ``a`` and ``d`` are equal and ``b`` and ``c`` have different signs.

    Examples
    --------
    >>> numbers = [pt.scalar(name) for name in "abcd"]
    >>> block = standard_form(*numbers)
    >>> values = dict(zip(numbers, (1.0, 3.0, 1.0, -1.0)))
    >>> [round(float(x.eval(values)), 6) for x in block[:4]]
    [2.0, 2.0, 0.0, -2.0]
    """
    swapped = pt.eq(b, 0.0)
    is_kept = pt.eq(c, 0.0) | (pt.eq(a, d) & pt.lt(pt.sign(b) * pt.sign(c), 0.0))
    real, is_real = _split(a, b, c, d)
    found = _chosen(is_real, real, _equalised(a, b, c, d))
    zero, one = pt.zeros_like(a), pt.ones_like(a)
    found = _chosen(swapped, Blocks(d, -c, zero, a, zero, one), found)
    return _chosen(is_kept, Blocks(a, b, c, d, one, zero), found)


def _split(
    a: TensorVariable, b: TensorVariable, c: TensorVariable, d: TensorVariable
) -> tuple[Blocks, TensorVariable]:
    """Return upper triangular blocks, and whether there are two distinct real eigenvalues."""
    p = 0.5 * (a - d)
    larger = pt.maximum(pt.abs(b), pt.abs(c))
    smaller = pt.minimum(pt.abs(b), pt.abs(c)) * pt.sign(b) * pt.sign(c)
    scale = nonzero(pt.maximum(pt.abs(p), larger))
    z = p / scale * p + larger / scale * smaller
    is_real = pt.ge(z, 4 * _EPS)
    root = pt.sqrt(scale) * pt.sqrt(pt.maximum(z, 0.0))
    z = nonzero(p + pt.switch(pt.lt(p, 0.0), -root, root))
    size = nonzero(length(c, z))
    low = d - larger / z * smaller
    return Blocks(d + z, b - c, pt.zeros_like(c), low, z / size, c / size), is_real


def _equalised(
    a: TensorVariable, b: TensorVariable, c: TensorVariable, d: TensorVariable
) -> Blocks:
    """Return blocks with equal diagonal elements; equal real eigenvalues are split again."""
    sigma, p = b + c, a - d
    size = nonzero(length(sigma, p))
    cosine = pt.sqrt(0.5 * (1.0 + pt.abs(sigma) / size))
    sine = -(0.5 * p / (size * cosine)) * pt.switch(pt.lt(sigma, 0.0), -1.0, 1.0)
    first, second = a * cosine + b * sine, b * cosine - a * sine
    third, fourth = c * cosine + d * sine, d * cosine - c * sine
    mean = 0.5 * (first * cosine + third * sine + fourth * cosine - second * sine)
    b, c = second * cosine + fourth * sine, third * cosine - first * sine
    zero = pt.zeros_like(c)
    complex_pair = Blocks(mean, b, c, mean, cosine, sine)
    # Elements of the same sign have real eigenvalues.
    root_b, root_c = pt.sqrt(pt.abs(b)), pt.sqrt(pt.abs(c))
    shift = root_b * root_c * pt.sign(c)
    tau = 1.0 / nonzero(pt.sqrt(pt.abs(b + c)))
    more_cosine, more_sine = root_b * tau, root_c * tau
    real_pair = Blocks(
        mean + shift,
        b - c,
        zero,
        mean - shift,
        cosine * more_cosine - sine * more_sine,
        cosine * more_sine + sine * more_cosine,
    )
    turned = Blocks(mean, -c, zero, mean, -sine, cosine)
    found = _chosen(pt.gt(pt.sign(b) * pt.sign(c), 0.0), real_pair, complex_pair)
    return _chosen(pt.eq(b, 0.0) & pt.neq(c, 0.0), turned, found)


def _chosen(condition: TensorVariable, first: Blocks, second: Blocks) -> Blocks:
    return Blocks(*(pt.switch(condition, x, y) for x, y in zip(first, second, strict=True)))


def length(x: TensorVariable, y: TensorVariable) -> TensorVariable:
    """Return the length of ``(x, y)``, without over- and underflow."""
    larger = nonzero(pt.maximum(pt.abs(x), pt.abs(y)))
    return larger * pt.sqrt((x / larger) ** 2 + (y / larger) ** 2)


def nonzero(x: TensorVariable) -> TensorVariable:
    """Return one in the place of zero, for divisors of zeros."""
    return pt.switch(pt.eq(x, 0.0), 1.0, x)


@define(StandardBlocks, StandardBlocks.gufunc_signature)
def standardised(rows: TensorVariable) -> list[TensorVariable]:
    """Return quasi-triangular matrices with standard blocks, and the transposed factors.

    Parameters
    ----------
    rows
        Matrices ``T`` and beside them ``Q.T``, with one batch axis.
    """
    n = rows.shape[1]
    index = pt.arange(n)
    row, column = index[:, None], index[None, :]
    t, qt = rows[:, :, :n], rows[:, :, n:]
    d, below, above = diagonals(t), lower_diagonal(t), upper_diagonal(t)
    last = pt.zeros_like(d[:, :1])
    is_first = pt.neq(below, 0.0)
    following = pt.concatenate([d[:, 1:], last], axis=1)
    # Rows that begin no block form one with a row of zeros, which has the standard form.
    zero = pt.zeros_like(d)
    form = standard_form(
        d, pt.switch(is_first, above, zero), below, pt.switch(is_first, following, zero)
    )
    is_second = behind(is_first)
    cosine = pt.switch(is_first, form.cosine, pt.switch(is_second, behind(form.cosine), 1.0))
    sine = pt.switch(is_first, form.sine, 0.0)
    upper, lower = pt.eq(row + 1, column), pt.eq(row, column + 1)
    rotation = pt.switch(pt.eq(row, column), cosine[:, :, None], 0.0)
    rotation = pt.switch(upper, sine[:, :, None], rotation)
    rotation = pt.switch(lower, -sine[:, None, :], rotation)
    t = pt.matmul(pt.matmul(rotation, t), rotation.mT)
    on_diagonal = pt.switch(is_first, form.a, pt.switch(is_second, behind(form.d), d))
    t = pt.switch(pt.eq(row, column), on_diagonal[:, :, None], t)
    t = pt.switch(upper & is_first[:, :, None], form.b[:, :, None], t)
    under = pt.switch(is_first, form.c, 0.0)
    t = pt.switch(pt.gt(row, column), pt.switch(lower, under[:, None, :], 0.0), t)
    return [t, pt.matmul(rotation, qt)]


def behind(rows: TensorVariable) -> TensorVariable:
    """Return rows moved by one place, with a zero before them."""
    return pt.concatenate([pt.zeros_like(rows[:, :1]), rows[:, :-1]], axis=1)


def ahead(rows: TensorVariable) -> TensorVariable:
    """Return rows without their first elements, with a zero behind them."""
    return pt.concatenate([rows[:, 1:], pt.zeros_like(rows[:, :1])], axis=1)


def lower_diagonal(t: TensorVariable) -> TensorVariable:
    """Return the elements below the diagonals, followed by a zero."""
    return _followed_by_zero(t, -1)


def upper_diagonal(t: TensorVariable) -> TensorVariable:
    """Return the elements above the diagonals, followed by a zero."""
    return _followed_by_zero(t, 1)


def _followed_by_zero(t: TensorVariable, offset: int) -> TensorVariable:
    found = pt.diagonal(t, offset=offset, axis1=1, axis2=2)
    return pt.concatenate([found, zeros((t.shape[0], 1))], axis=1)[:, : t.shape[1]]
