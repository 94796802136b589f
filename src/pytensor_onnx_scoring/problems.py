"""Errors of tables and files that do not fit, with all problems at once, and exceptions of runs."""

from collections.abc import Collection, Sequence
from difflib import get_close_matches

_LIBRARIES = {"pytensor_onnx", "onnxruntime"}
_TYPES_OF_RUNS = {*_LIBRARIES, "builtins"}


class ScoringError(ValueError):
    """Raised if a table does not fit a file, or a file cannot score tables."""


class MissingConstantError(ScoringError):
    """Raised if an input without rows has no value in ``constants``."""


def raise_problems(
    problems: Sequence[str], summary: str, kind: type[ScoringError] = ScoringError
) -> None:
    """Raise one error of all problems, if there are any.

    Examples
    --------
    >>> problems = ["column a is missing", "column b has nulls"]
    >>> raise_problems(problems, "the table does not fit the file")
    Traceback (most recent call last):
    pytensor_onnx_scoring.problems.ScoringError: the table does not fit the file:
    - column a is missing
    - column b has nulls
    >>> raise_problems([], "the table does not fit the file")
    """
    if problems:
        listing = "\n".join(f"- {problem}" for problem in dict.fromkeys(problems))
        raise kind(f"{summary}:\n{listing}")


def is_interruption(error: BaseException) -> bool:
    """Return whether an exception of a run is neither of pytensor-onnx nor of ONNX Runtime.

    Handlers of signals, such as those of time limits, run when the runtime returns, and raise their
    exceptions where its errors are caught.

    Parameters
    ----------
    error
        An exception that was caught.

    Examples
    --------
    >>> def stop():
    ...     raise TimeoutError("after 3 s")
    >>> try:
    ...     stop()
    ... except TimeoutError as error:
    ...     is_interruption(error)
    True
    """
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    raised_in = "" if at is None else str(at.tb_frame.f_globals.get("__name__"))
    # Exceptions that other threads set have no frame of their own.
    is_foreign = type(error).__module__.partition(".")[0] not in _TYPES_OF_RUNS
    return is_foreign or isinstance(error, OSError) or raised_in.partition(".")[0] not in _LIBRARIES


def similar(name: str, known: Collection[str]) -> str:
    """Return the known names to choose from: the most similar ones, or all.

    Examples
    --------
    >>> similar("agee", ["age", "income"]), similar("x", ["age", "income"])
    ('age', 'age, income')
    """
    return ", ".join(get_close_matches(name, known, n=1) or known) or "none"


def meant(name: str, known: Collection[object]) -> str:
    """Return a question for the most similar name, empty if none is similar.

    Examples
    --------
    >>> meant("age", ["Age", "income"]), meant("age", ["income"])
    (': did you mean Age?', '')
    """
    lower = {str(x).lower(): x for x in known}
    found = get_close_matches(name.lower(), lower, n=1)
    return f": did you mean {lower[found[0]]}?" if found else ""
