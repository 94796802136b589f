"""Check that axes of inputs with one name have one size; the runtime broadcasts a size of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytensor_onnx.errors import InputError

Axis = tuple[str, str, int]
"""Name of a dimension, and an input and its axis."""


class EqualSizes:
    """Axes of the inputs of a session that must have equal sizes.

    Parameters
    ----------
    inputs
        Inputs as the runtime describes them.

    Attributes
    ----------
    axes
        The axes whose name another axis has.
    """

    def __init__(self, inputs: Sequence[Any]) -> None:
        named: dict[str, list[Axis]] = {}
        for value in inputs:
            for axis, dim in enumerate(value.shape):
                if isinstance(dim, str):
                    named.setdefault(dim, []).append((dim, value.name, axis))
        self.axes = [axis for group in named.values() if len(group) > 1 for axis in group]

    def check(self, feed: Mapping[str, Any]) -> None:
        """Raise an `InputError` for sizes that do not agree."""
        known: dict[str, tuple[int, str]] = {}
        for dim, name, axis in self.axes:
            size = feed[name].shape[axis]
            first, owner = known.setdefault(dim, (size, name))
            if first != size:
                raise InputError(f"dimension {dim!r} is {first} in {owner} and {size} in {name}")
