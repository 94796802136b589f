"""Parts triangular forms of quasi-triangular pencils, by their parts."""

from typing import NamedTuple

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.complex.complex_arithmetic import Parts
from pytensor_onnx.functions.linalg.matrix_batches import diagonals
from pytensor_onnx.functions.linalg.pencil_blocks import (
    Block,
    Rotation,
    blocks_of,
    eigenvalues,
    rotations,
)
from pytensor_onnx.functions.linalg.standard_blocks import behind, length, lower_diagonal, nonzero


class Triangle(NamedTuple):
    """Triangular pencils A and B, where B has a diagonal that is not negative.

    Attributes
    ----------
    a, b
        The matrices.
    q, z
        Unitary matrices.
    alpha
        The diagonal of A.
    beta
        The diagonal of B, real.
    """

    a: Parts
    b: Parts
    q: Parts
    z: Parts
    alpha: Parts
    beta: TensorVariable


def triangular_pencil(
    a: TensorVariable, b: TensorVariable, qt: TensorVariable, z: TensorVariable
) -> Triangle:
    """Return triangular forms of pencils of `StandardPencil`.

    The first column of each block with complex eigenvalues becomes an eigenvector of the one with
    the positive imaginary part.
    """
    is_first = pt.neq(lower_diagonal(a), 0.0)
    vector, image = _vectors(blocks_of(a, is_first), blocks_of(b, is_first))
    left, right = (unitary(*x, is_first) for x in (image, vector))
    right = right.adjoint()
    of_a, of_b = (Parts(*(pt.matmul(part, x) for part in left)) @ right for x in (a, b))
    q = Parts(pt.matmul(left.real, qt).mT, -pt.matmul(left.imag, qt).mT)
    return with_positive_diagonal(of_a, of_b, q, Parts(*(pt.matmul(z, x) for x in right)))


def with_positive_diagonal(a: Parts, b: Parts, q: Parts, z: Parts) -> Triangle:
    """Return triangular pencils whose columns have phases for which B has a positive diagonal.

    Elements below the diagonals are rounding errors.
    """
    d = Parts(*(diagonals(part) for part in b))
    beta = length(*d)
    is_zero = pt.eq(beta, 0.0)
    phase = Parts(
        pt.switch(is_zero, 1.0, d.real / nonzero(beta))[:, None], (-d.imag / nonzero(beta))[:, None]
    )
    index = pt.arange(beta.shape[1])
    a, b, z = (x * phase for x in (a, b, z))
    is_kept = pt.ge(index, index[:, None])
    a = Parts(*(pt.switch(is_kept, x, 0.0) for x in a))
    above, is_diagonal = pt.gt(index, index[:, None]), pt.eq(index, index[:, None])
    b = Parts(
        pt.switch(above, b.real, pt.switch(is_diagonal, beta[:, None], 0.0)),
        pt.switch(above, b.imag, 0.0),
    )
    return Triangle(a, b, q, z, Parts(*(diagonals(x) for x in a)), beta)


def _vectors(a: Block, b: Block) -> tuple[tuple[Parts, Parts], tuple[Parts, Parts]]:
    """Return the elements of eigenvectors of blocks, and of their images, of length one."""
    found = eigenvalues(a, b)
    root = pt.sqrt(pt.maximum(-found.square, 0.0))
    s = [Parts(found.divisor * x - found.mean * y, -root * y) for x, y in zip(a, b, strict=True)]
    size = [pt.abs(x.real) + pt.abs(x.imag) for x in s]
    is_above = pt.ge(size[0] + size[1], size[2] + size[3])
    first = Parts(*(pt.switch(is_above, x, y) for x, y in zip(s[1], s[3], strict=True)))
    second = Parts(*(-pt.switch(is_above, x, y) for x, y in zip(s[0], s[2], strict=True)))
    vector = normalised(first, second)
    images = [
        [
            Parts(*(x * u + y * v for u, v in zip(*vector, strict=True)))
            for x, y in ((block.a, block.b), (block.c, block.d))
        ]
        for block in (a, b)
    ]
    sizes = [sum(pt.abs(part) for x in image for part in x) for image in images]
    is_larger = pt.ge(sizes[0], sizes[1])
    image = [
        Parts(*(pt.switch(is_larger, u, v) for u, v in zip(x, y, strict=True)))
        for x, y in zip(*images, strict=True)
    ]
    return vector, normalised(*image)


def normalised(x: Parts, y: Parts) -> tuple[Parts, Parts]:
    """Return vectors of two elements with length one, or zero."""
    largest = nonzero(pt.abs(pt.stack([*x, *y])).max(axis=0))
    x, y = (Parts(*(part / largest for part in z)) for z in (x, y))
    size = nonzero(pt.sqrt(sum(part * part for part in (*x, *y))))
    return Parts(x.real / size, x.imag / size), Parts(y.real / size, y.imag / size)


def unitary(x: Parts, y: Parts, is_first: TensorVariable) -> Parts:
    """Return matrices with the blocks ``[[conj(x), conj(y)], [-y, x]]``, identities elsewhere."""
    imag = pt.switch(is_first, x.imag, 0.0)
    beside = pt.switch(is_first, y.imag, 0.0)
    index = pt.arange(imag.shape[1])
    row, column = index[:, None], index
    diagonal = pt.eq(row, column) * (behind(imag) - imag)[:, :, None]
    upper = pt.eq(row + 1, column) * beside[:, :, None]
    return Parts(rotations(Rotation(x.real, y.real), is_first), diagonal - upper - upper.mT)
