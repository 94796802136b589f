"""Triangles of matrices."""

from typing import Any

import numpy as np
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.tensor.basic import as_tensor_variable


class Triangle(Op):
    """The elements of matrices on one side of a diagonal, and zeros elsewhere.

    It is NumPy's ``tril`` or ``triu`` in one operator. The elements left out may be NaN.

    Parameters
    ----------
    lower
        Whether the elements below the diagonal are kept, or those above it.
    diagonal
        Number of the diagonal that is the last one kept, counted from the main one upwards.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> x = pt.matrix("x")
    >>> Triangle(lower=True, diagonal=-1)(x).eval({x: [[1.0, 2.0], [3.0, 4.0]]}, mode="ONNX")
    array([[0., 0.],
           [3., 0.]])
    """

    __props__ = ("lower", "diagonal")

    def __init__(self, *, lower: bool, diagonal: int = 0) -> None:
        self.lower = lower
        self.diagonal = diagonal

    def make_node(self, x: Any) -> Apply:
        """Return the node for matrices."""
        x = as_tensor_variable(x)
        return Apply(self, [x], [x.type()])

    def infer_shape(self, node: Apply, shapes: list[tuple]) -> list[tuple]:
        """Return the shape of the matrices."""
        return [shapes[0]]

    def perform(self, node: Apply, inputs: Any, outputs: Any) -> None:
        """Compute in NumPy."""
        keep = np.tril if self.lower else np.triu
        outputs[0][0] = keep(inputs[0], self.diagonal)
