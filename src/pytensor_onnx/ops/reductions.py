"""Define the running maximum and minimum, for which PyTensor has no Op."""

from typing import Any

import numpy as np
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.tensor.basic import as_tensor_variable

_UFUNCS = {"max": np.maximum, "min": np.minimum}

LARGEST_ROW = 64
"""Elements of a row up to which doubling is faster than a loop; it goes over memory log n times."""


class RunningExtreme(Op):
    """Running maximum or minimum along the first axis, which propagates NaN.

    Parameters
    ----------
    kind
        ``"max"`` or ``"min"``.

    Examples
    --------
    >>> RunningExtreme("max")([1.0, 3.0, 2.0]).eval(mode="FAST_COMPILE")
    array([1., 3., 3.])
    """

    __props__ = ("kind",)

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def make_node(self, x: Any) -> Apply:
        """Return a node whose output is like its input."""
        x = as_tensor_variable(x)
        return Apply(self, [x], [x.type()])

    def infer_shape(self, node: Apply, shapes: list[tuple]) -> list[tuple]:
        """Return the shape of the input."""
        return shapes

    def perform(self, node: Apply, inputs: Any, outputs: Any) -> None:
        """Compare row by row."""
        (x,) = inputs
        outputs[0][0] = _UFUNCS[self.kind].accumulate(x, axis=0)
