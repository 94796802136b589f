"""Products of complex numbers along an axis."""

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.complex.pairs import paired, times
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.registry import define
from pytensor_onnx.ops.complex import ComplexCumProd, ComplexProd


@define(ComplexProd, "(n,2)->(2)")
def prod(pairs: TensorVariable) -> TensorVariable:
    """Return the products, of halves of the numbers until one is left.

    Examples
    --------
    >>> pairs = pt.matrix("pairs")
    >>> prod(pairs).eval({pairs: [[0.0, 1.0], [0.0, 1.0], [3.0, 0.0]]})
    array([-3.,  0.])
    """
    shape = (*(pairs.shape[axis] for axis in range(pairs.type.ndim - 2)), 1)
    one, zero = pt.ones(shape, pairs.type.dtype), pt.zeros(shape, pairs.type.dtype)
    start = pt.concatenate([pairs, paired(one, zero)], axis=-2)

    def step(numbers: TensorVariable) -> list[TensorVariable]:
        # One number is left over where their count is odd.
        half = numbers.shape[-2] // 2
        product = times(numbers[..., :half, :], numbers[..., half : 2 * half, :])
        return [pt.concatenate([product, numbers[..., 2 * half :, :]], axis=-2)]

    [last] = iterate(step, [start], n_steps=_bits(start.shape[-2]))
    return last[..., 0, :]


@define(ComplexCumProd, "(n,2)->(n,2)")
def cumprod(pairs: TensorVariable) -> TensorVariable:
    """Return the cumulative products, over twice as many numbers in each step.

    W. D. Hillis and G. L. Steele, "Data parallel algorithms", Commun. ACM 29 (1986).

    Examples
    --------
    >>> cumprod(pt.constant([[0.0, 1.0], [0.0, 1.0], [3.0, 0.0]])).eval()
    array([[ 0.,  1.],
           [-1.,  0.],
           [-3.,  0.]])
    """

    def step(numbers: TensorVariable, count: TensorVariable) -> list[TensorVariable]:
        later = times(numbers[..., count:, :], numbers[..., : numbers.shape[-2] - count, :])
        return [pt.concatenate([numbers[..., :count, :], later], axis=-2), 2 * count]

    start = [pairs, pt.constant(1, dtype="int64")]
    return iterate(step, start, n_steps=_bits(pairs.shape[-2]))[0]


def _bits(n: TensorVariable) -> TensorVariable:
    """Return the number of halvings that reduce n to one, but at least 1."""
    return pt.cast(pt.ceil(pt.log2(pt.cast(pt.maximum(n, 2), "float64"))), "int64")
