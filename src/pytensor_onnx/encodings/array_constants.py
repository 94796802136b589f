"""Constants of PyTensor for arrays of many megabytes, without copies of their data."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from pytensor.graph.type import Type
from pytensor.tensor.variable import TensorConstant

from pytensor_onnx.digests import content_key

LARGE = 2**24
"""Bytes from which a constant is large."""


def tensor_constant(type_: Type, data: np.ndarray, name: str | None = None) -> TensorConstant:
    """Return a constant of a type of tensors; large ones are compared by a digest."""
    is_large = type_.constant_type is TensorConstant and data.nbytes >= LARGE
    return (LargeConstant if is_large else type_.constant_type)(type_, data, name=name)


class LargeConstant(TensorConstant):
    """Constant that equals others by the digest of its data.

    PyTensor's own compare by masks of NaN, which take a quarter of the memory of float32.
    """

    def signature(self) -> Hashable:
        """Return the type and the digest of the data."""
        if not hasattr(self, "_signature"):
            self._signature = (self.type, content_key(self.data))
        return self._signature

    @property
    def unique_value(self) -> Any:
        """Return the number that all elements equal, or None if elements differ."""
        if not hasattr(self, "_unique_value"):
            smallest = self.data.min()
            self._unique_value = smallest if smallest == self.data.max() else None
        return self._unique_value
