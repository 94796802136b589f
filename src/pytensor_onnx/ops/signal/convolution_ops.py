"""Full convolutions of signals and images; PyTensor's other modes are slices of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.scalar.basic import upcast
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
