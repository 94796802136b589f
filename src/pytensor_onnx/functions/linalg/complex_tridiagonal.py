"""LU factors of complex tridiagonal matrices, and systems with them, by their parts."""

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.complex_numbers.parts import Parts, chosen, extent, quotient
from pytensor_onnx.functions.linalg.batches import as_columns, from_columns
from pytensor_onnx.functions.registry import define, own_signature
from pytensor_onnx.ops.complex_matrices import (
    LUFactorTridiagonalOfParts,
    SolveLUFactorTridiagonalOfParts,
)


@define(LUFactorTridiagonalOfParts, own_signature)
def tridiagonal_lu_factor(*diagonals: TensorVariable) -> list[TensorVariable]:
    """Parts of LU factors of complex tridiagonal matrices, as LAPACK's ``zgttrf``.

    Rows are exchanged by the sums of the magnitudes of both parts.

    Examples
    --------
    >>> import pytensor
    >>> from pytensor.tensor.linalg.solvers.tridiagonal import tridiagonal_lu_factor
    >>> z = pt.zmatrix("z")
    >>> factorise = pytensor.function([z], tridiagonal_lu_factor(z)[1], mode="ONNX")
    >>> factorise([[1.0, 3.0], [2j, 2.0]])
    array([0.+2.j, 3.+1.j])
    """
    first = [pt.moveaxis(x, -1, 0) for x in diagonals]
    dl, d, du = (Parts(*first[i : i + 2]) for i in range(0, 6, 2))
    above = Parts(
        *(pt.concatenate([x, pt.zeros_like(y[:1])], axis=0) for x, y in zip(du, d, strict=True))
    )

    def step(row: TensorVariable, *states: TensorVariable) -> list[TensorVariable]:
        below, diagonal, beside = (Parts(row[i], row[i + 1]) for i in range(0, 6, 2))
        pivot, right = Parts(*states[:2]), Parts(*states[2:])
        swaps = ~(extent(pivot) >= extent(below))
        large, small = chosen(swaps, below, pivot), chosen(swaps, pivot, below)
        multiplier = quotient(small, large)
        above, under = chosen(swaps, diagonal, right), chosen(swaps, right, diagonal)
        following = under - multiplier * above
        zero = pt.zeros_like(beside.real)
        filled = chosen(swaps, beside, Parts(zero, zero))
        right = chosen(swaps, -(multiplier * beside), beside)
        flags = swaps.astype(pivot.real.type.dtype)
        stored = pt.stack([*multiplier, *large, *above, *filled, *following, flags])
        return [*following, *right, stored]

    *_, rows = pytensor.scan(
        step,
        [pt.stack([*dl, *d[1:], *above[1:]], axis=1)],
        [*d[0], *above[0], None],
        return_updates=False,
        strict=True,
    )
    last = [pt.concatenate([x[:1], rows[:, 8 + i]], axis=0)[-1:] for i, x in enumerate(d)]
    swaps = pt.concatenate([rows[:, 10], pt.zeros_like(d.real[:1])], axis=0)
    results = [
        *(rows[:, i] for i in (0, 1)),
        *(pt.concatenate([rows[:, 2 + i], last[i]], axis=0) for i in (0, 1)),
        *(rows[:, i] for i in (4, 5)),
        *(rows[:, i][:-1] for i in (6, 7)),
    ]
    # LAPACK counts these from one.
    pivots = pt.moveaxis(swaps, 0, -1).astype("int32")
    pivots = pivots + pt.arange(1, d.real.shape[0] + 1).astype("int32")
    return [*(pt.moveaxis(result, 0, -1) for result in results), pivots]


@define(SolveLUFactorTridiagonalOfParts, own_signature)
def tridiagonal_lu_solve(
    *operands: TensorVariable, b_ndim: int, transposed: bool
) -> list[TensorVariable]:
    """Parts of solutions of systems with LU factors of complex tridiagonal matrices.

    Examples
    --------
    >>> import pytensor
    >>> from pytensor.tensor.linalg.solvers import tridiagonal
    >>> z, b = pt.zmatrix("z"), pt.zvector("b")
    >>> factors = tridiagonal.tridiagonal_lu_factor(z)
    >>> solution = tridiagonal.tridiagonal_lu_solve(factors, b, b_ndim=1)
    >>> solve = pytensor.function([z, b], solution, mode="ONNX")
    >>> solve([[1.0, 3.0], [2j, 2.0]], [3.0, 2.0]).round(6) + 0
    array([0.+0.j, 1.+0.j])
    """
    *factors, pivots, real, imag = operands
    b = Parts(*(pt.moveaxis(as_columns(x, b_ndim), -2, 0) for x in (real, imag)))
    rows = [pt.moveaxis(x, -1, 0)[..., None] for x in factors]
    dl, d, du, du2 = (Parts(*rows[i : i + 2]) for i in range(0, 8, 2))
    swaps = pt.neq(pivots, pt.arange(1, pivots.shape[-1] + 1))
    swaps = pt.moveaxis(swaps, -1, 0)[..., None]
    none = pt.zeros_like(d.real[:1])
    count = d.real.shape[0]
    before = [none] if transposed else []
    behind = [] if transposed else [none]
    first = Parts(*(pt.concatenate([*before, x, *behind], axis=0) for x in du))
    second = Parts(*(pt.concatenate([*before * 2, x, *behind * 2], axis=0)[:count] for x in du2))
    if transposed:
        # An unknown depends on the two before it.
        x = _exchanged_up(_substituted(b, d, first, second), dl, swaps)
    else:
        b, d, first, second = (z[::-1] for z in (_exchanged_down(b, dl, swaps), d, first, second))
        x = _substituted(b, d, first, second)[::-1]
    return [from_columns(pt.moveaxis(part, 0, -2), b_ndim) for part in x]


def _substituted(b: Parts, d: Parts, first: Parts, second: Parts) -> Parts:
    """Substitute rows in order, with the coefficients of the two rows found before each."""

    def step(*values: TensorVariable) -> list[TensorVariable]:
        b, d, first, second, last, before = (Parts(*values[i : i + 2]) for i in range(0, 12, 2))
        x = _divided(b - first * last - second * before, d)
        return [*x, *last, *x]

    start = [pt.zeros_like(b.real[0])] * 4
    *_, real, imag = pytensor.scan(
        step,
        [*b, *d, *first, *second],
        [*start, None, None],
        return_updates=False,
        strict=True,
    )
    return Parts(real, imag)


def _divided(x: Parts, y: Parts) -> Parts:
    """Return quotients, NaN for a divisor of zero."""
    is_zero = pt.eq(extent(y), 0.0)
    nan = np.full((), np.nan, y.real.type.dtype)
    zero = np.zeros((), y.real.type.dtype)
    found, poison = quotient(x, y), pt.switch(is_zero, nan, zero)
    return Parts(found.real + poison, found.imag + poison)


def _exchanged_down(b: Parts, dl: Parts, swaps: TensorVariable) -> Parts:
    """Apply the exchanges and multipliers of the elimination, from the first row on."""

    def step(*values: TensorVariable) -> list[TensorVariable]:
        following, multiplier = (Parts(*values[i : i + 2]) for i in (0, 2))
        swaps, row = values[4], Parts(*values[5:])
        first, second = chosen(swaps, following, row), chosen(swaps, row, following)
        return [*(second - multiplier * first), *first]

    *rests, real, imag = pytensor.scan(
        step,
        [*b[1:], *dl, swaps[:-1]],
        [*b[0], None, None],
        return_updates=False,
        strict=True,
    )
    lasts = (pt.concatenate([x[:1], y], axis=0)[-1:] for x, y in zip(b, rests, strict=True))
    rows = zip((real, imag), lasts, strict=True)
    return Parts(*(pt.concatenate([x, y], axis=0) for x, y in rows))


def _exchanged_up(b: Parts, dl: Parts, swaps: TensorVariable) -> Parts:
    """Apply them transposed, from the last row on."""

    def step(*values: TensorVariable) -> list[TensorVariable]:
        row, multiplier = (Parts(*values[i : i + 2]) for i in (0, 2))
        swaps, below = values[4], Parts(*values[5:])
        rest = row - multiplier * below
        return [*chosen(swaps, below, rest), *chosen(swaps, rest, below)]

    *firsts, real, imag = pytensor.scan(
        step,
        [*b[:-1][::-1], *dl[::-1], swaps[:-1][::-1]],
        [*b[-1], None, None],
        return_updates=False,
        strict=True,
    )
    tops = (pt.concatenate([x[-1:], y], axis=0)[-1:] for x, y in zip(b, firsts, strict=True))
    rows = zip(tops, (real, imag), strict=True)
    return Parts(*(pt.concatenate([x, y[::-1]], axis=0) for x, y in rows))
