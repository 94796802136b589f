"""Fourier transforms."""

import math

import numpy as np
import pytensor.tensor as pt
from pytensor.conditional import ifelse
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.complex.complex_arithmetic import conjugate, paired, times
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.shape import between_zeros
from pytensor_onnx.functions.special.arithmetic import constant
from pytensor_onnx.ops.signal import FourierTransform, StagedTransform, StandardTransform

# Beyond, ONNX Runtime takes longer than products with matrices.
_LARGEST_STANDARD = 2**14


@define(FourierTransform, "(n,2)->(n,2)")
def transform(pairs: TensorVariable, *, size: int | None, inverse: bool) -> TensorVariable:
    """Return the transform by the operator of ONNX, by stages, or by a convolution.

    The operator of ONNX Runtime loses three digits at sizes that are no power of two.

    Examples
    --------
    >>> pairs = pt.constant([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]])
    >>> transform(pairs, size=3, inverse=False).eval().round(6)[0]
    array([6., 0.])
    """
    sign = 1 if inverse else -1
    if size is None:
        n = pairs.shape[-2]
        is_standard = pt.eq(pt.bitwise_and(n, n - 1), 0) & (n <= _LARGEST_STANDARD)
        staged = StagedTransform(inverse=inverse)(pairs)
        others = ifelse(is_product(n), staged, of_unknown_size(pairs, sign))
        return ifelse(is_standard, StandardTransform(inverse=inverse)(pairs), others)
    if LARGEST < size <= _LARGEST_STANDARD and size & (size - 1) == 0:
        return StandardTransform(size, inverse)(pairs)
    sizes = [size] if size <= 2 * LARGEST else stage_sizes(size)
    if sizes is not None:
        return by_stages(pairs, sizes, sign)
    return by_convolution(pairs, size, sign)


# Fourier transforms of products of small sizes, by products with small matrices.
#
# M. C. Pease, "An adaptation of the fast Fourier transform for parallel processing", J. ACM 15
# (1968), and D. H. Bailey, "FFTs in external or hierarchical memory", J. Supercomputing 4 (1990):
# with ``n = n1 n2`` and ``j = j1 n2 + j2``, transforms of size ``n1`` over ``j1``, products with
# roots of unity, and transforms of size ``n2`` over ``j2`` give ``X[k1 + n1 k2]``.

LARGEST = 64
"""Largest size of a matrix, of a stage among several."""


def stage_sizes(n: int) -> list[int] | None:
    """Factor n into sizes up to `LARGEST`; return None if a prime factor is larger.

    Examples
    --------
    >>> stage_sizes(1000), stage_sizes(100_000), stage_sizes(2 * 67)
    ([40, 25], [50, 50, 40], None)
    """
    primes = prime_factors(n)
    if primes and primes[0] > LARGEST:
        return None
    for count in range(1, len(primes) + 1):
        sizes = [1] * count
        for prime in primes:
            sizes[int(np.argmin(sizes))] *= prime
        if max(sizes) <= LARGEST:
            return sorted(sizes, reverse=True)
    return [n]


def prime_factors(n: int) -> list[int]:
    """Return the prime factors of a number, the largest first.

    Examples
    --------
    >>> prime_factors(360)
    [5, 3, 3, 2, 2, 2]
    """
    primes, divisor = [], 2
    while divisor * divisor <= n:
        while n % divisor == 0:
            primes.append(divisor)
            n //= divisor
        divisor += 1
    return sorted([*primes, *([n] if n > 1 else [])], reverse=True)


def by_stages(pairs: TensorVariable, sizes: list[int], sign: int) -> TensorVariable:
    """Return the transform along the last axis but one, whose size is the product of the sizes.

    The stages leave their digits in reverse order, which one transposition mends.
    """
    lead = [pairs.shape[axis] for axis in range(pairs.type.ndim - 2)]
    real, imag = _digits(pairs[..., 0], pairs[..., 1], lead, sizes, sign)
    if len(sizes) > 1:
        first = len(lead)
        order = [*range(first), *reversed(range(first, first + len(sizes)))]
        shape = (*lead, math.prod(sizes))
        real, imag = (
            x.reshape((*lead, *sizes)).dimshuffle(order).reshape(shape) for x in (real, imag)
        )
    return pt.stack([real, imag], axis=-1)


def _digits(
    real: TensorVariable,
    imag: TensorVariable,
    lead: list[TensorVariable],
    sizes: list[int],
    sign: int,
) -> tuple[TensorVariable, TensorVariable]:
    """Transform the first digit of the index by a matrix from the left, and then the others."""
    first, *others = sizes
    indices = np.arange(first)
    dtype = real.type.dtype
    cos, sin = _parts(roots(np.outer(indices, indices), first, sign), dtype)
    if not others:
        return real @ cos - imag @ sin, real @ sin + imag @ cos
    rest = math.prod(others)
    real, imag = (x.reshape((*lead, first, rest)) for x in (real, imag))
    real, imag = cos @ real - sin @ imag, sin @ real + cos @ imag
    turns = np.outer(indices, np.arange(rest))
    cos, sin = _parts(roots(turns, first * rest, sign), dtype)
    real, imag = real * cos - imag * sin, real * sin + imag * cos
    return _digits(real, imag, [*lead, pt.as_tensor(first)], others, sign)


def _parts(numbers: np.ndarray, dtype: str) -> tuple[TensorVariable, TensorVariable]:
    return pt.constant(numbers.real.astype(dtype)), pt.constant(numbers.imag.astype(dtype))


# Fourier transforms of any size as convolutions.
#
# L. I. Bluestein, "A linear filtering approach to the computation of the discrete Fourier
# transform", IEEE Trans. Audio Electroacoustics 18 (1970): with ``jk = (j**2 + k**2 - (k - j)**2) /
# 2`` a transform is a convolution with ``exp(i pi k**2 / n)``, which transforms of a power of two
# compute.


def by_convolution(pairs: TensorVariable, n: int, sign: int) -> TensorVariable:
    """Return the transform of a known size, with the transform of the filter as a constant."""
    size = 2 ** int(2 * n - 2).bit_length()
    squares = np.arange(n, dtype="int64") ** 2 % (2 * n)
    chirp = roots(squares, 2 * n, sign)
    kernel = np.zeros(size, "clongdouble")
    kernel[:n] = chirp.conj()
    kernel[size - n + 1 :] = chirp.conj()[1:][::-1]
    spectrum = np.fft.fft(kernel)
    padded = between_zeros(multiply(pairs, chirp), 0, size - n, -2)
    product = multiply(FourierTransform(size)(padded), spectrum / size)
    return multiply(FourierTransform(size, inverse=True)(product)[..., :n, :], chirp)


def of_unknown_size(pairs: TensorVariable, sign: int) -> TensorVariable:
    """Transform along an axis whose size is known at run time only."""
    n = pairs.shape[-2]
    whole = pt.arange(n, dtype="int64")
    # Between -n and n, where the runtime's sine and cosine are accurate.
    turns = pt.cast((whole * whole + n) % (2 * n) - n, pairs.type.dtype)
    angle = turns / pt.cast(n, pairs.type.dtype) * constant(pairs, sign * np.pi)
    chirp = paired(pt.cos(angle), pt.sin(angle))
    size = pt.cast(2 ** pt.ceil(pt.log2(pt.cast(2 * n, "float64"))), "int64")
    mirrored = conjugate(chirp)
    gap = pt.zeros((size - (2 * n - 1), 2), dtype=pairs.type.dtype)
    kernel = pt.concatenate([mirrored, gap, mirrored[1:][::-1]], axis=0)
    forward, backward = StagedTransform(), StagedTransform(inverse=True)
    product = times(forward(between_zeros(times(pairs, chirp), 0, size - n, -2)), forward(kernel))
    found = times(backward(product)[..., :n, :], chirp)
    return found / pt.cast(size, pairs.type.dtype)


def roots(exponents: np.ndarray, n: int, sign: int) -> np.ndarray:
    """Return ``exp(sign 2 pi i exponents / n)`` in the longest precision.

    Examples
    --------
    >>> bool(abs(roots(np.arange(5), 5, -1).sum()) < 1e-18)
    True
    """
    pi = 4 * np.arctan(np.longdouble(1))
    angles = sign * 2 * pi * (exponents % n).astype("longdouble") / n
    return np.cos(angles) + 1j * np.sin(angles)


def multiply(pairs: TensorVariable, numbers: np.ndarray) -> TensorVariable:
    """Return the products of pairs with constant complex numbers.

    Examples
    --------
    >>> multiply(pt.constant([[1.0, 2.0]]), np.array([3j])).eval()
    array([[-6.,  3.]])
    """
    same = np.repeat(numbers.real[..., None], 2, axis=-1).astype(pairs.type.dtype)
    crossed = np.stack([-numbers.imag, numbers.imag], axis=-1).astype(pairs.type.dtype)
    return pairs * pt.constant(same) + pairs[..., ::-1] * pt.constant(crossed)


# Fourier transforms by products with small matrices, of sizes that only a run knows.
#
# T. G. Stockham, "High-speed convolution and correlation", AFIPS Spring Joint Computer Conference
# (1966): a stage transforms over the most significant digit of the index, multiplies by roots of
# unity, and moves the digit behind the others, so that the last stage leaves natural order.

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
