"""Order of the eigenvalues of a generalised Schur form."""

from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.linalg.blocks import (
    ahead,
    behind,
    diagonals,
    length,
    lower_diagonal,
    nonzero,
    upper_diagonal,
)
from pytensor_onnx.functions.linalg.schur import (
    Exchanges,
    exchanges,
    matrix,
    new_pairs,
    turned_to,
    turns,
    windows,
)
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.operation import operation

# Elements that an exchange may leave below the blocks, relative to the matrix.
_NEGLIGIBLE = 30 * np.finfo("float64").eps


@operation("(b,n,n),(b,n,n),(b,n,n),(b,n,n),(b,n)->(b,n,n),(b,n,n),(b,n,n),(b,n,n),(b)")
def order_pencil(
    a: TensorVariable,
    b: TensorVariable,
    qt: TensorVariable,
    z: TensorVariable,
    first: TensorVariable,
) -> list[TensorVariable]:
    """Exchange neighbouring blocks of pencils until the selected ones come first.

    B. Kågström and P. Poromaa, Computing eigenspaces with specified eigenvalues of a regular matrix
    pair (A, B) and condition estimation, Numerical Algorithms 12, 1996. All neighbours in the wrong
    order change places at once, and the others keep their order. As in LAPACK, an exchange fails
    where the eigenvalues of both blocks are too close to each other.

    ``first`` is one for the rows that come first and zero for others. The last result is zero, or
    NaN where an exchange fails.
    """
    count = 2 * a.shape[1] + 2

    def step(
        a: TensorVariable,
        b: TensorVariable,
        qt: TensorVariable,
        z: TensorVariable,
        first: TensorVariable,
        failed: TensorVariable,
    ) -> tuple[list[TensorVariable], until]:
        n = a.shape[1]
        found = exchanges(a, pt.gt(first, 0.5))
        right, left = _bases(windows(a, n), windows(b, n), found)
        right, covered = turns(right, found, n)
        left = turns(left, found, n)[0].mT
        row, column = pt.arange(n)[:, None], pt.arange(n)
        pairs = new_pairs(found, covered).astype("int64")[:, None, :]
        is_below = pt.gt(row - column, pairs)
        for_each = []
        for given in (a, b):
            x = pt.matmul(pt.matmul(left, given), right)
            rest = pt.switch(is_below, pt.abs(x), 0.0).max(axis=(1, 2))
            is_small = pt.le(rest, _NEGLIGIBLE * pt.abs(x).max(axis=(1, 2)))
            failed = failed + pt.switch(is_small, 0.0, np.nan)
            for_each.append(pt.switch(is_below, 0.0, x))
        results = standard_pencil(*for_each, *[pt.matmul(left, qt), pt.matmul(z, right)])
        moved = found.starts | behind(found.starts & found.second)
        first = pt.switch(covered, moved, pt.gt(first, 0.5)).astype("float64")
        return [*results, first, failed], until(~found.starts.any())

    start = pt.zeros((a.shape[0],))
    a, b, qt, z, first, failed = iterate(step, [a, b, qt, z, first, start], n_steps=count)
    is_done = ~exchanges(a, pt.gt(first, 0.5)).starts.any(axis=1)
    return [a, b, qt, z, failed + pt.switch(is_done, 0.0, np.nan)]


def _bases(
    a: TensorVariable, b: TensorVariable, found: Exchanges
) -> tuple[TensorVariable, TensorVariable]:
    """Return the orthogonal matrices of columns and of rows that exchange blocks of windows.

    They are found by the equations ``A₁ X - Y A₂ = A₁₂`` and ``B₁ X - Y B₂ = B₁₂`` of the blocks.
    """
    (a1, a2, a12), (b1, b2, b12) = _parts(a, found), _parts(b, found)
    rows = [
        pt.concatenate([_times(left, np.eye(2)), -_times(np.eye(2), right.mT)], axis=3)
        for left, right in ((a1, a2), (b1, b2))
    ]
    second = pt.stack([pt.ones_like(found.second), found.second], axis=2)
    first = pt.stack([pt.ones_like(found.pairs), found.pairs], axis=2)
    batch, n = a.shape[0], a.shape[1]
    is_inside = (first[:, :, :, None] & second[:, :, None, :]).reshape((batch, n, 4))
    is_inside = pt.concatenate([is_inside, is_inside], axis=2)
    system = pt.switch(is_inside[:, :, :, None], pt.concatenate(rows, axis=2), np.eye(8))
    sides = pt.concatenate([a12.reshape((batch, n, 4)), b12.reshape((batch, n, 4))], axis=2)
    found_xy = pt.linalg.solve(system, sides[:, :, :, None], b_ndim=2)
    x, y = (found_xy[:, :, part, 0].reshape((batch, n, 2, 2)) for part in (slice(4), slice(4, 8)))
    one = pt.ones((batch, n))
    return turned_to(x, one, found), turned_to(y, one, found)


def _parts(t: TensorVariable, found: Exchanges) -> list[TensorVariable]:
    """Return both blocks of windows and the block beside the first, with zeros around them."""
    is_pair, second = found.pairs, found.second

    def only(condition: TensorVariable, x: TensorVariable) -> TensorVariable:
        return pt.switch(condition, x, 0.0)

    def behind_first(i: int, j: int) -> TensorVariable:
        return pt.switch(is_pair, t[:, :, i + 2, j + 2], t[:, :, i + 1, j + 1])

    first = matrix(
        t[:, :, 0, 0], *(only(is_pair, t[:, :, i, j]) for i, j in ((0, 1), (1, 0), (1, 1)))
    )
    following = matrix(
        behind_first(0, 0),
        *(only(second, behind_first(i, j)) for i, j in ((0, 1), (1, 0), (1, 1))),
    )
    beside = matrix(
        pt.switch(is_pair, t[:, :, 0, 2], t[:, :, 0, 1]),
        only(second, pt.switch(is_pair, t[:, :, 0, 3], t[:, :, 0, 2])),
        only(is_pair, t[:, :, 1, 2]),
        only(is_pair & second, t[:, :, 1, 3]),
    )
    return [first, following, beside]


def _times(x: TensorVariable | np.ndarray, y: TensorVariable | np.ndarray) -> TensorVariable:
    """Return Kronecker products of 2 × 2 matrices."""
    shape = (x if isinstance(y, np.ndarray) else y).shape
    product = x[..., :, None, :, None] * y[..., None, :, None, :]
    return product.reshape((shape[0], shape[1], 4, 4))


_EPS = np.finfo("float64").eps
# Singular values of B that count as zero, relative to its norm.
_SMALL = 8 * _EPS


class Block(NamedTuple):
    """Elements ``[[a, b], [c, d]]`` of blocks, in rows."""

    a: TensorVariable
    b: TensorVariable
    c: TensorVariable
    d: TensorVariable


class Rotation(NamedTuple):
    """Rotations ``[[cosine, sine], [-sine, cosine]]``."""

    cosine: TensorVariable
    sine: TensorVariable


class Eigenvalues(NamedTuple):
    """Eigenvalues ``(mean ± sqrt(square)) / divisor`` of pairs of blocks."""

    mean: TensorVariable
    square: TensorVariable
    divisor: TensorVariable


def blocks_of(t: TensorVariable, is_first: TensorVariable) -> Block:
    """Return blocks along the diagonal, scaled to a largest element near one."""
    d = diagonals(t)
    following = pt.concatenate([d[:, 1:], pt.zeros_like(d[:, :1])], axis=1)
    found = [
        pt.switch(is_first, x, 0.0) for x in (d, upper_diagonal(t), lower_diagonal(t), following)
    ]
    largest = nonzero(pt.abs(pt.stack(found)).max(axis=0))
    return Block(*(x / largest for x in found))


def rounding_errors(b: TensorVariable) -> TensorVariable:
    """Return the largest singular values of B that count as zero, so that eigenvalues are infinite.

    They are a few rounding errors of the norm.
    """
    return _SMALL * pt.sqrt((b * b).sum(axis=(1, 2)))


def eigenvalues(a: Block, b: Block) -> Eigenvalues:
    """Return the eigenvalues of pairs of blocks, as those of ``A @ adjugate(B)``."""
    first, second = a.a * b.d - a.b * b.c, a.d * b.a - a.c * b.b
    beside, below = a.b * b.a - a.a * b.b, a.c * b.d - a.d * b.c
    half = 0.5 * (first - second)
    return Eigenvalues(0.5 * (first + second), half * half + beside * below, b.a * b.d - b.b * b.c)


@operation("(b,n,n),(b,n,n),(b,n,n),(b,n,n)->(b,n,n),(b,n,n),(b,n,n),(b,n,n)")
def standard_pencil(
    a: TensorVariable, b: TensorVariable, qt: TensorVariable, z: TensorVariable
) -> list[TensorVariable]:
    """Return pencils whose blocks have complex eigenvalues and diagonal, positive blocks of B.

    Blocks with real eigenvalues become triangular. No diagonal element of B is negative.
    """
    is_first = pt.neq(lower_diagonal(a), 0.0)
    of_a, of_b = blocks_of(a, is_first), blocks_of(b, is_first)
    found = eigenvalues(of_a, of_b)
    largest = pt.abs(pt.stack([diagonals(b), ahead(diagonals(b)), upper_diagonal(b)])).max(axis=0)
    is_infinite = pt.le(largest * pt.abs(found.divisor), rounding_errors(b)[:, None])
    is_complex = is_first & ~is_infinite & pt.lt(found.square, 0.0)
    split, singular = _split(of_a, of_b, found, is_infinite), _singular(of_b)
    left, right = (
        Rotation(*(pt.switch(is_complex, x, y) for x, y in zip(one, other, strict=True)))
        for one, other in zip(singular, split, strict=True)
    )
    turn = rotations(left, is_first)
    a, b = pt.matmul(turn, a), pt.matmul(turn, b)
    turned = rotations(right, is_first).mT
    b = pt.matmul(b, turned)
    turned = turned * pt.switch(pt.lt(diagonals(b), 0.0), -1.0, 1.0)[:, None]
    index = pt.arange(a.shape[1])
    row, column = index[:, None], index[None, :]
    is_pair = pt.eq(row, column + 1) & is_complex[:, None, :]
    a = pt.switch(pt.gt(row, column) & ~is_pair, 0.0, pt.matmul(a, turned))
    b = b * pt.switch(pt.lt(diagonals(b), 0.0), -1.0, 1.0)[:, None]
    is_zero = pt.gt(row, column) | (pt.eq(row + 1, column) & is_complex[:, :, None])
    b = pt.switch(is_zero, 0.0, b)
    return [a, b, pt.matmul(turn, qt), pt.matmul(z, turned)]


def rotations(rotation: Rotation, is_first: TensorVariable) -> TensorVariable:
    """Return matrices that rotate the rows of blocks, for rotations in their first rows."""
    cosine = pt.switch(is_first, rotation.cosine, 1.0)
    sine = pt.switch(is_first, rotation.sine, 0.0)
    diagonal = pt.switch(behind(is_first), behind(cosine), cosine)
    index = pt.arange(cosine.shape[1])
    row, column = index[:, None], index[None, :]
    matrix = pt.switch(pt.eq(row, column), diagonal[:, :, None], 0.0)
    matrix = pt.switch(pt.eq(row + 1, column), sine[:, :, None], matrix)
    return pt.switch(pt.eq(row, column + 1), -sine[:, None, :], matrix)


def _split(
    a: Block, b: Block, found: Eigenvalues, is_infinite: TensorVariable
) -> tuple[Rotation, Rotation]:
    """Return rotations of rows and columns that make blocks with real eigenvalues triangular.

    The first column becomes an eigenvector, as in LAPACK's ``dlagv2``: where B is singular, one
    that B maps to zero.
    """
    root = pt.sqrt(pt.maximum(found.square, 0.0))
    larger = found.mean + pt.switch(pt.lt(found.mean, 0.0), -root, root)
    alpha = pt.switch(is_infinite, 1.0, larger)
    beta = pt.switch(is_infinite, 0.0, found.divisor)
    s = Block(*(beta * x - alpha * y for x, y in zip(a, b, strict=True)))
    is_above = pt.ge(pt.abs(s.a) + pt.abs(s.b), pt.abs(s.c) + pt.abs(s.d))
    right = _unit(pt.switch(is_above, s.b, s.d), -pt.switch(is_above, s.a, s.c))
    of_a, of_b = (_image(x, right) for x in (a, b))
    is_larger = pt.ge(pt.abs(of_a[0]) + pt.abs(of_a[1]), pt.abs(of_b[0]) + pt.abs(of_b[1]))
    left = _unit(*(pt.switch(is_larger, x, y) for x, y in zip(of_a, of_b, strict=True)))
    return left, right


def _image(block: Block, x: Rotation) -> tuple[TensorVariable, TensorVariable]:
    return block.a * x.cosine + block.b * x.sine, block.c * x.cosine + block.d * x.sine


def _unit(x: TensorVariable, y: TensorVariable) -> Rotation:
    """Return vectors of length one, the first unit vector for zeros."""
    size = nonzero(length(x, y))
    is_zero = pt.eq(x, 0.0) & pt.eq(y, 0.0)
    return Rotation(pt.switch(is_zero, 1.0, x / size), y / size)


def _singular(b: Block) -> tuple[Rotation, Rotation]:
    """Return rotations of rows and columns that make blocks diagonal, with the larger first."""
    turn = _unit(b.a + b.d, b.c - b.b)
    first = turn.cosine * b.a + turn.sine * b.c
    beside = turn.cosine * b.b + turn.sine * b.d
    second = turn.cosine * b.d - turn.sine * b.b
    double = _unit(first - second, 2.0 * beside)
    # The half angle is computed by its larger part, which is a root of a sum without cancellation.
    large = pt.sqrt(0.5 * (1.0 + pt.abs(double.cosine)))
    small = 0.5 * double.sine / large
    is_small = pt.ge(double.cosine, 0.0)
    right = Rotation(pt.switch(is_small, large, small), pt.switch(is_small, small, large))
    left = Rotation(
        right.cosine * turn.cosine - right.sine * turn.sine,
        right.cosine * turn.sine + right.sine * turn.cosine,
    )
    return left, right
