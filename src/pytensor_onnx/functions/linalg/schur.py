"""Schur forms of real matrices."""

from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.scan.utils import until
from pytensor.tensor.linalg.decomposition.schur import Schur
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.linalg.blocks import (
    ahead,
    as_float,
    behind,
    checked_size,
    diagonals,
    finite,
    flat,
    length,
    lower_diagonal,
    nonzero,
    not_empty,
    power_of_two,
    unflat,
    upper_diagonal,
)
from pytensor_onnx.functions.linalg.cholesky import pair_inverse
from pytensor_onnx.functions.linalg.hessenberg import hessenberg, quasi_triangular
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.operation import operation
from pytensor_onnx.functions.registry import define, own_signature


@define(Schur, own_signature)
def schur(a: TensorVariable, *, output: str, sort: str | None) -> list[TensorVariable]:
    """Quasi-triangular matrices ``T`` and orthogonal matrices ``Z`` with ``A = Z @ T @ Z.T``.

    Matrices are reduced to Hessenberg form and then by the QR iteration. Blocks of two rows along
    the diagonal have the form of LAPACK's, with equal diagonal elements and complex eigenvalues.
    The errors are those of LAPACK, relative to the norm of the matrix. The order of the
    eigenvalues, and the signs of the columns of Z, may differ from LAPACK's; mathematics leaves
    both free. With ``sort``, eigenvalues of a half-plane, or inside or outside of the unit circle,
    come first, and keep their order otherwise; all elements are NaN where they cannot be told
    apart from others. All elements are NaN where one of the matrix is not finite. float32 is
    computed in float64.

    Examples
    --------
    >>> from pytensor_onnx import compile_onnx
    >>> x = pt.matrix("x")
    >>> t, z = compile_onnx([x], pt.linalg.schur(x), verify=False)([[1.0, 4.0], [-1.0, 1.0]])
    >>> t
    array([[ 1.,  4.],
           [-1.,  1.]])
    """
    (a,) = as_float(a)
    n = checked_size(a, "expected square matrix")
    t, z = real_schur(flat(a).astype("float64"), n, sort)
    return [unflat(x.astype(a.type.dtype), a, n, n) for x in (t, z)]


def real_schur(
    a: TensorVariable, n: TensorVariable, sort: str | None = None
) -> tuple[TensorVariable, TensorVariable]:
    """Return real Schur forms of matrices of n rows with one batch axis, in float64."""
    valid, a = finite(a)
    scale = power_of_two(a, axis=(1, 2))
    a, _ = not_empty(a * scale, n)
    h, q = hessenberg(a)
    rows, failed = quasi_triangular(pt.concatenate([h, q.mT], axis=2))
    t, qt = standard_blocks(rows)
    if sort is not None:
        t, qt, unordered = order_blocks(t, qt, selected(t / scale, sort))
        failed += unordered
    valid += failed[:, None, None]
    return t[:, :n, :n] / scale + valid, qt[:, :n, :n].mT + valid


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


@operation("(b,n,k)->(b,n,n),(b,n,n)")
def standard_blocks(rows: TensorVariable) -> list[TensorVariable]:
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


# Elements that an exchange may leave below the blocks, relative to the matrix.
_NEGLIGIBLE = 30 * np.finfo("float64").eps
# Squares of vectors of a scale near one that are too small to be divided by.
_SMALLEST = np.float64(1e-280)
_PLACES = np.arange(4)


def selected(t: TensorVariable, sort: str) -> TensorVariable:
    """Return one for the rows of eigenvalues that come first, and zero for others.

    Parameters
    ----------
    t
        Matrices in standard Schur form.
    sort
        Which eigenvalues come first: those in the left or right half-plane ("lhp", "rhp"), inside
        or outside of the unit circle ("iuc", "ouc").
    """
    real, below = diagonals(t), lower_diagonal(t)
    imag = pt.sqrt(pt.abs(below)) * pt.sqrt(pt.abs(upper_diagonal(t)))
    size = pt.sqrt(real * real + (imag + behind(imag)) ** 2)
    chosen = {
        "lhp": pt.lt(real, 0.0),
        "rhp": pt.ge(real, 0.0),
        "iuc": pt.le(size, 1.0),
        "ouc": pt.gt(size, 1.0),
    }
    return chosen[sort].astype("float64")


@operation("(b,n,n),(b,n,n),(b,n)->(b,n,n),(b,n,n),(b)")
def order_blocks(
    t: TensorVariable, qt: TensorVariable, first: TensorVariable
) -> list[TensorVariable]:
    """Exchange neighbouring blocks of Schur forms until the selected ones come first.

    Z. Bai and J. W. Demmel, On swapping diagonal blocks in real Schur form, Linear Algebra and its
    Applications 186, 1993. All neighbours in the wrong order change places at once, and the others
    keep their order. As in LAPACK, an exchange fails where the eigenvalues of both blocks are too
    close to each other. ``first`` is one for the rows that come first and zero for others. The last
    result is zero, or NaN where an exchange fails.
    """
    count = 2 * t.shape[1] + 2

    def step(
        t: TensorVariable, qt: TensorVariable, first: TensorVariable, failed: TensorVariable
    ) -> tuple[list[TensorVariable], until]:
        n = t.shape[1]
        found = exchanges(t, pt.gt(first, 0.5))
        turn, covered = turns(_turned_blocks(windows(t, n), found), found, n)
        t = pt.matmul(pt.matmul(turn.mT, t), turn)
        rows_behind = pt.arange(n)[:, None] - pt.arange(n)[None, :]
        is_below = pt.gt(rows_behind, new_pairs(found, covered).astype("int64")[:, None, :])
        rest = pt.switch(is_below, pt.abs(t), 0.0).max(axis=(1, 2))
        is_small = pt.le(rest, _NEGLIGIBLE * pt.abs(t).max(axis=(1, 2)))
        rows = pt.concatenate([pt.switch(is_below, 0.0, t), pt.matmul(turn.mT, qt)], axis=2)
        moved = found.starts | behind(found.starts & found.second)
        first = pt.switch(covered, moved, pt.gt(first, 0.5)).astype("float64")
        failed = failed + pt.switch(is_small, 0.0, np.nan)
        return [*standard_blocks(rows), first, failed], until(~found.starts.any())

    start = pt.zeros((t.shape[0],))
    t, qt, first, failed = iterate(step, [t, qt, first, start], n_steps=count)
    is_done = ~exchanges(t, pt.gt(first, 0.5)).starts.any(axis=1)
    return [t, qt, failed + pt.switch(is_done, 0.0, np.nan)]


class Exchanges(NamedTuple):
    """Neighbouring blocks in the wrong order.

    Attributes
    ----------
    starts
        Whether two of them begin in a row.
    pairs
        Whether a block of two rows begins in a row.
    second
        Whether the block behind the one that begins in a row has two rows.
    """

    starts: TensorVariable
    pairs: TensorVariable
    second: TensorVariable


def exchanges(t: TensorVariable, is_selected: TensorVariable) -> Exchanges:
    """Return the neighbours to exchange: an unselected block before a selected one."""
    pairs = pt.neq(lower_diagonal(t), 0.0)

    def of_next(x: TensorVariable) -> TensorVariable:
        return pt.switch(pairs, ahead(ahead(x)), ahead(x))

    starts = ~behind(pairs) & ~is_selected & of_next(is_selected)
    return Exchanges(starts, pairs, of_next(pairs))


def new_pairs(found: Exchanges, covered: TensorVariable) -> TensorVariable:
    """Return whether a block of two rows begins in a row, after the exchanges."""
    large, small = found.starts & found.second, found.starts & ~found.second
    last = behind(small & found.pairs) | behind(behind(large & found.pairs))
    return (found.pairs & ~covered) | large | last


def windows(t: TensorVariable, n: TensorVariable) -> TensorVariable:
    """Return the 4 × 4 blocks that begin in each row, with zeros behind the end."""
    batch, size = t.shape[0], n + 3
    t = pt.concatenate([t, pt.zeros((batch, n, 3))], axis=2)
    t = pt.concatenate([t, pt.zeros((batch, 3, size))], axis=1)
    starts = pt.arange(n)[:, None, None] * (size + 1)
    places = starts + _PLACES[:, None] * size + _PLACES
    return t.reshape((batch, size * size))[:, places]


def turns(
    blocks: TensorVariable, found: Exchanges, n: TensorVariable
) -> tuple[TensorVariable, TensorVariable]:
    """Return the orthogonal matrices of all exchanges, and whether these move a row.

    Parameters
    ----------
    blocks
        The matrices of single exchanges, of four rows, for each row that they may begin in.
    found
        The exchanges.
    n
        Number of rows.
    """
    size = 2 + found.pairs.astype("int64") + found.second.astype("int64")
    size = pt.switch(found.starts, size, 0)
    is_inside = pt.lt(_PLACES, size[:, :, None])
    both = is_inside[:, :, :, None] & is_inside[:, :, None, :]
    blocks = pt.switch(both, blocks, 0.0)
    index = pt.arange(n)
    is_place = pt.eq(index[:, None, None] + _PLACES[:, None], index).astype("float64")
    batch = blocks.shape[0]
    across = pt.matmul(blocks, is_place).reshape((batch, 4 * n, n))
    turn = pt.matmul(is_place.reshape((4 * n, n)).T, across)
    moved = is_inside.astype("float64").reshape((batch, 1, 4 * n))
    covered = pt.gt(pt.matmul(moved, is_place.reshape((4 * n, n)))[:, 0], 0.0)
    kept = pt.eq(index[:, None], index) & ~covered[:, :, None]
    return turn + kept.astype("float64"), covered


def _turned_blocks(windows: TensorVariable, found: Exchanges) -> TensorVariable:
    """Return the orthogonal matrices that exchange the first two blocks of windows."""
    is_pair, second = found.pairs, found.second

    def at(i: int, j: int) -> TensorVariable:
        """Return elements by their distance from the end of the first block."""
        return pt.switch(is_pair, windows[:, :, i + 1, j + 1], windows[:, :, i, j])

    def only(condition: TensorVariable, x: TensorVariable) -> TensorVariable:
        return pt.switch(condition, x, 0.0)

    above, below = only(is_pair, windows[:, :, 0, 1]), only(is_pair, windows[:, :, 1, 0])
    next_above, next_below = only(second, at(1, 2)), only(second, at(2, 1))
    none = pt.zeros_like(above)
    left = matrix(none, above, below, none)
    right = -matrix(none, next_above, next_below, none)
    beside = matrix(
        pt.switch(is_pair, windows[:, :, 0, 2], windows[:, :, 0, 1]),
        only(second, pt.switch(is_pair, windows[:, :, 0, 3], windows[:, :, 0, 2])),
        only(is_pair, windows[:, :, 1, 2]),
        only(is_pair & second, windows[:, :, 1, 3]),
    )
    sigma = windows[:, :, 0, 0] - at(1, 1)
    omega = pt.sqrt(pt.abs(above)) * pt.sqrt(pt.abs(below))
    nu = pt.sqrt(pt.abs(next_above)) * pt.sqrt(pt.abs(next_below))
    largest = pt.abs(sigma) + omega + nu
    # Small blocks have a scale near one, so that no power of it underflows.
    scale = 1.0 / pt.switch(pt.gt(largest, 0.0), largest, 1.0)
    sigma, omega, nu = (x * scale for x in (sigma, omega, nu))
    left, right, beside = (x * scale[:, :, None, None] for x in (left, right, beside))
    inverse = pair_inverse(*(x[:, :, None, None] for x in (sigma, omega, nu)))

    def solved(c: TensorVariable) -> TensorVariable:
        y = pt.matmul(left, c)
        z = pt.matmul(inverse.gamma * c + inverse.delta * y, right)
        return inverse.alpha * c + inverse.beta * y + z

    x = solved(beside)
    total = sigma[:, :, None, None]
    x = x + solved(beside - total * x - pt.matmul(left, x) - pt.matmul(x, right))
    # Single elements may be equal.
    is_single = ~is_pair & ~second
    x = pt.switch(is_single[:, :, None, None], beside, x)
    return turned_to(x, pt.switch(is_single, sigma, 1.0), found)


def turned_to(x: TensorVariable, one: TensorVariable, found: Exchanges) -> TensorVariable:
    """Return the orthogonal matrices whose first columns span those of ``[-X; one * I]``.

    Parameters
    ----------
    x
        Matrices of two rows and columns, zero beyond the blocks.
    one
        Numbers.
    found
        The exchanges, with the sizes of the blocks.
    """
    is_pair, second = found.pairs, found.second
    none = pt.zeros_like(one)
    largest = pt.maximum(pt.abs(x).max(axis=(2, 3)), pt.abs(one))
    largest = pt.switch(pt.eq(largest, 0.0), 1.0, largest)
    x, one = -x / largest[:, :, None, None], one / largest
    unit = matrix(one, none, none, pt.switch(second, one, 0.0))
    after_pair = pt.concatenate([x, unit], axis=2)
    zeros = pt.zeros_like(unit[:, :, :1])
    after_one = pt.concatenate([x[:, :, :1], unit, zeros], axis=2)
    basis = pt.switch(is_pair[:, :, None, None], after_pair, after_one)
    first = _reflection(basis[:, :, :, 0], 0)
    rest = pt.matmul(first, basis[:, :, :, 1:])[:, :, :, 0]
    return pt.matmul(first, _reflection(pt.switch(_PLACES > 0, rest, 0.0), 1))


def matrix(
    a: TensorVariable, b: TensorVariable, c: TensorVariable, d: TensorVariable
) -> TensorVariable:
    """Return the 2 × 2 matrices ``[[a, b], [c, d]]``."""
    return pt.stack([pt.stack([a, b], axis=2), pt.stack([c, d], axis=2)], axis=2)


def _reflection(x: TensorVariable, place: int) -> TensorVariable:
    """Return the reflections of vectors to multiples of a unit vector, the identity for zeros."""
    norm = pt.sqrt((x * x).sum(axis=2, keepdims=True))
    vector = x + pt.switch(pt.lt(x, 0.0), -norm, norm) * (place == _PLACES)
    square = (vector * vector).sum(axis=2, keepdims=True)
    scaled = vector * pt.switch(pt.gt(square, _SMALLEST), 2.0 / square, 0.0)
    return np.eye(4) - scaled[:, :, :, None] * vector[:, :, None, :]
