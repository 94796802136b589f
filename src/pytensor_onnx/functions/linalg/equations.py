"""Matrix equations and the matrix exponential."""

from collections.abc import Callable, Sequence
from math import factorial
from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.raise_op import CheckAndRaise
from pytensor.scan.utils import until
from pytensor.tensor.linalg.products import Expm
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
from pytensor_onnx.functions.linalg.blocks import (
    ahead,
    as_float,
    behind,
    checked_size,
    diagonals,
    finite,
    flat,
    lower_diagonal,
    power_of_two,
    unflat,
    upper_diagonal,
)
from pytensor_onnx.functions.linalg.cholesky import pair_inverse
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.operation import operation
from pytensor_onnx.functions.registry import define, own_signature
from pytensor_onnx.functions.shape import zeros
from pytensor_onnx.ops.linalg.complex_matrices import OF_PARTS

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


@define(OF_PARTS[TRSYL], own_signature)
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


# Doublings, enough for a closed loop with eigenvalues up to 1 - 1e-14.
_DOUBLINGS = 60
# The power of the closed loop below which the solution stays the same.
_VANISHING = np.float64(1e-30)
# The residual of a solution, relative to the terms of the equation.
_RESIDUAL = 1e-6


def _riccati_of_scipy(*matrices: np.ndarray) -> np.ndarray:
    import scipy.linalg  # type: ignore[import-untyped]

    try:
        return np.asarray(scipy.linalg.solve_discrete_are(*matrices))
    except np.linalg.LinAlgError:
        return np.full_like(matrices[0], np.nan)
    except ValueError as error:
        if "symmetric" not in str(error):
            raise
        return np.full_like(matrices[0], np.nan)


@operation("(m,m),(m,n),(m,m),(n,n)->(m,m)", reference=_riccati_of_scipy)
def discrete_riccati(
    a: TensorVariable, b: TensorVariable, q: TensorVariable, r: TensorVariable
) -> TensorVariable:
    """Stabilising solution of ``A' X A - X - A' X B (R + B' X B)⁻¹ B' X A + Q = 0``.

    E. K.-W. Chu, H.-Y. Fan, W.-W. Lin and C.-S. Wang, Structure-preserving algorithms for periodic
    discrete-time algebraic Riccati equations, International Journal of Control 77, 2004: each step
    squares the closed loop. One step of Newton's method, whose equation is solved by doubling too,
    corrects the solution. All elements are NaN where there is no stabilising solution, where R is
    singular, and where Q or R is not symmetric. float32 is computed in float64.

    Examples
    --------
    >>> from pytensor_onnx import compile_onnx
    >>> a, b, q, r = pt.matrices("abqr")
    >>> x = pt.linalg.solve_discrete_are(a, b, q, r)
    >>> solve = compile_onnx([a, b, q, r], x, verify=False)
    >>> solve([[1.0]], [[1.0]], [[1.0]], [[1.0]]).round(6)
    array([[1.618034]])
    """
    m, n = checked_size(a, "expected square matrix"), checked_size(r, "expected square matrix")
    fits = [
        pt.eq(b.shape[-2], m),
        pt.eq(b.shape[-1], n),
        pt.eq(q.shape[-2], m),
        pt.eq(q.shape[-1], m),
    ]
    m = CheckAndRaise(ValueError, "incompatible dimensions")(m, pt.all(pt.stack(fits)))
    valid, (wide, inputs, costs, weights) = _finite([flat(x) for x in (a, b, q, r)])
    batch = wide.shape[0]
    both = [costs.reshape((batch, 1, m * m)), weights.reshape((batch, 1, n * n))]
    scale = power_of_two(pt.concatenate(both, axis=2), axis=(1, 2))
    costs, weights = costs * scale, weights * scale
    start = pt.matmul(inputs, pt.linalg.solve(weights, inputs.mT, b_ndim=2))
    x = _doubled(wide, start, costs, m)
    gain = _gain(wide, inputs, weights, x)
    closed = wide - pt.matmul(inputs, gain)
    x = _summed(closed, costs + pt.matmul(gain.mT, pt.matmul(weights, gain)))
    x = 0.5 * (x + x.mT)
    valid = valid + _checked(wide, inputs, costs, weights, x)
    return unflat((x / scale + valid).astype(a.type.dtype), a, m, m)


def _finite(
    operands: Sequence[TensorVariable],
) -> tuple[TensorVariable, list[TensorVariable]]:
    """Return a summand of the results, and the operands in float64 without other elements."""
    found = [finite(x.astype("float64")) for x in operands]
    return sum(valid for valid, _ in found), [x for _, x in found]


def _doubled(
    a: TensorVariable, g: TensorVariable, h: TensorVariable, m: TensorVariable
) -> TensorVariable:
    """Return the limit of the doubling algorithm, NaN where the closed loop does not vanish."""

    def step(
        a: TensorVariable, g: TensorVariable, h: TensorVariable
    ) -> tuple[list[TensorVariable], until]:
        identity = pt.eye(a.shape[1])
        sides = pt.concatenate([a, g], axis=2)
        solved = pt.linalg.solve(identity + pt.matmul(g, h), sides, b_ndim=2)
        first, second = solved[:, :, : a.shape[1]], solved[:, :, a.shape[1] :]
        g = g + pt.matmul(pt.matmul(a, second), a.mT)
        h = h + pt.matmul(pt.matmul(a.mT, h), first)
        a = pt.matmul(a, first)
        return [a, 0.5 * (g + g.mT), 0.5 * (h + h.mT)], until(~pt.gt(_largest(a), _VANISHING).any())

    a, _, h = iterate(step, [a, g, h], n_steps=_DOUBLINGS)
    return h + pt.switch(pt.le(_largest(a), _VANISHING), 0.0, np.nan)[:, None, None]


def _summed(a: TensorVariable, q: TensorVariable) -> TensorVariable:
    """Return the solution of ``X = A' X A + Q``, the sum of ``A'ᵏ Q Aᵏ``, by doubling."""

    def step(a: TensorVariable, x: TensorVariable) -> tuple[list[TensorVariable], until]:
        x = x + pt.matmul(pt.matmul(a.mT, x), a)
        a = pt.matmul(a, a)
        return [a, x], until(~pt.gt(_largest(a), _VANISHING).any())

    a, x = iterate(step, [a, q], n_steps=_DOUBLINGS)
    return x + pt.switch(pt.le(_largest(a), _VANISHING), 0.0, np.nan)[:, None, None]


def _gain(
    a: TensorVariable, b: TensorVariable, r: TensorVariable, x: TensorVariable
) -> TensorVariable:
    """Return the feedback ``(R + B' X B)⁻¹ B' X A``."""
    across = pt.matmul(b.mT, x)
    return pt.linalg.solve(r + pt.matmul(across, b), pt.matmul(across, a), b_ndim=2)


def _checked(
    a: TensorVariable,
    b: TensorVariable,
    q: TensorVariable,
    r: TensorVariable,
    x: TensorVariable,
) -> TensorVariable:
    """Return zero for solutions of the equation, and NaN for other matrices."""
    along = pt.matmul(pt.matmul(a.mT, x), a)
    lost = pt.matmul(pt.matmul(pt.matmul(a.mT, x), b), _gain(a, b, r, x))
    residual = _largest(along - x - lost + q)
    terms = _largest(along) + _largest(lost) + _largest(q) + _largest(x)
    skew = _largest(r - r.mT)
    fits = pt.le(residual, _RESIDUAL * terms) & pt.le(skew, _RESIDUAL * _largest(r))
    return pt.switch(fits, 0.0, np.nan)[:, None, None]


def _largest(x: TensorVariable) -> TensorVariable:
    """Return the largest magnitude of each matrix, zero if it has no elements."""
    padded = pt.concatenate([pt.abs(x), zeros((x.shape[0], 1, x.shape[2]))], axis=1)
    padded = pt.concatenate([padded, zeros((x.shape[0], x.shape[1] + 1, 1))], axis=2)
    return padded.max(axis=(1, 2))


# Coefficients of the numerator of the diagonal Padé approximant of degree 13, equation 10.33.
_PADE = [float(factorial(26 - k) // (factorial(13 - k) * factorial(k))) for k in range(14)]
# Largest norm for which the approximant is exact in float64.
_RADIUS = 4.25
_SQUARINGS = 1100


@define(Expm, "(m,m)->(m,m)")
def expm(a: TensorVariable) -> TensorVariable:
    """Matrix exponential by scaling and squaring, with a Padé approximant of degree 13.

    N. J. Higham, Functions of Matrices, SIAM 2008, algorithm 10.20. Each matrix of a batch has its
    own scale. All elements are NaN where one is not finite. float32 is computed in float64.

    Examples
    --------
    >>> from pytensor_onnx import compile_onnx
    >>> x = pt.matrix("x")
    >>> compile_onnx([x], pt.linalg.expm(x))([[0.0, 1.0], [0.0, 0.0]]).round(12)
    array([[1., 1.],
           [0., 1.]])
    """
    (a,) = as_float(a)
    n = checked_size(a, "expected a square matrix")
    # The sizes are read after their check.
    matrices = flat(a)[:, :n]
    valid, x = finite(matrices.astype("float64"))
    sums = pt.concatenate([pt.abs(x).sum(axis=1), pt.zeros((x.shape[0], 1))], axis=1)
    norm = sums.max(axis=1)
    squarings = pt.ceil(pt.log2(pt.maximum(norm / _RADIUS, 1.0)))
    squarings = pt.clip(squarings, 0.0, float(_SQUARINGS))[:, None, None]
    numerator, denominator = _pade(x * 0.5**squarings, n)
    if a.type.ndim == 2:
        # One matrix is eliminated by blocks, a batch column by column.
        approximant = pt.linalg.solve(denominator[0], numerator[0], b_ndim=2)[None]
    else:
        approximant = pt.linalg.solve(denominator, numerator, b_ndim=2)

    def step(k: TensorVariable, x: TensorVariable, count: TensorVariable) -> list[TensorVariable]:
        return [pt.switch(pt.lt(k, count), pt.matmul(x, x), x)]

    counts = pt.concatenate([squarings[:, 0, 0], pt.zeros((1,))])
    n_steps = counts.max().astype("int64")
    (result,) = iterate(
        step, [approximant], [squarings], n_steps=n_steps, sequences=[pt.arange(n_steps)]
    )
    result = (result + valid).astype(a.type.dtype)
    return unflat(result, a, n, n)


def _pade(x: TensorVariable, n: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """Return both parts of the diagonal Padé approximant of degree 13 of the exponential."""
    b = _PADE
    identity = pt.eq(pt.arange(n)[:, None], pt.arange(n)[None, :]).astype("float64")
    x2 = pt.matmul(x, x)
    x4 = pt.matmul(x2, x2)
    x6 = pt.matmul(x4, x2)

    def half(k: int) -> TensorVariable:
        high = pt.matmul(x6, b[k + 12] * x6 + b[k + 10] * x4 + b[k + 8] * x2)
        return high + b[k + 6] * x6 + b[k + 4] * x4 + b[k + 2] * x2 + b[k] * identity

    even, odd = half(0), pt.matmul(x, half(1))
    return even + odd, even - odd
