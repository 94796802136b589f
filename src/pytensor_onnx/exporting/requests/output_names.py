"""Names of outputs, and paths of files."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from pytensor.graph.basic import Variable

from pytensor_onnx.errors import ArgumentError, MissingFolderError

FORM = "export_onnx([x], y, 'model.onnx')"
_NAME = re.compile(r"[\w.:/\-]+")


def is_name(given: Any) -> bool:
    """Return whether a value can name an output or an axis.

    Examples
    --------
    >>> is_name("batch"), is_name("my batch"), is_name(0)
    (True, False, False)
    """
    return isinstance(given, str) and _NAME.fullmatch(given) is not None


def read_names(names: Sequence[str] | None) -> list[str] | None:
    """Return the names of outputs as a list.

    Raises
    ------
    ArgumentError
        If one is not a name, or occurs twice.
    """
    if names is None:
        return None
    listed = [names] if isinstance(names, str) else list(names)
    for name in listed:
        if not is_name(name):
            raise ArgumentError(
                f"{name!r} cannot name an output: take letters, digits and the characters _ . : / -"
            )
    if len(set(listed)) < len(listed):
        raise ArgumentError(f"the names of the outputs are not all different: {listed}")
    return listed


def check_names(
    names: Sequence[str] | None, results: Sequence[Variable], used: Collection[str]
) -> None:
    """Raise unless each result has one name that no input has."""
    if names is None:
        return
    if len(names) != len(results):
        raise ArgumentError(
            f"output_names has {len(names)} names for {len(results)} outputs: {list(names)}"
        )
    for name in names:
        if name in used:
            raise ArgumentError(f"{name!r} cannot name an output: an input has this name")


def check_outputs(tensors: Sequence[str]) -> None:
    """Raise if all results are None: a file leaves these out, and needs an output."""
    if not tensors:
        raise ArgumentError(f"all outputs are None, and a file needs at least one: {FORM}")


def check_file(path: Any, argument: str = "path") -> None:
    """Raise if a file cannot be written to a path; None is allowed.

    Parameters
    ----------
    path
        The path.
    argument
        Name of the argument, for the message.

    Raises
    ------
    MissingFolderError
        If its folder does not exist.
    ArgumentError
        If it is not a path, is the path of a folder, or one where no file can be made.

    Examples
    --------
    >>> check_file("missing/model.onnx")
    Traceback (most recent call last):
    pytensor_onnx.errors.MissingFolderError: path='missing/model.onnx' cannot be written: ...
    """
    if path is None:
        return
    if not isinstance(path, str | os.PathLike):
        raise ArgumentError(
            f"{argument} is of type {type(path).__name__}: give the name of a file, or take the "
            "bytes from program.proto.SerializeToString()"
        )
    file = Path(path)
    if file.is_dir():
        raise ArgumentError(f"{argument}={str(file)!r} is a folder: give the name of a file in it")
    if not file.parent.is_dir():
        raise MissingFolderError(
            f"{argument}={str(file)!r} cannot be written: there is no folder {str(file.parent)!r}"
        )
    if not os.access(file.parent, os.W_OK):
        raise ArgumentError(
            f"{argument}={str(file)!r} cannot be written: {str(file.parent)!r} allows no new files"
        )
