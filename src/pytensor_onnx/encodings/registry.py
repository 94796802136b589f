"""The registry of encodings, and values at the boundary of a graph."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.graph.type import Type
from pytensor.scalar.basic import ScalarType
from pytensor.tensor.type import TensorType
from pytensor.tensor.type_other import NoneTypeT
from pytensor.tensor.variable import TensorConstant

from pytensor_onnx.digests import content_key
from pytensor_onnx.late_names import import_modules
from pytensor_onnx.named_dims import is_tensor

Tensors = Sequence[Variable]
Rewrite = Callable[[Op, Apply, Sequence[Tensors]], Sequence[Tensors] | None]

_ENCODINGS: list[Encoding] = []


class Encoding(ABC):
    """Encoding of the values of a type as tensors.

    A subclass is registered by `register_encoding`. In a file, the one tensor of a value has the
    name of the value; several have ``<value>.<part>``. The metadata ``encodings`` of a model name
    the parts of each input and output.

    Values of a tensor type (complex numbers) may be traced by a Scan: each part then has the
    leading axes of the value.
    """

    name: str
    """Name in the metadata of a model."""

    returned_as_tensors: bool = False
    """Whether an `ONNXProgram` returns the tensors, for callers that pass them on."""

    warning_if_stored: str = ""
    """Warning where a shared value without an update becomes part of a model."""

    advice: str = ""
    """Hint for an Op without a rewrite; Ops of users may have a lowering of their own."""

    def __init__(self) -> None:
        self._rewrites: dict[type[Op], Rewrite] = {}
        self._modules: list[str] = []

    @abstractmethod
    def serves(self, type_: Type) -> bool:
        """Return whether the values of a type have this encoding."""

    @abstractmethod
    def parts(self, type_: Any) -> Mapping[str, TensorType]:
        """Return the types of the tensors by the names of the parts, in order."""

    @abstractmethod
    def encode(self, type_: Any, value: Any) -> Sequence[np.ndarray]:
        """Return the arrays of a value."""

    @abstractmethod
    def decode(self, type_: Any, arrays: Sequence[np.ndarray]) -> Any:
        """Return the value of arrays."""

    def succeed(self, type_: Any, arrays: Sequence[np.ndarray], former: Any) -> Any:
        """Decode arrays to the value that replaces a former value of the type."""
        return self.decode(type_, arrays)

    def details(self, type_: Any) -> Mapping[str, str]:
        """Return further entries of a type in the metadata of a file, such as a format."""
        return {}

    def type_of(self, parts: Mapping[str, TensorType], details: Mapping[str, str]) -> Type:
        """Return the type whose tensors have the types of some parts, to load a file."""
        raise NotImplementedError(f"files with values of the encoding {self.name} are not loaded")

    def sampled(self, type_: Any, arrays: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        """Return the arrays of a value, made of arrays of any numbers for its parts.

        Verification draws these; parts that depend on each other are to be made here.
        """
        return arrays

    def owns(self, op: Op) -> bool:
        """Return whether an Op on tensors alone, such as a gradient, has a rewrite here."""
        return False

    def following(self, fgraph: FunctionGraph, variable: Variable) -> Variable | None:
        """Return the value of a shared variable after a graph has used it, None if unknown.

        A draw changes a generator; most values are unchanged.
        """
        return variable

    def rewrites(self, *op_types: type[Op]) -> Callable[[Rewrite], Rewrite]:
        """Register the rewrite of an Op to operations on the tensors of its operands.

        The function takes the Op, its node, and the tensors of each input: several for an encoded
        value, one for a tensor. It returns the tensors of each output, or None for an unsupported
        case. Loops, branches, functions and copies need no such function.
        """

        def register(rewrite: Rewrite) -> Rewrite:
            self._rewrites.update(dict.fromkeys(op_types, rewrite))
            return rewrite

        return register

    def has_rewrites_in(self, module: str) -> None:
        """Name a module or package that registers rewrites, imported when a graph needs one."""
        self._modules.append(module)

    def rewrite_of(self, op: Op) -> Rewrite | None:
        """Return the rewrite of an Op, registered for its class or a base class."""
        for module in self._modules:
            import_modules(module)
        found = (self._rewrites[kind] for kind in type(op).__mro__ if kind in self._rewrites)
        return next(found, None)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def register_encoding[E: type[Encoding]](encoding: E) -> E:
    """Register an encoding; a later one takes precedence."""
    _ENCODINGS.insert(0, encoding())
    return encoding


def registered[E: Encoding](kind: type[E]) -> E:
    """Return the encoding of a class."""
    return next(encoding for encoding in _ENCODINGS if type(encoding) is kind)


def encoding_of(type_: Type) -> Encoding | None:
    """Return the encoding of a type, None for tensors and other types without one.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> encoding_of(pt.random.rng().type).name, encoding_of(pt.vector().type)
    ('generator', None)
    """
    # Most types are tensors of real numbers, which have no encoding.
    if type(type_) is TensorType and not type_.dtype.startswith("complex"):
        return None
    return next((encoding for encoding in _ENCODINGS if encoding.serves(type_)), None)


def encoding_named(name: str) -> Encoding:
    """Return the encoding that has a name in the metadata of a model."""
    return next(encoding for encoding in _ENCODINGS if encoding.name == name)


def encoding_for(node: Apply) -> Encoding | None:
    """Return the encoding of a node's variables or of its Op, or None if all are plain tensors.

    The one with precedence knows values of the others: sparse matrices are multiplied with complex
    arrays, but no operation on complex arrays takes the tensors of a sparse matrix. The Op's counts
    only where all values are tensors or encoded: others have no tensors to rewrite.
    """
    variables = (*node.inputs, *node.outputs)
    found = [encoding_of(variable.type) for variable in variables]
    if all(has_tensors(variable.type) for variable in variables):
        found.append(owner_of(node.op))
    return next((encoding for encoding in _ENCODINGS if encoding in found), None)


def owner_of(op: Op) -> Encoding | None:
    """Return the encoding to which an Op on tensors is registered, or None (the usual case)."""
    return next((encoding for encoding in _ENCODINGS if encoding.owns(op)), None)


def is_encoded(variable: Variable) -> bool:
    """Return whether the value of a variable has an encoding."""
    return encoding_of(variable.type) is not None


def has_tensors(type_: Type) -> bool:
    """Return whether a model can hold a value of a type, as a tensor or encoded."""
    return is_tensor(type_) or encoding_of(type_) is not None


def tensor_types(type_: Type) -> list[Type]:
    """Return the types of the tensors of a type; the type itself if it has no encoding.

    None has no tensors.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> tensor_types(pt.random.rng().type)
    [TensorType(uint64, shape=(3,))]
    """
    if isinstance(type_, NoneTypeT):
        return []
    encoding = encoding_of(type_)
    return [type_] if encoding is None else list(encoding.parts(type_).values())


def constant_of(variable: Variable, value: Any) -> Constant:
    """Return a constant with the type and the name of a variable."""
    if is_tensor(variable.type):
        return tensor_constant(variable.type, np.array(value), variable.name)
    return Constant(variable.type, value, name=variable.name)


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
