"""Number of elements along several axes, by one read of the shape."""

import math
from typing import Any

import numpy as np
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import Op
from pytensor.tensor.basic import as_tensor_variable
from pytensor.tensor.type import scalar


class ElementCount(Op):
    """The product of sizes of an array as a float, as divisors of means are.

    Parameters
    ----------
    axes
        The axes, in ascending order.
    dtype
        Dtype of the result, to which each size is rounded.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> x = pt.tensor3("x")
    >>> ElementCount((0, 2), "float64")(x).eval({x: np.zeros((2, 3, 4))}, mode="ONNX")
    array(8.)
    """

    __props__ = ("axes", "dtype")

    def __init__(self, axes: tuple[int, ...], dtype: str) -> None:
        self.axes = axes
        self.dtype = dtype

    def make_node(self, x: Any) -> Apply:
        """Return the node for an array."""
        return Apply(self, [as_tensor_variable(x)], [scalar(dtype=self.dtype)])

    def infer_shape(self, node: Apply, shapes: list[tuple[Variable, ...]]) -> list[tuple]:
        """Return the shape of a number."""
        return [()]

    def perform(self, node: Apply, inputs: Any, outputs: Any) -> None:
        """Compute in NumPy."""
        sizes = (inputs[0].shape[axis] for axis in self.axes)
        outputs[0][0] = np.asarray(math.prod(sizes), dtype=self.dtype)
