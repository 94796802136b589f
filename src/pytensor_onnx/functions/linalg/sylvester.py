"""Sylvester's equation of quasi-triangular real matrices, and of triangular complex ones."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.linalg.solvers.linear_control import TRSYL
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.complex.complex_arithmetic import (
    Numbers,
    Parts,
    each,
    extent,
    grouped,
    listed,
    quotient,
)
from pytensor_onnx.functions.linalg.matrix_batches import diagonals, flat, unflat
from pytensor_onnx.functions.linalg.matrix_blocks import checked_size
from pytensor_onnx.functions.linalg.pair_inverse import pair_inverse
from pytensor_onnx.functions.linalg.scaling import finite, power_of_two
from pytensor_onnx.functions.linalg.standard_blocks import (
    ahead,
    behind,
    lower_diagonal,
    upper_diagonal,
)
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.registry import define, own_signature
from pytensor_onnx.ops.linalg.complex_matrices import SylvesterOfParts

_EPS = np.finfo("float64").eps


@define(TRSYL, own_signature)
def quasi_triangular_sylvester(
    a: TensorVariable, b: TensorVariable, c: TensorVariable
) -> TensorVariable:
    """Solution of ``A @ X + X @ B = C`` for matrices in standard Schur form, as LAPACK's ``trsyl``.

    Blocks of X that depend on each other by the same number of steps are found together: in each
    step one more diagonal of blocks, from the lower left corner on, by closed formulas. Where both
    matrices have blocks of two rows, the solution is refined once. All elements are NaN where an
    eigenvalue of A and one of -B are equal up to rounding errors, so that there is no solution or
    more than one; LAPACK changes the eigenvalues there. float32 is computed in float64.

    Examples
    --------
    >>> from pytensor_onnx import compile_onnx
    >>> a, b, c = pt.matrices("abc")
    >>> solve = compile_onnx([a, b, c], pt.linalg.solve_sylvester(a, b, c))
    >>> solve([[1.0, 2.0], [-2.0, 1.0]], [[1.0]], [[4.0], [0.0]]).round(6)
    array([[1.],
           [1.]])
    """
    dtype = np.result_type(a.type.dtype, b.type.dtype, c.type.dtype).name
    m, n = _checked_sizes(a, b, c)
    a, b, wide = (flat(x).astype("float64") for x in (a, b, c))
    return unflat(solved(a, b, wide, m, n).astype(dtype), c, m, n)


@define(SylvesterOfParts, own_signature)
def triangular_sylvester(*operands: TensorVariable) -> list[TensorVariable]:
    """Parts of the solution of ``A @ X + X @ B = C`` for upper triangular matrices A and B.

    Each step finds one more diagonal of X. Equations without one solution are NaN, as with real
    matrices, and complex64 is computed in float64.

    Examples
    --------
    >>> import pytensor
    >>> a, b, c = (pt.zmatrix(name) for name in "abc")
    >>> solve = pytensor.function([a, b, c], pt.linalg.solve_sylvester(a, b, c), mode="ONNX")
    >>> solve([[1j, 2.0], [0.0, 1.0]], [[1.0]], [[1 + 1j], [0.0]]).round(6)
    array([[1.+0.j],
           [0.+0.j]])
    """
    like = operands[4]
    m, n = _checked_sizes(operands[0], operands[2], like)
    a, b, c = grouped([flat(x).astype("float64") for x in operands], 2)
    a, b, scale, valid = _scaled(a, b, c.real.shape[0], m, n)
    a, b = each(pt.triu, a), each(pt.triu, b)
    rows, columns = each(diagonals, a), each(diagonals, b)
    sums = rows[:, :, None] + columns[:, None, :]
    one = Parts(pt.ones_like(sums.real), pt.zeros_like(sums.real))
    front = m - pt.arange(m)[:, None] + pt.arange(n)
    inverse = listed(quotient(one, sums))
    x = _by_fronts(c, a, b, front, pt.maximum(m + n - 1, 0), inverse, _multiplied)
    is_regular = pt.gt(extent(sums), _EPS).all(axis=(1, 2))
    valid += pt.switch(is_regular, 0.0, np.nan)[:, None, None]
    return [unflat((part * scale + valid).astype(like.type.dtype), like, m, n) for part in x]


def _multiplied(inverse: Sequence[TensorVariable], x: Parts) -> Parts:
    return x * Parts(*inverse)


def _checked_sizes(
    a: TensorVariable, b: TensorVariable, c: TensorVariable
) -> tuple[TensorVariable, TensorVariable]:
    m, n = checked_size(a, "expected square matrix"), checked_size(b, "expected square matrix")
    fits = pt.eq(c.shape[-2], m) & pt.eq(c.shape[-1], n)
    return CheckAndRaise(ValueError, "incompatible dimensions")(m, fits), n


def _scaled(
    a: Numbers, b: Numbers, batch: TensorVariable, m: TensorVariable, n: TensorVariable
) -> tuple[Numbers, Numbers, TensorVariable, TensorVariable]:
    """Return matrices of a scale near one, the scale, and a summand of the results."""
    width = len(listed(a))
    valid, parts = zip(*map(finite, listed(a, b)), strict=True)
    sizes = [m] * width + [n] * width
    both = [x.reshape((batch, 1, k * k)) for x, k in zip(parts, sizes, strict=True)]
    scale = power_of_two(pt.concatenate(both, axis=2), axis=(1, 2))
    a, b = grouped([x * scale for x in parts], width)
    first, *others = valid
    return a, b, scale, sum(others, first)


def solved(
    a: TensorVariable,
    b: TensorVariable,
    c: TensorVariable,
    m: TensorVariable,
    n: TensorVariable,
) -> TensorVariable:
    """Return the solutions for matrices of m and n rows with one batch axis, in float64."""
    a, b, scale, valid = _scaled(a, b, c.shape[0], m, n)
    rows, columns = _pairs(a), _pairs(b)
    inverse, is_regular = _inverse(rows, columns)
    front = pt.gt(pt.arange(m)[None, :], pt.arange(m)[:, None]) & rows.is_begin[:, None, :]
    begins = pt.le(pt.arange(n)[None, :], pt.arange(n)[:, None]) & columns.is_begin[:, None, :]
    front = front.sum(axis=2)[:, :, None] + begins.sum(axis=2)[:, None, :]
    count = pt.concatenate([front.flatten(), pt.ones((1,), "int64")]).max()

    def refine(
        x: TensorVariable,
        a: TensorVariable,
        b: TensorVariable,
        c: TensorVariable,
        front: TensorVariable,
        count: TensorVariable,
        *inverse: TensorVariable,
    ) -> list[TensorVariable]:
        rest = c - pt.matmul(a, x) - pt.matmul(x, b)
        return [x + _by_fronts(rest, a, b, front, count, inverse, _applied)]

    has_pairs = (~rows.is_begin).any() & (~columns.is_begin).any()
    (x,) = iterate(
        refine,
        [pt.zeros_like(c)],
        [a, b, c, front, count, *inverse],
        n_steps=1 + has_pairs.astype("int64"),
    )
    return x * scale + (valid + pt.switch(is_regular, 0.0, np.nan)[:, None, None])


def _by_fronts(
    rest: Numbers,
    a: Numbers,
    b: Numbers,
    front: TensorVariable,
    count: TensorVariable,
    inverse: Sequence[TensorVariable],
    applied: Callable[[Sequence[TensorVariable], Numbers], Numbers],
) -> Numbers:
    """Return the solution, found by one front of blocks after another.

    Fronts have the numbers 1, 2, …, from the lower left corner on. Blocks whose others are found
    are products of ``applied`` with the inverse.
    """
    width = len(listed(rest))

    def step(k: TensorVariable, *values: TensorVariable) -> list[TensorVariable]:
        x, rest, a, b = grouped(values[: 4 * width], width)
        front, *inverse = values[4 * width :]
        is_here = pt.eq(front, k)
        found = each(lambda part: pt.switch(is_here, part, 0.0), applied(inverse, rest))
        return listed(x + found, rest - a @ found - found @ b)

    found = iterate(
        step,
        listed(each(pt.zeros_like, rest), rest),
        [*listed(a, b), front, *inverse],
        n_steps=count,
        sequences=[pt.arange(count) + 1],
    )
    return grouped(found, width)[0]


class _Pairs(NamedTuple):
    """The diagonal of matrices in standard Schur form, and its blocks of two rows.

    Attributes
    ----------
    diagonal
        The real parts of the eigenvalues.
    width
        Their imaginary parts, positive.
    to_next, to_last
        Elements of blocks beside the diagonal: in the first row, and in the second; else zero.
    is_begin
        Whether a row is the first of its block.
    """

    diagonal: TensorVariable
    width: TensorVariable
    to_next: TensorVariable
    to_last: TensorVariable
    is_begin: TensorVariable


def _pairs(t: TensorVariable) -> _Pairs:
    below = lower_diagonal(t)
    above = pt.switch(pt.neq(below, 0.0), upper_diagonal(t), 0.0)
    width = pt.sqrt(pt.abs(above)) * pt.sqrt(pt.abs(below))
    before = behind(below)
    return _Pairs(diagonals(t), width + behind(width), above, before, pt.eq(before, 0.0))


class _Inverse(NamedTuple):
    """Factors of the inverse for blocks, and the elements of both matrices beside the diagonal."""

    alpha: TensorVariable
    beta: TensorVariable
    gamma: TensorVariable
    delta: TensorVariable
    next_row: TensorVariable
    last_row: TensorVariable
    next_column: TensorVariable
    last_column: TensorVariable


def _inverse(rows: _Pairs, columns: _Pairs) -> tuple[_Inverse, TensorVariable]:
    """Return the inverses for all blocks, and whether all inverses of a matrix exist."""
    inverse = pair_inverse(
        rows.diagonal[:, :, None] + columns.diagonal[:, None, :],
        rows.width[:, :, None],
        columns.width[:, None, :],
    )
    factors = _Inverse(
        inverse.alpha,
        inverse.beta,
        inverse.gamma,
        inverse.delta,
        rows.to_next[:, :, None],
        rows.to_last[:, :, None],
        # A column is multiplied by the elements of its own, which are beside the diagonal.
        ahead(columns.to_last)[:, None, :],
        behind(columns.to_next)[:, None, :],
    )
    return factors, pt.gt(inverse.distance, _EPS).all(axis=(1, 2))


def _applied(factors: Sequence[TensorVariable], x: TensorVariable) -> TensorVariable:
    """Return the products of blocks and their inverses."""
    inverse = _Inverse(*factors)
    zero = pt.zeros_like(x[:, :1])
    padded = pt.concatenate([zero, x, zero], axis=1)
    y = inverse.next_row * padded[:, 2:] + inverse.last_row * padded[:, :-2]
    across = inverse.gamma * x + inverse.delta * y
    zero = pt.zeros_like(x[:, :, :1])
    padded = pt.concatenate([zero, across, zero], axis=2)
    z = inverse.next_column * padded[:, :, 2:] + inverse.last_column * padded[:, :, :-2]
    return inverse.alpha * x + inverse.beta * y + z
