"""Fourier transforms of products of small sizes, by products with small matrices.

M. C. Pease, "An adaptation of the fast Fourier transform for parallel processing", J. ACM 15
(1968), and D. H. Bailey, "FFTs in external or hierarchical memory", J. Supercomputing 4 (1990):
with ``n = n1 n2`` and ``j = j1 n2 + j2``, transforms of size ``n1`` over ``j1``, products with
roots of unity, and transforms of size ``n2`` over ``j2`` give ``X[k1 + n1 k2]``.
"""

import math

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.signal.fourier.roots_of_unity import roots

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
