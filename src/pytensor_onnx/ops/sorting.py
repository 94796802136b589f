"""Select order statistics of an axis without sorting all elements."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import Op


class OrderStatistics(Op):
    """Elements at places of the ascending order along the first axis; NaN if one is NaN.

    Parameters
    ----------
    size
        Size of the first axis.
    places
        Places in ascending order.

    Examples
    --------
    >>> OrderStatistics(4, (0, 3))([3.0, 1.0, 2.0, 5.0]).eval(mode="FAST_COMPILE")
    array([1., 5.])
    """

    __props__ = ("size", "places")

    def __init__(self, size: int, places: Sequence[int]) -> None:
        self.size, self.places = size, tuple(places)

    def make_node(self, x: Any) -> Apply:
        """Return the node for floats."""
        x = pt.as_tensor_variable(x)
        return Apply(self, [x], [x.type.clone(shape=(len(self.places), *x.type.shape[1:]))()])

    def infer_shape(self, node: Apply, shapes: list[tuple[Variable, ...]]) -> list[tuple]:
        """Return the number of places and the other sizes."""
        return [(pt.constant(len(self.places), dtype="int64"), *shapes[0][1:])]

    def perform(self, node: Apply, inputs: Any, outputs: Any) -> None:
        """Sort all elements."""
        (x,) = inputs
        if len(x) != self.size:
            raise ValueError(f"the first axis has {len(x)} elements, and not {self.size}")
        found = np.sort(x, axis=0)[list(self.places)]
        outputs[0][0] = np.where(np.isnan(x).any(axis=0), np.asarray(np.nan, x.dtype), found)
