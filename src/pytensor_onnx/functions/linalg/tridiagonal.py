"""LU factors of tridiagonal matrices, and systems with them."""

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.tensor.linalg.solvers.tridiagonal import (
    LUFactorTridiagonal,
    SolveLUFactorTridiagonal,
)
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.linalg.batches import as_columns, from_columns
from pytensor_onnx.functions.linalg.blocks import as_float, poison, zero
from pytensor_onnx.functions.linalg.pivoting import SMALLEST
from pytensor_onnx.functions.registry import define, own_signature


@define(LUFactorTridiagonal, "(dl),(d),(dl)->(dl),(d),(dl),(du2),(d)")
def tridiagonal_lu_factor(
    dl: TensorVariable, d: TensorVariable, du: TensorVariable
) -> list[TensorVariable]:
    """LU factors of tridiagonal matrices with partial pivoting, as LAPACK's ``gttrf``.

    Two rows are exchanged if the first has the smaller pivot, which fills a second diagonal above
    the main one. The loop has a step for each row, in all matrices of a batch.

    Examples
    --------
    >>> from pytensor.tensor.linalg.solvers.tridiagonal import tridiagonal_lu_factor
    >>> from pytensor_onnx import compile_onnx
    >>> x = pt.matrix("x")
    >>> compile_onnx([x], tridiagonal_lu_factor(x)[1], verify=False)([[1.0, 3.0], [2.0, 2.0]])
    array([2., 2.])
    """
    dl, d, du = (pt.moveaxis(diagonal, -1, 0) for diagonal in as_float(dl, d, du))
    dtype = d.type.dtype
    above = pt.concatenate([du, pt.zeros_like(d[:1])], axis=0)

    def step(
        row: TensorVariable, pivot: TensorVariable, right: TensorVariable
    ) -> list[TensorVariable]:
        below, diagonal, beside = row[0], row[1], row[2]
        swaps = ~(pt.abs(pivot) >= pt.abs(below))
        large, small = pt.switch(swaps, below, pivot), pt.switch(swaps, pivot, below)
        # The smallest number changes no other one than zero.
        multiplier = small / (large + np.array(SMALLEST[dtype]))
        first, second = pt.switch(swaps, diagonal, right), pt.switch(swaps, right, diagonal)
        following = second - multiplier * first
        filled = pt.switch(swaps, beside, zero(dtype))
        stored = [multiplier, large, first, filled, swaps.astype(dtype), following]
        return [following, pt.switch(swaps, -multiplier * beside, beside), pt.stack(stored)]

    *_, rows = pytensor.scan(
        step,
        [pt.stack([dl, d[1:], above[1:]], axis=1)],
        [d[0], above[0], None],
        return_updates=False,
        strict=True,
    )
    last = pt.concatenate([d[:1], rows[:, 5]], axis=0)[-1:]
    swaps = pt.moveaxis(pt.concatenate([rows[:, 4], pt.zeros_like(d[:1])], axis=0), 0, -1)
    results = [
        rows[:, 0],
        pt.concatenate([rows[:, 1], last], axis=0),
        rows[:, 2],
        rows[:, 3][:-1],
    ]
    # LAPACK counts these from one.
    pivots = swaps.astype("int32") + pt.arange(1, d.shape[0] + 1).astype("int32")
    return [*(pt.moveaxis(result, 0, -1) for result in results), pivots]


@define(SolveLUFactorTridiagonal, own_signature)
def tridiagonal_lu_solve(
    dl: TensorVariable,
    d: TensorVariable,
    du: TensorVariable,
    du2: TensorVariable,
    ipiv: TensorVariable,
    b: TensorVariable,
    *,
    b_ndim: int,
    transposed: bool,
) -> TensorVariable:
    """Solution of systems with LU factors of tridiagonal matrices, as LAPACK's ``gttrs``.

    Examples
    --------
    >>> from pytensor.tensor.linalg.solvers import tridiagonal
    >>> from pytensor_onnx import compile_onnx
    >>> x, b = pt.matrix("x"), pt.vector("b")
    >>> factors = tridiagonal.tridiagonal_lu_factor(x)
    >>> solution = tridiagonal.tridiagonal_lu_solve(factors, b, b_ndim=1)
    >>> compile_onnx([x, b], solution, verify=False)([[1.0, 3.0], [2.0, 2.0]], [7.0, 6.0])
    array([1., 2.])
    """
    dl, d, du, du2, b = as_float(dl, d, du, du2, b)
    columns = pt.moveaxis(as_columns(b, b_ndim), -2, 0)
    swaps = pt.neq(ipiv, pt.arange(1, ipiv.shape[-1] + 1))
    dl, d, du, du2, swaps = (pt.moveaxis(x, -1, 0)[..., None] for x in (dl, d, du, du2, swaps))
    none = pt.zeros_like(d[:1])
    if transposed:
        # An unknown depends on the two before it.
        first, second = (pt.concatenate([*[none] * k, x], axis=0) for k, x in ((1, du), (2, du2)))
        x = _substituted(columns, d, first, second[: d.shape[0]])
        x = _exchanged_up(x, dl, swaps)
    else:
        x = _exchanged_down(columns, dl, swaps)
        first, second = (pt.concatenate([x, *[none] * k], axis=0) for k, x in ((1, du), (2, du2)))
        second = second[: d.shape[0]]
        x = _substituted(x[::-1], d[::-1], first[::-1], second[::-1])[::-1]
    return from_columns(pt.moveaxis(x, 0, -2), b_ndim)


def solved_tridiagonal(a: TensorVariable, b: TensorVariable, n: TensorVariable) -> TensorVariable:
    """Return the solutions of tridiagonal systems, read from the three diagonals of each matrix.

    A last equation, of one more unknown alone, makes the loops have a first row for empty systems
    too. All unknowns are NaN if a pivot is zero.
    """
    dtype = a.type.dtype
    below, diagonal, above = (
        pt.diagonal(a, offset=offset, axis1=-2, axis2=-1) for offset in (-1, 0, 1)
    )
    batch = [a.shape[axis] for axis in range(a.type.ndim - 2)]
    none = pt.zeros((*batch, 1), dtype)
    below, above = (pt.concatenate([x, none], axis=-1)[..., :n] for x in (below, above))
    diagonal = pt.concatenate([diagonal, pt.ones_like(none)], axis=-1)
    sides = pt.concatenate([b, pt.zeros((*batch, 1, b.shape[-1]), dtype)], axis=-2)
    dl, d, du, du2, pivots = tridiagonal_lu_factor(below, diagonal, above)
    x = tridiagonal_lu_solve(dl, d, du, du2, pivots, sides, b_ndim=2, transposed=False)
    regular = pt.neq(d, 0).all(axis=-1)
    return x[..., :n, :] + poison(regular, dtype)[..., None, None]


def _substituted(
    b: TensorVariable, d: TensorVariable, first: TensorVariable, second: TensorVariable
) -> TensorVariable:
    """Substitute rows in order, with the coefficients of the two rows found before each."""

    def step(
        b: TensorVariable,
        d: TensorVariable,
        first: TensorVariable,
        second: TensorVariable,
        last: TensorVariable,
        before: TensorVariable,
    ) -> list[TensorVariable]:
        x = (b - first * last - second * before) / d
        return [x, last, x]

    start = pt.zeros_like(b[0])
    *_, x = pytensor.scan(
        step, [b, d, first, second], [start, start, None], return_updates=False, strict=True
    )
    return x


def _exchanged_down(b: TensorVariable, dl: TensorVariable, swaps: TensorVariable) -> TensorVariable:
    """Apply the exchanges and multipliers of the elimination, from the first row on."""

    def step(
        following: TensorVariable,
        multiplier: TensorVariable,
        swaps: TensorVariable,
        row: TensorVariable,
    ) -> list[TensorVariable]:
        first, second = pt.switch(swaps, following, row), pt.switch(swaps, row, following)
        return [second - multiplier * first, first]

    rests, rows = pytensor.scan(
        step, [b[1:], dl, swaps[:-1]], [b[0], None], return_updates=False, strict=True
    )
    last = pt.concatenate([b[:1], rests], axis=0)[-1:]
    return pt.concatenate([rows, last], axis=0)


def _exchanged_up(b: TensorVariable, dl: TensorVariable, swaps: TensorVariable) -> TensorVariable:
    """Apply them transposed, from the last row on."""

    def step(
        row: TensorVariable,
        multiplier: TensorVariable,
        swaps: TensorVariable,
        below: TensorVariable,
    ) -> list[TensorVariable]:
        rest = row - multiplier * below
        return [pt.switch(swaps, below, rest), pt.switch(swaps, rest, below)]

    firsts, rows = pytensor.scan(
        step,
        [b[:-1][::-1], dl[::-1], swaps[:-1][::-1]],
        [b[-1], None],
        return_updates=False,
        strict=True,
    )
    first = pt.concatenate([b[-1:], firsts], axis=0)[-1:]
    return pt.concatenate([first, rows[::-1]], axis=0)
