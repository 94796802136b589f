"""The exceptions of pytensor-onnx and the text of what a user can do about them."""

from collections.abc import Sequence
from dataclasses import dataclass


class PyTensorONNXError(Exception):
    """Base class of all errors raised by pytensor-onnx."""


class UnsupportedOpError(PyTensorONNXError, NotImplementedError):
    """A graph holds operations that cannot be converted; the message lists all of them."""


class UnsupportedTypeError(PyTensorONNXError, TypeError):
    """A graph holds variables whose type has no counterpart in ONNX."""


class VerificationError(PyTensorONNXError, AssertionError):
    """An exported model does not agree with PyTensor."""


class InputError(PyTensorONNXError, ValueError, TypeError):
    """A value given to an exported model does not fit the input it was given for."""


class ArgumentError(PyTensorONNXError, ValueError, TypeError):
    """An argument of an exporting function is not one that it takes."""


class MissingFolderError(PyTensorONNXError, FileNotFoundError):
    """The folder of a file to write does not exist."""


class RunError(PyTensorONNXError):
    """A model fails when it runs; the message says where in the user's graph."""


class RunIndexError(RunError, IndexError):
    """An index is out of range."""


class RunValueError(RunError, ValueError):
    """Sizes do not fit, or a check of the graph fails."""


class RunAssertionError(RunError, AssertionError):
    """An assertion of the graph does not hold."""


class RunZeroDivisionError(RunError, ZeroDivisionError):
    """An integer is divided by zero."""


class UnsupportedCase(Exception):  # noqa: N818  (control flow between a lowering and the converter)
    """Raised by a lowering for a case it cannot express; the converter collects them.

    Parameters
    ----------
    reason
        Why the case cannot be converted.
    hint
        What the user can do instead.
    """

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


@dataclass(frozen=True)
class Problem:
    """One thing in a graph that cannot be converted."""

    subject: str
    variable: str
    where: str
    reason: str
    hint: str
    is_type: bool = False

    def __str__(self) -> str:
        computed = f", which computes {self.variable}" if self.variable else ""
        lines = [f"- {self.subject}{computed}"]
        if self.is_type:
            lines = [f"- variable {self.variable} of type {self.subject}"]
        if self.where:
            lines.append(f"    made at: {self.where}")
        lines.append(f"    reason:  {self.reason}")
        if self.hint:
            lines.append(f"    instead: {self.hint}")
        return "\n".join(lines)


def raise_problems(problems: Sequence[Problem]) -> None:
    """Raise one error that lists every problem, or return when there is none.

    Raises
    ------
    UnsupportedOpError
        If an operation cannot be converted.
    UnsupportedTypeError
        If only the types of variables are the matter.
    """
    problems = list(dict.fromkeys(problems))
    if not problems:
        return
    error = UnsupportedTypeError if all(p.is_type for p in problems) else UnsupportedOpError
    count = "1 part" if len(problems) == 1 else f"{len(problems)} parts"
    listing = "\n".join(map(str, problems))
    raise error(f"{count} of the graph cannot be converted to ONNX:\n{listing}")
