"""Registry of encodings, from a PyTensor type to the tensors of its values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.graph.type import Type
from pytensor.tensor.type import TensorType
from pytensor.tensor.type_other import NoneTypeT

from pytensor_onnx.encodings.array_constants import tensor_constant
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
