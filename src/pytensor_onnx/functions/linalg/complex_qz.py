"""Schur forms of complex pencils, by their real and imaginary parts."""

import numpy as np
import pytensor.tensor as pt
from pytensor.raise_op import CheckAndRaise
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.complex.complex_arithmetic import Parts, chosen, extent
from pytensor_onnx.functions.linalg.complex_shifts import complex_columns
from pytensor_onnx.functions.linalg.matrix_batches import diagonals, flat, not_empty, unflat
from pytensor_onnx.functions.linalg.matrix_blocks import checked_size
from pytensor_onnx.functions.linalg.pencil_blocks import rounding_errors
from pytensor_onnx.functions.linalg.pencil_triangle import (
    Triangle,
    normalised,
    unitary,
    with_positive_diagonal,
)
from pytensor_onnx.functions.linalg.qz import COSINE, SINE, is_nonzero, scaled, selected
from pytensor_onnx.functions.linalg.scaling import finite
from pytensor_onnx.functions.linalg.standard_blocks import ahead, behind, upper_diagonal
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.registry import define, own_signature
from pytensor_onnx.ops.linalg.complex_matrices import QZOfParts
from pytensor_onnx.ops.linalg.factorisations import (
    ComplexHessenbergTriangular,
    ComplexTriangularPencil,
    OrderTriangularPencil,
)

# Elements that an exchange may leave below the diagonal, relative to the matrix.
_NEGLIGIBLE = 30 * np.finfo("float64").eps


@define(QZOfParts, own_signature)
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
    rows, z = ComplexHessenbergTriangular()(
        *(COSINE * x + SINE * y for x, y in zip(a, b, strict=True)),
        *(COSINE * y - SINE * x for x, y in zip(a, b, strict=True)),
    )
    rows, z, failed = ComplexTriangularPencil()(rows, z)
    h, t, qt = (complex_columns(rows, i * size, (i + 1) * size) for i in range(3))
    is_a, is_b = (is_nonzero(pt.concatenate(list(x), axis=2)) for x in (a, b))
    a = Parts(*(is_a * (COSINE * x - SINE * y) for x, y in zip(h, t, strict=True)))
    b = Parts(*(is_b * (COSINE * y + SINE * x) for x, y in zip(h, t, strict=True)))
    found = _finished(a, b, qt.adjoint(), complex_columns(z, pt.constant(0), size))
    if sort is not None:
        alpha = found.alpha.scaled(1 / scale_a[:, 0])
        first = selected((alpha, found.beta / scale_b[:, 0]), sort)
        *parts, unordered = OrderTriangularPencil()(*found.a, *found.b, *found.q, *found.z, first)
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


@define(OrderTriangularPencil, OrderTriangularPencil.gufunc_signature)
def ordered(*operands: TensorVariable) -> list[TensorVariable]:
    """Exchange neighbouring eigenvalues of triangular pencils until the selected ones come first.

    An exchange is a rotation of two columns, to an eigenvector of the second eigenvalue, and one of
    two rows (LAPACK's ``ztgex2``). All neighbours in the wrong order change places at once, and the
    others keep their order. An exchange fails where elements below the diagonal do not vanish.
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
