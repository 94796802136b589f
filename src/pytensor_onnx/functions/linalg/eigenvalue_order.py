"""The order of eigenvalues in real Schur forms."""

from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.linalg.matrix_batches import diagonals
from pytensor_onnx.functions.linalg.pair_inverse import pair_inverse
from pytensor_onnx.functions.linalg.standard_blocks import (
    ahead,
    behind,
    lower_diagonal,
    upper_diagonal,
)
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.registry import define
from pytensor_onnx.ops.linalg.factorisations import OrderBlocks, StandardBlocks

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


@define(OrderBlocks, OrderBlocks.gufunc_signature)
def ordered(t: TensorVariable, qt: TensorVariable, first: TensorVariable) -> list[TensorVariable]:
    """Exchange neighbouring blocks of Schur forms until the selected ones come first.

    Z. Bai and J. W. Demmel, On swapping diagonal blocks in real Schur form, Linear Algebra and its
    Applications 186, 1993. All neighbours in the wrong order change places at once, and the others
    keep their order. As in LAPACK, an exchange fails where the eigenvalues of both blocks are too
    close to each other.
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
        return [*StandardBlocks()(rows), first, failed], until(~found.starts.any())

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
