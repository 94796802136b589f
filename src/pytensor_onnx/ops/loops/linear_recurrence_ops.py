"""Define the linear recurrence of first order, for which PyTensor has a loop and no Op."""

from typing import Any

import numpy as np
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.tensor.basic import as_tensor_variable

LARGEST_ROW = 16
"""Elements of a row up to which doubling beats a loop; it goes over memory 5 log n times."""


class LinearRecurrence(Op):
    """Recurrence ``y[t] = factors[t - 1] * y[t - 1] + x[t]`` along the first axis.

    Takes ``x`` of n + 1 rows, whose first is the initial value, and n rows of factors, or one row
    for all steps.

    Examples
    --------
    >>> LinearRecurrence()([1.0, 0.0, 5.0], [0.5, 2.0]).eval(mode="FAST_COMPILE")
    array([1. , 0.5, 6. ])
    """

    __props__ = ()

    def make_node(self, x: Any, factors: Any) -> Apply:
        """Return a node whose output is like its first input."""
        x, factors = as_tensor_variable(x), as_tensor_variable(factors)
        return Apply(self, [x, factors], [x.type()])

    def infer_shape(self, node: Apply, shapes: list[tuple]) -> list[tuple]:
        """Return the shape of the first input."""
        return shapes[:1]

    def perform(self, node: Apply, inputs: Any, outputs: Any) -> None:
        """Compute row by row."""
        x, factors = inputs
        y, factors = x.copy(), np.broadcast_to(factors, (len(x) - 1, *factors.shape[1:]))
        with np.errstate(all="ignore"):
            for t, factor in enumerate(factors, 1):
                y[t] += factor * y[t - 1]
        outputs[0][0] = y
