"""Sums of outer products, which are the gradients of weights."""

from typing import Any

import numpy as np
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.tensor.basic import as_tensor_variable
from pytensor.tensor.type import tensor


class OuterProductSum(Op):
    """Sum of the outer products of the rows of two arrays, over all axes but the last.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> x, y = pt.tensor3("x"), pt.tensor3("y")
    >>> total = OuterProductSum()(x, y)
    >>> total.eval({x: np.ones((2, 3, 1)), y: np.ones((2, 3, 4))}, mode="ONNX")
    array([[6., 6., 6., 6.]])
    """

    __props__ = ()

    def make_node(self, x: Any, y: Any) -> Apply:
        """Return the node for arrays of one dtype and of equal sizes, but for the last."""
        x, y = as_tensor_variable(x), as_tensor_variable(y)
        shape = (x.type.shape[-1], y.type.shape[-1])
        return Apply(self, [x, y], [tensor(dtype=x.type.dtype, shape=shape)])

    def infer_shape(self, node: Apply, shapes: list[tuple]) -> list[tuple]:
        """Return the last sizes of both arrays."""
        x, y = shapes
        return [(x[-1], y[-1])]

    def perform(self, node: Apply, inputs: Any, outputs: Any) -> None:
        """Compute in NumPy."""
        x, y = inputs
        axes = range(x.ndim - 1)
        outputs[0][0] = np.tensordot(x, y, (axes, axes)).astype(x.dtype, copy=False)
