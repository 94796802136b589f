"""Changes that an export makes to a graph, and the errors that they bring, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Change:
    """One kind of change that an export made, an error that a change brings, or advice.

    Attributes
    ----------
    text
        What changed, in words.
    count
        Number of nodes changed.
    error
        Relative error of an output, or the factor by which an operation multiplies it; None where
        the change brings none.
    line
        Line of the user's code that it concerns, empty if unknown.

    Examples
    --------
    >>> print(Change("Range of int64 made exact", count=2))
    Range of int64 made exact (2 times)
    """

    text: str
    count: int = 1
    error: float | None = None
    line: str = ""

    def __str__(self) -> str:
        """Describe the change in one line."""
        times = f" ({self.count} times)" if self.count > 1 else ""
        return f"{self.text}{times}  {self.line}".rstrip()


def changes_of(counts: Mapping[str, int]) -> list[Change]:
    """Return the changes of some texts, with their numbers.

    Examples
    --------
    >>> changes_of({"Range of int64 made exact": 2})[0].count
    2
    """
    return [Change(text, count) for text, count in counts.items()]
