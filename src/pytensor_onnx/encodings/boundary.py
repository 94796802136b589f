"""Convert the inputs and outputs of a graph to and from their tensors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pytensor.graph.basic import Variable
from pytensor.graph.type import Type
from pytensor.scalar.basic import ScalarType
from pytensor.tensor.type_other import NoneTypeT

from pytensor_onnx.encodings.registry import encoding_of, tensor_types


@dataclass(frozen=True)
class Boundary:
    """Inputs or outputs of a graph.

    Attributes
    ----------
    types
        Types of the values.

    Examples
    --------
    >>> import numpy as np, pytensor.tensor as pt
    >>> inputs = Boundary.of([pt.random.rng("rng"), pt.scalar("x")])
    >>> inputs.encode([np.random.default_rng(1), 2.0])
    [array([ 9441442522235856127, 17532960557476522086,                    0],
          dtype=uint64), 2.0]
    """

    types: tuple[Type, ...]

    @classmethod
    def of(cls, variables: Iterable[Variable]) -> Boundary:
        """Return the boundary of some variables."""
        return cls(tuple(variable.type for variable in variables))

    @property
    def is_plain(self) -> bool:
        """Whether all values are arrays of one tensor."""
        return not any(isinstance(t, ScalarType | NoneTypeT) or encoding_of(t) for t in self.types)

    @property
    def width(self) -> int:
        """Number of the tensors."""
        return sum(len(tensor_types(type_)) for type_ in self.types)

    def grouped[T](self, tensors: Sequence[T]) -> list[Sequence[T]]:
        """Group the tensors of all values by value."""
        groups, start = [], 0
        for type_ in self.types:
            end = start + len(tensor_types(type_))
            groups.append(tensors[start:end])
            start = end
        return groups

    def encode(self, values: Sequence[Any]) -> list[Any]:
        """Return the arrays of values."""
        arrays: list[Any] = []
        for type_, value in zip(self.types, values, strict=True):
            encoding = encoding_of(type_)
            arrays += [value] if encoding is None else encoding.encode(type_, value)
        return arrays

    def decode(
        self, arrays: Sequence[np.ndarray], former: Sequence[Any] | None = None
    ) -> list[Any]:
        """Return the values of arrays.

        Parameters
        ----------
        former
            For each value the one of its type that it follows, None if unknown.
        """
        former = [None] * len(self.types) if former is None else former
        return [
            _decoded(type_, group, value)
            for type_, group, value in zip(self.types, self.grouped(arrays), former, strict=True)
        ]

    def sampled(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return arrays of values, made of arrays of any numbers."""
        sampled: list[np.ndarray] = []
        for type_, group in zip(self.types, self.grouped(arrays), strict=True):
            encoding = encoding_of(type_)
            sampled += group if encoding is None else encoding.sampled(type_, group)
        return sampled

    def __add__(self, other: Boundary) -> Boundary:
        """Return the boundary of the values of both."""
        return Boundary((*self.types, *other.types))

    def names(self, names: Sequence[str]) -> list[str]:
        """Return the names of the tensors of named values.

        Examples
        --------
        >>> import pytensor.tensor as pt
        >>> Boundary.of([pt.random.rng(), pt.scalar()]).names(["rng", "x"])
        ['rng', 'x']
        """
        return [
            name
            for type_, value_name in zip(self.types, names, strict=True)
            for name in part_names(type_, value_name)
        ]

    def value_names(self, names: Sequence[str], tensors: Sequence[str]) -> list[str]:
        """Return the names of values in a model; a value of one tensor has its name."""
        groups = self.grouped(tensors)
        return [
            group[0] if len(group) == 1 else name for name, group in zip(names, groups, strict=True)
        ]

    def described(self, names: Sequence[str], tensors: Sequence[str]) -> dict[str, Any]:
        """Return the encoding and parts of the encoded values, for the metadata of a model.

        Parameters
        ----------
        names
            Names of the values.
        tensors
            Names of inputs or outputs of the model, maybe with others after them.
        """
        described = {}
        for type_, name, group in zip(
            self.types, self.value_names(names, tensors), self.grouped(tensors), strict=True
        ):
            encoding = encoding_of(type_)
            if encoding is not None:
                parts = dict(zip(encoding.parts(type_), group, strict=True))
                details = encoding.details(type_)
                described[name] = {"encoding": encoding.name, "parts": parts, **details}
        return described


def part_names[N: (str, str | None)](type_: Type, name: N) -> list[N]:
    """Return the names of the tensors of a value: its own, or ``<value>.<part>`` for several."""
    encoding, width = encoding_of(type_), len(tensor_types(type_))
    if encoding is None or width == 1 or not name:
        return [name] * width
    return [f"{name}.{part}" for part in encoding.parts(type_)]


def _decoded(type_: Type, arrays: Sequence[np.ndarray], former: Any) -> Any:
    encoding = encoding_of(type_)
    if encoding is not None and former is not None:
        return encoding.succeed(type_, arrays, former)
    if encoding is not None:
        return encoding.decode(type_, arrays)
    if isinstance(type_, NoneTypeT):
        return None
    # A runtime has 0-d arrays only, PyTensor also NumPy's scalars.
    return arrays[0][()] if isinstance(type_, ScalarType) else arrays[0]
