"""Exceptions of the package, and their texts with advice for users."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any


class PyTensorONNXError(Exception):
    """Base class of all errors raised by pytensor-onnx."""

    problems: tuple[Any, ...] = ()
    """Each `Problem` of a graph that cannot be converted."""
    way_out: str = ""
    """A call of `from_onnx` that imports the model, if one was found."""


class UnsupportedOpError(PyTensorONNXError, NotImplementedError):
    """Raised for operations that cannot be converted; the message lists all of them."""


class UnsupportedTypeError(PyTensorONNXError, TypeError):
    """Raised for variables whose type has no counterpart in ONNX."""


class NoTapeError(PyTensorONNXError):
    """A model that no tape can run here."""


class UncoveredError(NoTapeError):
    """A model with nodes that a tape does not cover."""


class MissingEngineError(NoTapeError):
    """An installation without the native library, or without the module of WebAssembly."""


class VerificationError(PyTensorONNXError, AssertionError):
    """Raised if an exported model does not agree with PyTensor.

    Parameters
    ----------
    message
        How it differs.
    verification
        The `Verification`, with the differences by value, where results were compared.
    """

    def __init__(self, message: str, verification: Any = None) -> None:
        super().__init__(message)
        self.verification = verification


class InputError(PyTensorONNXError, ValueError, TypeError):
    """Raised for a value that does not fit an input of an exported model."""


class ArgumentError(PyTensorONNXError, ValueError, TypeError):
    """Raised for an invalid argument of an exporting function."""


class MissingExtraError(PyTensorONNXError, ImportError):
    """Raised if an optional package is not installed; the message has the command for it."""


class MissingFolderError(PyTensorONNXError, FileNotFoundError):
    """Raised if the folder of a file to write does not exist."""


class RunError(PyTensorONNXError):
    """Raised if a model fails at run time; the message names the place in the user's graph."""


class RunIndexError(RunError, IndexError):
    """Raised for an index out of range."""


class RunValueError(RunError, ValueError):
    """Raised for sizes that do not fit, and for a failed check of the graph."""


class RunAssertionError(RunError, AssertionError):
    """Raised for a failed assertion of the graph."""


class RunZeroDivisionError(RunError, ZeroDivisionError):
    """Raised for an integer division by zero."""


class LoweringError(PyTensorONNXError, TypeError):
    """Raised for a lowering that misuses an operator of ONNX.

    Attributes
    ----------
    operator
        Name of the operator.
    reason
        What is wrong with its use.
    hint
        Advice to the author of the lowering.
    emitted_at
        Line of the lowering, as ``file:line source``.
    op
        Op that was converted; empty outside a conversion.
    made_at
        Line of the user's code that made the Op.
    """

    def __init__(self, operator: str, reason: str, hint: str = "", emitted_at: str = "") -> None:
        super().__init__(operator, reason, hint, emitted_at)
        self.operator, self.reason, self.hint = operator, reason, hint
        self.emitted_at = emitted_at
        self.op = self.made_at = ""

    def __str__(self) -> str:
        of = f"the lowering of {self.op}" if self.op else "a lowering"
        parts = {
            "emitted at": self.emitted_at,
            "made at": self.made_at,
            "reason": self.reason,
            "instead": self.hint,
        }
        lines = [f"    {name + ':':<11} {text}" for name, text in parts.items() if text]
        return "\n".join([f"{of} misuses the operator {self.operator}:", *lines])


class UnsupportedCase(Exception):  # noqa: N818  (control flow between a lowering and the converter)
    """Raised by a lowering for an unsupported case; the converter collects them.

    Parameters
    ----------
    reason
        Why the case cannot be converted.
    hint
        Advice to the user, such as another operation.
    """

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


@dataclass(frozen=True)
class Problem:
    """A part of a graph that cannot be converted."""

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
    """Raise one error that lists all problems, if there are any.

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
    raised = error(f"{count} of the graph cannot be converted to ONNX:\n{listing}")
    raised.problems = tuple(problems)
    raise raised


def did_you_mean(
    name: str, known: Collection[str], otherwise: str, *, similarity: float = 0.6
) -> str:
    """Return advice for an unknown name: the most similar known one.

    Parameters
    ----------
    name, known
        The unknown name, and the names that are known.
    otherwise
        Advice where no known name is similar.
    similarity
        Smallest similarity that counts, from 0 to 1, as of `difflib.get_close_matches`.

    Examples
    --------
    >>> did_you_mean("taget", ["target", "verify"], "it takes others")
    'did you mean target?'
    >>> did_you_mean("size", ["target", "verify"], "it takes target and verify")
    'it takes target and verify'
    """
    close = get_close_matches(name, known, n=1, cutoff=similarity)
    return f"did you mean {close[0]}?" if close else otherwise


def choose_of(name: str, known: Collection[str]) -> str:
    """Return advice for an unknown name: the most similar known one, or all of them.

    Examples
    --------
    >>> choose_of("bath", ["batch", "row"]), choose_of("x", ["batch", "row"]), choose_of("x", [])
    ('choose of batch', 'choose of batch, row', 'choose of none')
    """
    close = get_close_matches(name, known, n=1) or known or ["none"]
    return f"choose of {', '.join(close)}"
