"""Fourier transforms of any size as convolutions.

L. I. Bluestein, "A linear filtering approach to the computation of the discrete Fourier transform",
IEEE Trans. Audio Electroacoustics 18 (1970): with ``jk = (j**2 + k**2 - (k - j)**2) / 2`` a
transform is a convolution with ``exp(i pi k**2 / n)``, which transforms of a power of two compute.
"""

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.complex.pairs import conjugate, paired, times
from pytensor_onnx.functions.shape import between_zeros
from pytensor_onnx.functions.signal.fourier.roots_of_unity import multiply, roots
from pytensor_onnx.functions.special.arithmetic import constant
from pytensor_onnx.ops.signal.fourier_ops import FourierTransform, StagedTransform


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
