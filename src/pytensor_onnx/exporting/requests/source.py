"""Collect the source of an export: a graph, its updates, and the values of shared variables."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import graph_inputs
from pytensor.graph.type import Type

from pytensor_onnx.encodings import encoding_of
from pytensor_onnx.errors import ArgumentError, PyTensorONNXError
from pytensor_onnx.named_dims import is_tensor
from pytensor_onnx.user_code import NOT_OF_USERS, user_line

Updates = Mapping[SharedVariable, Variable] | Iterable[tuple[SharedVariable, Variable]]


@dataclass
class Source:
    """Graph to export, with the values of its variables that are not inputs."""

    inputs: list[Variable]
    results: list[Variable]
    updates: dict[Variable, Variable]
    values: dict[Variable, Any] = field(default_factory=dict)
    returns_single: bool = False
    name: str | None = None
    dynamic: list[Collection[int]] = field(default_factory=list)


def check_inputs(inputs: Sequence[Variable], results: Sequence[Variable]) -> list[SharedVariable]:
    """Return the shared variables of a graph; all other inputs must be given."""
    given = set(inputs)
    if len(given) != len(inputs):
        raise PyTensorONNXError("a variable stands more than once in the list of inputs")
    free = [v for v in graph_inputs(results, blockers=given) if v not in given]
    missing = [v for v in free if not isinstance(v, Constant | SharedVariable)]
    if missing:
        listing = "\n".join(f"- {v} of type {v.type}  {user_line(v)}".rstrip() for v in missing)
        raise PyTensorONNXError(
            f"the outputs depend on variables that are not among the inputs:\n{listing}"
        )
    return [v for v in free if isinstance(v, SharedVariable)]


def read_updates(updates: Updates | None) -> dict[SharedVariable, Variable]:
    """Return the new values of shared variables, converted to their types."""
    values: dict[SharedVariable, Variable] = {}
    for variable, new in dict(updates or {}).items():
        if not isinstance(variable, SharedVariable):
            raise ArgumentError(
                f"updates give new values to shared variables, and {variable} is none: "
                "updates={shared: new_value}"
            )
        values[variable] = new if isinstance(new, Variable) else variable.type.filter_variable(new)
    problems = [
        f"- {variable} of type {variable.type} is updated by a value of type {new.type}"
        for variable, new in values.items()
        if _differ(variable.type, new.type)
    ]
    if problems:
        listing = "\n".join(problems)
        raise PyTensorONNXError(f"updates change the type of their variables:\n{listing}")
    return values


def _differ(type_: Type, new: Type) -> bool:
    """Return whether an update has a type that its shared variable cannot hold."""
    if is_tensor(type_) and is_tensor(new):
        return bool(new.dtype != type_.dtype or new.ndim != type_.ndim)
    return encoding_of(type_) is not None and not type_.is_super(new)


def warn_of_stored_values(source: Source) -> None:
    """Warn of shared values that become constants, if their encoding asks for it."""
    texts: dict[str, list[str]] = {}
    for variable in source.values:
        encoding = encoding_of(variable.type)
        if encoding is not None and encoding.warning_if_stored and variable not in source.updates:
            texts.setdefault(encoding.warning_if_stored, []).append(str(variable))
    for text, names in texts.items():
        warnings.warn(f"{', '.join(names)}: {text}", UserWarning, skip_file_prefixes=NOT_OF_USERS)
