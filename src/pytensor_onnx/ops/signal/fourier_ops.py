"""Discrete Fourier transforms of pairs of real and imaginary parts, without a factor."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.tensor.basic import as_tensor_variable
from pytensor.tensor.type import tensor
from pytensor.tensor.variable import TensorVariable


class _Transform(Op):
    """Sums of an array times roots of unity, along the last axis but one of pairs.

    Parameters
    ----------
    size
        Size of the axis if it is known.
    inverse
        Whether the roots are conjugate. The sums are not divided by the size.
    """

    __props__ = ("size", "inverse")

    def __init__(self, size: int | None = None, inverse: bool = False) -> None:
        self.size = size
        self.inverse = inverse

    def make_node(self, pairs: TensorVariable) -> Apply:
        """Return the node for pairs."""
        pairs = as_tensor_variable(pairs)
        shape = (*pairs.type.shape[:-2], self.size, 2)
        return Apply(self, [pairs], [tensor(dtype=pairs.type.dtype, shape=shape)])

    def perform(self, node: Apply, inputs: Sequence[Any], outputs: Any) -> None:
        """Transform by NumPy."""
        (pairs,) = inputs
        numbers = pairs[..., 0] + 1j * pairs[..., 1]
        transform = np.fft.ifft if self.inverse else np.fft.fft
        result = transform(numbers, norm="forward" if self.inverse else "backward")
        outputs[0][0] = np.stack([result.real, result.imag], axis=-1).astype(pairs.dtype)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        """Return the shape of the operand."""
        return [shapes[0]]


class FourierTransform(_Transform):
    """Transform of any size.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> pairs = pt.constant([[1.0, 0.0], [3.0, 0.0]])
    >>> FourierTransform(2)(pairs).eval()
    array([[ 4.,  0.],
           [-2.,  0.]])
    """


class StandardTransform(_Transform):
    """Transform by the operator of ONNX, which is accurate for powers of two."""


class StagedTransform(_Transform):
    """Transform of a product of small numbers that only a run knows."""
