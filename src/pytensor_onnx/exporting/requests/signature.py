"""Convert the arguments and results of a program to and from the tensors of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Variable
from pytensor.graph.type import Type

from pytensor_onnx.encodings import Boundary, encoding_of
from pytensor_onnx.encodings.generators import in_dtype
from pytensor_onnx.errors import InputError
from pytensor_onnx.exporting.requests.descriptions import describe, describe_given
from pytensor_onnx.operators.dims import dims_of
from pytensor_onnx_scoring.exact_casts import NUMBERS, exactly, first_changed, no_sequence

RETURNS = "returns"
"""The entry of the metadata that is ``"list"`` where a program has one output in a list."""

WIDER = {"float64": (), "float32": ("float64",), "float16": ("float64", "float32")}
"""Dtypes that each precision replaces."""

_DIGITS = 50
"""Most digits of a number in a message."""


@dataclass(frozen=True)
class Signature:
    """Inputs that a caller passes, and outputs that are returned.

    Attributes
    ----------
    inputs, outputs
        The values.
    names
        Names of the inputs.
    returns_single
        Whether the one output is returned by itself, and not in a list.
    """

    inputs: Boundary
    outputs: Boundary
    names: Sequence[str]
    returns_single: bool

    def describe_results(self, model: ir.Model) -> None:
        """Write into the metadata whether the one output is returned in a list, for `load`."""
        model.metadata_props.pop(RETURNS, None)
        if len(self.outputs.types) == 1 and not self.returns_single:
            model.metadata_props[RETURNS] = "list"

    def in_order(
        self,
        arguments: Sequence[Any],
        named: Mapping[str, Any],
        values: Sequence[ir.Value],
        state: Mapping[str, np.ndarray],
    ) -> tuple[Any, ...]:
        """Return all arguments in the order of the inputs.

        Parameters
        ----------
        arguments, named
            The arguments, in order and by name.
        values
            The inputs of the model that stand for them.
        state
            The state, whose names are not among the inputs.
        """
        names = self.names
        problems = [
            f"{name} is a part of the state: set program.state[{name!r}]"
            if name in state
            else f"there is no input {name!r}"
            for name in named
            if name not in names
        ]
        problems += [f"{n} is given twice" for n in names[: len(arguments)] if n in named]
        problems += [f"{n} is missing" for n in names[len(arguments) :] if n not in named]
        if problems or len(arguments) > len(names):
            listing = ", ".join(map(describe, values)) or "none"
            problems = problems or [f"{len(arguments)} were given in order"]
            raise InputError(f"{'; '.join(problems)} (the inputs are {listing})")
        return (*arguments, *(named[name] for name in names[len(arguments) :]))

    def arrays(
        self,
        arguments: Sequence[Any],
        values: Sequence[ir.Value],
        variables: Sequence[Variable],
    ) -> list[np.ndarray]:
        """Return the arrays of the arguments, or raise for all that do not fit.

        Parameters
        ----------
        arguments
            One for each input; the tensor itself may be given for a value with one.
        values, variables
            The inputs of the model, and the PyTensor tensors that they are.
        """
        if len(arguments) != len(self.names):
            raise InputError(
                f"{len(self.names)} inputs are expected ({', '.join(map(describe, values))}), "
                f"{len(arguments)} were given"
            )
        checked = _Checked()
        grouped = self.inputs.grouped(list(zip(values, variables, strict=False)))
        for type_, group, argument in zip(self.inputs.types, grouped, arguments, strict=True):
            tensors = _tensors(type_, argument, [variable.type.dtype for _, variable in group])
            if tensors is None:
                names = ", ".join(describe(value) for value, _ in group)
                checked.problems.append(f"input {names} was given {describe_given(argument)}")
                continue
            for (value, variable), tensor in zip(group, tensors, strict=True):
                checked.add(value, variable, tensor)
        if checked.problems:
            raise InputError("; ".join(checked.problems))
        return checked.arrays

    @cached_property
    def _has_plain_outputs(self) -> bool:
        return self.outputs.is_plain

    def results(self, arrays: Sequence[np.ndarray]) -> Any:
        """Return the results of a program for the tensors of its outputs."""
        if self._has_plain_outputs:
            return arrays[0] if self.returns_single else list(arrays)
        groups = self.outputs.grouped(arrays)
        results = [
            _returned(type_, group) for type_, group in zip(self.outputs.types, groups, strict=True)
        ]
        return results[0] if self.returns_single else results


@dataclass(frozen=True, slots=True)
class _PlainInput:
    """An input of one tensor, whose array needs no conversion."""

    name: str
    dtype: np.dtype
    ndim: int
    sizes: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class PlainInputs:
    """Inputs that are one tensor each, for calls with arrays and numbers that fit as they are."""

    inputs: Sequence[_PlainInput] | None

    @classmethod
    def of(
        cls, signature: Signature, values: Sequence[ir.Value], variables: Sequence[Variable]
    ) -> PlainInputs:
        """Return the inputs of a program, none if some are not single tensors."""
        if not signature.inputs.is_plain:
            return cls(None)
        inputs = []
        for value, variable in zip(values, variables, strict=False):
            dims = dims_of(value) or ()
            sizes = tuple((i, dim) for i, dim in enumerate(dims) if isinstance(dim, int))
            dtype = np.dtype(variable.type.dtype)
            inputs.append(_PlainInput(str(value.name), dtype, len(dims), sizes))
        return cls(inputs)

    def feed(self, arguments: Sequence[Any]) -> dict[str, np.ndarray] | None:
        """Return the arrays by name, or None if an argument needs a conversion or does not fit."""
        if self.inputs is None or len(arguments) != len(self.inputs):
            return None
        feed = {}
        for own, value in zip(self.inputs, arguments):  # noqa: B905  (on the hot path)
            if own.ndim == 0 and type(value) is own.dtype.type:
                feed[own.name] = np.asarray(value)
                continue
            if not (
                type(value) is np.ndarray
                and value.dtype is own.dtype
                and value.ndim == own.ndim
                and value.flags.aligned
            ):
                return None
            for axis, size in own.sizes:
                if value.shape[axis] != size:
                    return None
            feed[own.name] = value
        return feed


class _Checked:
    """Arrays that fit the inputs of a model, and the problems of other arguments."""

    def __init__(self) -> None:
        self.arrays: list[np.ndarray] = []
        self.problems: list[str] = []
        self._sizes: dict[str, tuple[int, str]] = {}

    def add(self, value: ir.Value, variable: Variable, tensor: Any) -> None:
        type_ = variable.type
        try:
            array = np.asarray(type_.filter(_fitting(tensor, type_), allow_downcast=None))
        # The first for objects that are no numbers, the second for integers beyond the dtype.
        except (AttributeError, OverflowError, TypeError, ValueError):
            given = f"{describe_given(tensor)}{_hint(type_.dtype, tensor)}"
            self.problems.append(f"input {describe(value)} was given {given}")
            return
        self.arrays.append(array)
        for dim, size in zip(dims_of(value) or (), array.shape, strict=True):
            if isinstance(dim, int) and dim != size:
                given = describe_given(array)
                self.problems.append(f"input {describe(value)} was given {given}")
            elif isinstance(dim, str):
                known, owner = self._sizes.setdefault(dim, (size, str(value.name)))
                if known != size:
                    self.problems.append(
                        f"dimension {dim!r} is {known} in {owner} and {size} in {value.name}"
                    )


def _fitting(given: Any, type_: Any) -> Any:
    """Return an argument as an aligned array of a type; Python floats and variables unchanged.

    PyTensor itself converts the number of a float to its own precision.

    Raises
    ------
    ValueError
        If a number would change, or is masked, or dims are not those of the type.
    """
    is_float = isinstance(given, float | np.floating)
    if is_float or isinstance(given, Variable):
        return given
    # An array of xarray, whose dims the type puts in its order.
    if hasattr(type_, "dims") and hasattr(given, "dims"):
        given = given.transpose(*type_.dims)
    if np.ma.is_masked(given):
        raise ValueError("masked values")
    converted = exactly(given, type_.dtype)
    if converted is None:
        raise ValueError("numbers that change")
    return _aligned(converted)


def _aligned(array: np.ndarray) -> np.ndarray:
    return array if array.flags.aligned else array.copy()


def _hint(dtype: str, argument: Any) -> str:
    """Return the first number that an input cannot hold, and the way to give it."""
    if np.ma.is_masked(argument):
        return " with masked values: fill or drop them"
    try:
        given, lost = np.asarray(argument), first_changed(argument, dtype)
    except (TypeError, ValueError):
        return ""
    if lost is None or no_sequence(argument):
        return ""
    place = f"at {list(lost[0])}, " if lost[0] else ""
    if kind := no_sequence(lost[1]):
        return f": {place}{kind}"
    number = f"{place}{str(lost[1])[:_DIGITS]} is no number of {dtype}"
    hint = f': {number}. Convert it by .astype("{dtype}")'
    if given.dtype.name in WIDER.get(dtype, ()):
        return f'{hint}, or export {given.dtype} with precision="{given.dtype}"'
    return f"{hint} if it may change"


def _tensors(type_: Type, argument: Any, dtypes: Sequence[str]) -> Sequence[Any] | None:
    """Return the tensors of an argument, None if it is no value of the type."""
    encoding = encoding_of(type_)
    if encoding is None:
        return [argument]
    try:
        arrays = encoding.encode(type_, type_.filter(_same_numbers(type_, argument)))
    except (AttributeError, OverflowError, TypeError, ValueError):
        return [argument] if len(dtypes) == 1 else None
    return [in_dtype(x, dtype) for x, dtype in zip(arrays, dtypes, strict=True)]


def _same_numbers(type_: Type, argument: Any) -> Any:
    """Return a sparse matrix or complex numbers in the dtype of a type, if no number changes."""
    dtype = getattr(type_, "dtype", None)
    if dtype is None:
        return argument
    if isinstance(argument, np.ndarray | list | tuple | int):
        argument = _aligned(np.asarray(argument))
    if getattr(argument, "dtype", dtype) == dtype:
        return argument
    numbers = argument.data if hasattr(argument, "indptr") else np.asarray(argument)
    if numbers.dtype.kind not in NUMBERS + "c" or np.dtype(dtype).kind != "c" == numbers.dtype.kind:
        return argument
    own = np.dtype(dtype).type(0).real.dtype.name
    if any(exactly(x, own) is None for x in (numbers.real, numbers.imag)):
        raise ValueError("numbers that change")
    return argument.astype(dtype)


def _returned(type_: Type, arrays: Sequence[np.ndarray]) -> Any:
    encoding = encoding_of(type_)
    if encoding is not None and encoding.returned_as_tensors:
        return arrays[0] if len(arrays) == 1 else list(arrays)
    return Boundary((type_,)).decode(arrays)[0]
