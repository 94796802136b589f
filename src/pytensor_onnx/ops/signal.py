"""Ops of convolutions and Fourier transforms."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.scalar.basic import upcast
from pytensor.tensor.basic import as_tensor_variable
from pytensor.tensor.type import tensor
from pytensor.tensor.variable import TensorVariable


class FullConvolution(Op):
    """Convolution with a result wherever two arrays overlap.

    Parameters
    ----------
    axes
        Number of axes of both arrays.
    """

    __props__ = ("axes",)

    def __init__(self, axes: int) -> None:
        self.axes = axes

    @property
    def gufunc_signature(self) -> str:
        """The axes of both arrays and of the result."""
        first, second, result = (
            ",".join(f"{name}{axis}" for axis in range(self.axes)) for name in "nko"
        )
        return f"({first}),({second})->({result})"

    def make_node(self, x: TensorVariable, y: TensorVariable) -> Apply:
        """Return the node for two arrays."""
        sizes = zip(x.type.shape, y.type.shape, strict=True)
        shape = [None if n is None or k is None else n + k - 1 for n, k in sizes]
        return Apply(self, [x, y], [tensor(dtype=upcast(x.dtype, y.dtype), shape=shape)])

    def perform(self, node: Apply, inputs: Sequence[Any], outputs: Any) -> None:
        """Add the products with each number of the second array."""
        x, y = inputs
        result = np.zeros(np.add(x.shape, y.shape) - 1, node.outputs[0].type.dtype)
        for index in np.ndindex(y.shape):
            result[tuple(slice(i, i + n) for i, n in zip(index, x.shape, strict=True))] += (
                x * y[index]
            )
        outputs[0][0] = result


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
