"""Fourier transforms by products with small matrices, of sizes that only a run knows.

T. G. Stockham, "High-speed convolution and correlation", AFIPS Spring Joint Computer Conference
(1966): a stage transforms over the most significant digit of the index, multiplies by roots of
unity, and moves the digit behind the others, so that the last stage leaves natural order.
"""

import numpy as np
import pytensor.tensor as pt
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.signal.fourier.stages import LARGEST
from pytensor_onnx.ops.signal.fourier_ops import StagedTransform

_MOST_STAGES = 63


@define(StagedTransform, "(n,2)->(n,2)")
def transform_by_stages(
    pairs: TensorVariable, *, size: int | None, inverse: bool
) -> TensorVariable:
    """Return the transform of a product of numbers up to `LARGEST`.

    Examples
    --------
    >>> pairs = pt.constant([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]])
    >>> transform_by_stages(pairs, size=None, inverse=False).eval().round(6)[0]
    array([6., 0.])
    """
    lead = [pairs.shape[axis] for axis in range(pairs.type.ndim - 2)]
    n = pairs.shape[-2]
    order = (*range(len(lead)), pairs.type.ndim - 1, pairs.type.ndim - 2)
    table = pt.cast(_roots(n, inverse), pairs.type.dtype)
    one = pt.constant(1, dtype="int64")
    [parts, _, _] = iterate(
        _stage, [pairs.dimshuffle(order), n, one], [table], n_steps=_MOST_STAGES
    )
    return parts.dimshuffle(order)


def is_product(n: TensorVariable) -> TensorVariable:
    """Return whether a number is a product of numbers up to `LARGEST`.

    Examples
    --------
    >>> n = pt.lscalar()
    >>> [bool(is_product(n).eval({n: size})) for size in (1, 61**3, 67)]
    [True, True, False]
    """

    def step(n: TensorVariable) -> tuple[list[TensorVariable], until]:
        size = _largest_factor(n)
        return [n // size], until(pt.eq(size, 1))

    [rest] = iterate(step, [n], n_steps=_MOST_STAGES)
    return pt.eq(rest, 1)


def _largest_factor(n: TensorVariable) -> TensorVariable:
    sizes = pt.arange(1, LARGEST + 1, dtype="int64")
    return pt.max(pt.switch(pt.eq(n % sizes, 0), sizes, 1))


def _stage(
    parts: TensorVariable, n: TensorVariable, stride: TensorVariable, table: TensorVariable
) -> tuple[list[TensorVariable], until]:
    """Transform the first digit of the index of real and imaginary parts, shape ``(..., 2, N)``.

    ``n`` is the number of indices without the digits that are done, ``stride`` of those.
    """
    lead = [parts.shape[axis] for axis in range(parts.type.ndim - 2)]
    whole = parts.shape[-1]
    size = _largest_factor(n)
    rest = n // size
    digits = pt.arange(size)
    cos, sin = _entries(table, digits[:, None] * digits % size * (whole // size))
    matrix = pt.concatenate(
        [pt.concatenate([cos, -sin], axis=1), pt.concatenate([sin, cos], axis=1)], axis=0
    )
    found = (matrix @ parts.reshape((*lead, 2 * size, rest * stride))).reshape(
        (*lead, 2, size, rest, stride)
    )
    real, imag = found[..., 0, :, :, :], found[..., 1, :, :, :]
    cos, sin = _entries(table, digits[:, None, None] * pt.arange(rest)[:, None] * stride)
    turned = pt.stack([real * cos - imag * sin, real * sin + imag * cos], axis=-4)
    rank = turned.type.ndim
    moved = turned.dimshuffle((*range(rank - 3), rank - 2, rank - 3, rank - 1))
    parts = moved.reshape((*lead, 2, whole))
    return [parts, rest, stride * size], until(pt.eq(rest, 1))


def _entries(
    table: TensorVariable, exponents: TensorVariable
) -> tuple[TensorVariable, TensorVariable]:
    return pt.take(table[0], exponents), pt.take(table[1], exponents)


def _roots(n: TensorVariable, inverse: bool) -> TensorVariable:
    """Return real and imaginary parts of the powers of a root of unity, in float64.

    Powers are products of one in steps of the square root of ``n`` and one below it, as sines
    take longer than products.
    """
    width = pt.cast(pt.ceil(pt.sqrt(pt.cast(n, "float64"))), "int64")
    below = pt.arange(width)
    (a, b), (c, d) = (_root(exponents, n, inverse) for exponents in (below * width, below))
    a, b = a[:, None], b[:, None]
    return pt.stack([(a * c - b * d).flatten(), (a * d + b * c).flatten()])


def _root(
    exponents: TensorVariable, n: TensorVariable, inverse: bool
) -> tuple[TensorVariable, TensorVariable]:
    # Between half a turn back and forth, where the runtime's sine and cosine are accurate.
    turns = pt.cast((2 * exponents + n) % (2 * n) - n, "float64") / pt.cast(n, "float64")
    angle = turns * (np.pi if inverse else -np.pi)
    return pt.cos(angle), pt.sin(angle)
