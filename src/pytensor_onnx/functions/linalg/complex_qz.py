"""Generalised Schur forms of pencils of complex matrices."""

import numpy as np
import pytensor.tensor as pt
from pytensor.raise_op import CheckAndRaise
from pytensor.scan.utils import until
from pytensor.tensor.linalg.decomposition.schur import QZ
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.complex.complex_arithmetic import Parts, chosen, extent, quotient
from pytensor_onnx.functions.linalg.blocks import (
    ahead,
    behind,
    checked_size,
    diagonals,
    finite,
    flat,
    lower_diagonal,
    not_empty,
    unflat,
    upper_diagonal,
)
from pytensor_onnx.functions.linalg.chases import (
    COMPLEX,
    Bulges,
    Range,
    Unreduced,
    chased_columns,
    chased_rows,
    last_rows,
    most_sweeps,
    range_of_chase,
    rotation,
    unreduced,
)
from pytensor_onnx.functions.linalg.complex_factors import complex_columns, interleaved
from pytensor_onnx.functions.linalg.complex_schur import wilkinson_shift
from pytensor_onnx.functions.linalg.hessenberg_triangular import (
    complex_hessenberg_triangular,
)
from pytensor_onnx.functions.linalg.pencil_ordering import rounding_errors
from pytensor_onnx.functions.linalg.qz import (
    COSINE,
    NEGLIGIBLE,
    SINE,
    Triangle,
    below_pencils,
    is_nonzero,
    normalised,
    scaled,
    selected,
    unitary,
    with_positive_diagonal,
)
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.operation import operation
from pytensor_onnx.functions.registry import define, own_signature
from pytensor_onnx.ops.linalg.complex_matrices import OF_PARTS

# Elements that an exchange may leave below the diagonal, relative to the matrix.
_NEGLIGIBLE = 30 * np.finfo("float64").eps


@define(OF_PARTS[QZ], own_signature)
def qz(
    a_real: TensorVariable,
    a_imag: TensorVariable,
    b_real: TensorVariable,
    b_imag: TensorVariable,
    *,
    sort: str | None,
    return_eigenvalues: bool,
) -> list[TensorVariable]:
    """Parts of triangular forms ``A = Q @ AA @ Z^H`` and ``B = Q @ BB @ Z^H`` of complex pencils.

    The diagonal of BB is real and not negative. The errors, eigenvalues that are infinite, and
    matrices without a result are those of real pencils.

    Examples
    --------
    >>> import pytensor
    >>> a, b = pt.zmatrix("a"), pt.zmatrix("b")
    >>> _, _, alpha, beta, _, _ = pt.linalg.qz(a, b, return_eigenvalues=True)
    >>> found = pytensor.function([a, b], alpha / beta, mode="ONNX")
    >>> found([[1j, 2.0], [0.0, 3.0]], [[2.0, 0.0], [0.0, 1.0]]).round(6) + 0
    array([0.+0.5j, 3.+0.j ])
    """
    like, dtype = a_real, a_real.type.dtype
    n = checked_size(a_real, "expected square matrix")
    fits = pt.eq(b_real.shape[-1], n) & pt.eq(b_real.shape[-2], n)
    n = CheckAndRaise(ValueError, "incompatible dimensions")(n, fits)
    valid_a, a, scale_a = _scaled(a_real, a_imag)
    valid_b, b, scale_b = _scaled(b_real, b_imag)
    a, b = (Parts(*(not_empty(x, n)[0] for x in parts)) for parts in (a, b))
    size = pt.maximum(n, 1)
    # The eigenvalues are turned, so that none but those of few matrices are infinite.
    rows, z = complex_hessenberg_triangular(
        *(COSINE * x + SINE * y for x, y in zip(a, b, strict=True)),
        *(COSINE * y - SINE * x for x, y in zip(a, b, strict=True)),
    )
    rows, z, failed = complex_triangular_pencil(rows, z)
    h, t, qt = (complex_columns(rows, i * size, (i + 1) * size) for i in range(3))
    is_a, is_b = (is_nonzero(pt.concatenate(list(x), axis=2)) for x in (a, b))
    a = Parts(*(is_a * (COSINE * x - SINE * y) for x, y in zip(h, t, strict=True)))
    b = Parts(*(is_b * (COSINE * y + SINE * x) for x, y in zip(h, t, strict=True)))
    found = _finished(a, b, qt.adjoint(), complex_columns(z, pt.constant(0), size))
    if sort is not None:
        alpha = found.alpha.scaled(1 / scale_a[:, 0])
        first = selected((alpha, found.beta / scale_b[:, 0]), sort)
        *parts, unordered = order_triangular_pencil(*found.a, *found.b, *found.q, *found.z, first)
        found = _finished(*(Parts(*parts[i : i + 2]) for i in range(0, 8, 2)))
        failed = failed + unordered
    valid = valid_a + valid_b + failed[:, None, None]

    def of_matrices(z: Parts, scale: TensorVariable | float = 1.0) -> list[TensorVariable]:
        parts = ((x / scale + valid)[:, :n, :n].astype(dtype) for x in z)
        return [unflat(x, like, n, n) for x in parts]

    def of_numbers(z: Parts, scale: TensorVariable) -> list[TensorVariable]:
        parts = ((x / scale[:, 0] + valid[:, 0])[:, :n].astype(dtype) for x in z)
        return [unflat(x, like, n) for x in parts]

    beta = Parts(found.beta, pt.zeros_like(found.beta))
    eigenvalues = [*of_numbers(found.alpha, scale_a), *of_numbers(beta, scale_b)]
    return [
        *of_matrices(found.a, scale_a),
        *of_matrices(found.b, scale_b),
        *(eigenvalues if return_eigenvalues else []),
        *of_matrices(found.q),
        *of_matrices(found.z),
    ]


def _scaled(
    real: TensorVariable, imag: TensorVariable
) -> tuple[TensorVariable, Parts, TensorVariable]:
    """Return a summand of the results, matrices with norms near one, and their scales."""
    found = [finite(flat(x).astype("float64")) for x in (real, imag)]
    both, scale = scaled(pt.concatenate([x for _, x in found], axis=2))
    n = real.shape[-1]
    return sum(valid for valid, _ in found), Parts(both[:, :, :n], both[:, :, n:]), scale


def _finished(a: Parts, b: Parts, q: Parts, z: Parts) -> Triangle:
    """Return triangular pencils with zeros for rounding errors on the diagonal of B."""
    found = with_positive_diagonal(a, b, q, z)
    negligible = rounding_errors(pt.concatenate(list(found.b), axis=2))
    beta = pt.switch(pt.gt(found.beta, negligible[:, None]), found.beta, 0.0)
    index = pt.arange(beta.shape[1])
    real = pt.switch(pt.eq(index[:, None], index), beta[:, None], found.b.real)
    return found._replace(b=Parts(real, found.b.imag), beta=beta)


@operation(",".join(["(b,n,n)"] * 8) + ",(b,n)->" + "(b,n,n)," * 8 + "(b)")
def order_triangular_pencil(*operands: TensorVariable) -> list[TensorVariable]:
    """Exchange neighbouring eigenvalues of triangular pencils until the selected ones come first.

    An exchange is a rotation of two columns, to an eigenvector of the second eigenvalue, and one of
    two rows (LAPACK's ``ztgex2``). All neighbours in the wrong order change places at once, and the
    others keep their order. An exchange fails where elements below the diagonal do not vanish.

    The operands are the parts of A, B, Q and Z, and one for the rows that come first and zero for
    others. The last result is zero, or NaN where an exchange fails.
    """

    def step(*states: TensorVariable) -> tuple[list[TensorVariable], until]:
        *parts, first, failed = states
        a, b, q, z = (Parts(*parts[i : i + 2]) for i in range(0, 8, 2))
        is_first = pt.gt(first, 0.5)
        starts = ~is_first & pt.gt(ahead(first), 0.5)
        image, vector = _eigenvectors(a, b)
        is_found = pt.gt(extent(image[0]) + extent(image[1]), 0.0)
        left, right = unitary(*image, starts), unitary(*vector, starts).adjoint()
        index = pt.arange(first.shape[1])
        is_below = pt.gt(index[:, None], index)
        for_each = []
        for given in (a, b):
            x = left @ given @ right
            rest = pt.switch(is_below, extent(x), 0.0).max(axis=(1, 2))
            is_small = pt.le(rest, _NEGLIGIBLE * extent(x).max(axis=(1, 2)))
            failed = failed + pt.switch(is_small, 0.0, np.nan)
            for_each += [pt.switch(is_below, 0.0, part) for part in x]
        failed = failed + pt.switch((starts & ~is_found).any(axis=1), np.nan, 0.0)
        first = pt.switch(starts, 1.0, pt.switch(behind(starts), 0.0, first))
        results = [*for_each, *(q @ left.adjoint()), *(z @ right), first, failed]
        return results, until(~starts.any())

    *parts, first = operands
    count = 2 * first.shape[1]
    *parts, _, failed = iterate(step, [*parts, first, pt.zeros_like(first[:, 0])], n_steps=count)
    return [*parts, failed]


def _eigenvectors(a: Parts, b: Parts) -> tuple[tuple[Parts, Parts], tuple[Parts, Parts]]:
    """Return the images and eigenvectors of the second eigenvalues of all neighbours."""
    (a1, a12, a2), (b1, b12, b2) = _elements(a), _elements(b)
    vector = normalised(b2 * a12 - a2 * b12, a2 * b1 - b2 * a1)
    images = [
        (x1 * vector[0] + x12 * vector[1], x2 * vector[1])
        for x1, x12, x2 in ((a1, a12, a2), (b1, b12, b2))
    ]
    sizes = [extent(x) + extent(y) for x, y in images]
    is_larger = pt.ge(*sizes)
    image = [chosen(is_larger, x, y) for x, y in zip(*images, strict=True)]
    return normalised(*image), vector


def _elements(x: Parts) -> tuple[Parts, Parts, Parts]:
    """Return the elements of the triangles of two rows that begin in each row."""
    d = Parts(*(diagonals(part) for part in x))
    return d, Parts(*(upper_diagonal(part) for part in x)), Parts(*(ahead(part) for part in d))


_EPS = np.finfo("float64").eps
# The places of the conjugated second element of a row of T, and of the first one.
_ELEMENTS = np.array([10, 14, 8, 12])
_CONJUGATED = np.array([1.0, -1.0, 1.0, 1.0])


@operation("(b,k,l),(b,k,k)->(b,k,l),(b,k,k),(b)")
def complex_triangular_pencil(rows: TensorVariable, z: TensorVariable) -> list[TensorVariable]:
    """Reduce complex pencils of Hessenberg and triangular matrices to triangular form.

    C. B. Moler and G. W. Stewart, An algorithm for generalized matrix eigenvalue problems, SIAM
    Journal on Numerical Analysis 10, 1973, with the shifts of LAPACK's ``zhgeqz``. Bulges are
    chased as those of complex Hessenberg matrices.

    Parameters
    ----------
    rows
        Hessenberg matrices H, triangular matrices T and ``Q^H`` of `complex_hessenberg_triangular`,
        finite, with norms of at most about one.
    z
        The unitary matrices Z.
    """

    def step(rows: TensorVariable, z: TensorVariable, waits: TensorVariable) -> tuple[list, until]:
        n = waits.shape[1]
        rows, blocks = _deflated(rows, n)
        first, is_begin, waits = _bulges(rows, blocks, waits, n)
        goes_on = 1.0 - is_begin.astype("float64")
        through = Range(first, goes_on, *range_of_chase(is_begin, blocks))
        rows, turns = chased_rows(
            rows, through, COMPLEX, matrices=2, turned=rotation, restored=_restored
        )
        columns = [rows[:, :, : 2 * n], rows[:, :, 2 * n : 4 * n], z]
        index, steps = pt.arange(6 * n), 2 * (through.low + pt.arange(through.count))
        is_before = pt.lt(index % (2 * n), steps[:, None]) | pt.ge(index, 4 * n)
        columns = chased_columns(
            pt.concatenate(columns, axis=1).mT,
            turns,
            through,
            COMPLEX,
            is_before.astype("float64"),
        ).mT
        both = [columns[:, : 2 * n], columns[:, 2 * n : 4 * n], rows[:, :, 4 * n :]]
        rows = pt.concatenate(both, axis=2)
        return [rows, columns[:, 4 * n :], waits], until(~blocks.is_active.any())

    n = z.shape[1] // 2
    rows, z, _ = iterate(step, [rows, z, pt.zeros((z.shape[0], n))], n_steps=most_sweeps(n))
    rows, blocks = _deflated(rows, n)
    return [rows, z, pt.switch(blocks.is_active.any(axis=1), np.nan, 0.0)]


def _deflated(rows: TensorVariable, n: TensorVariable) -> tuple[TensorVariable, Unreduced]:
    """Set negligible elements below the diagonals to zero, and find the blocks between zeros."""
    parts = complex_columns(rows, pt.constant(0), 3 * n)
    size = extent(Parts(*(behind(lower_diagonal(x[:, :, :n])) for x in parts)))
    is_small = pt.le(size, NEGLIGIBLE)
    is_zero = below_pencils(is_small, n)
    # Rounding errors of both columns of a block differ, and would never vanish.
    kept = Parts(*(pt.switch(is_zero, 0.0, x) for x in parts))
    return interleaved(kept, n), unreduced(is_small, n, 1)


def _bulges(
    rows: TensorVariable, blocks: Unreduced, waits: TensorVariable, n: TensorVariable
) -> Bulges:
    """Return the first columns of ``H @ inv(T) - s`` with the shift of each block.

    Divisors on the diagonal of T that are zero are replaced: shifts and first columns decide on
    the convergence alone.
    """
    h, t = complex_columns(rows, pt.constant(0), n), complex_columns(rows, n, 2 * n)
    d, e, f = (
        Parts(*(of(x) for x in h))
        for of in (
            diagonals,
            lambda x: behind(lower_diagonal(x)),
            lambda x: behind(upper_diagonal(x)),
        )
    )
    td, tf = (Parts(*(of(x) for x in t)) for of in (diagonals, lambda x: behind(upper_diagonal(x))))
    td = _divisors(td)
    before = _divisors(_moved(td))
    a, c = quotient(_moved(d), before), quotient(e, before)
    values = [a, quotient(f - a * tf, td), c, quotient(d - c * tf, td)]
    stacked = pt.stack([*(part for x in values for part in x), waits], axis=1)
    is_last = last_rows(blocks, n)
    at_end = pt.matmul(stacked, is_last.astype("float64"))
    m11, m12, m21, m22 = (Parts(at_end[:, i], at_end[:, i + 1]) for i in range(0, 8, 2))
    shift = wilkinson_shift(m11, m12, m21, m22, at_end[:, 8])
    under = Parts(*(ahead(x) for x in e))
    first = pt.stack([*(quotient(d, td) - shift), *quotient(under, td)], axis=1)
    largest = pt.abs(first).max(axis=1, keepdims=True)
    first = first / pt.switch(pt.eq(largest, 0.0), 1.0, largest)
    begins = blocks.is_active & blocks.is_first
    first = pt.switch(begins[:, None, :], first, 0.0)
    return Bulges(first, begins, pt.switch(is_last.any(axis=2), waits + 1.0, 0.0))


def _moved(z: Parts) -> Parts:
    return Parts(*(behind(x) for x in z))


def _divisors(z: Parts) -> Parts:
    """Return numbers with those near zero replaced."""
    small = Parts(pt.full_like(z.real, _EPS), pt.zeros_like(z.imag))
    return chosen(pt.gt(extent(z), _EPS), z, small)


def _restored(t: TensorVariable) -> TensorVariable:
    """Return the turns of columns that make the second row of T triangular again."""
    return rotation(t.reshape((t.shape[0], 16))[:, _ELEMENTS] * _CONJUGATED)
