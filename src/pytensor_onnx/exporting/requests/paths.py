"""Check the paths of output files before the export."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pytensor_onnx.errors import ArgumentError, MissingFolderError


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
