"""The order of eigenvalues in real Schur forms of pencils."""

import numpy as np
import pytensor.tensor as pt
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.linalg.eigenvalue_order import (
    Exchanges,
    exchanges,
    matrix,
    new_pairs,
    turned_to,
    turns,
    windows,
)
from pytensor_onnx.functions.linalg.standard_blocks import behind
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.registry import define
from pytensor_onnx.ops.linalg.factorisations import OrderPencil, StandardPencil

# Elements that an exchange may leave below the blocks, relative to the matrix.
_NEGLIGIBLE = 30 * np.finfo("float64").eps


@define(OrderPencil, OrderPencil.gufunc_signature)
def ordered_pencil(
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
        results = StandardPencil()(*for_each, pt.matmul(left, qt), pt.matmul(z, right))
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
