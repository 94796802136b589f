"""The error of a table or a file that does not fit, with all problems at once."""

from collections.abc import Collection, Sequence
from difflib import get_close_matches


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
