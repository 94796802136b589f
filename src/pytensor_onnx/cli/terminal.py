"""Print text safely: escape control characters in names from files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text


def printable(text: Any) -> str:
    r"""Escape the characters of a text that a terminal does not print.

    These include escape sequences and characters that change the direction of a line. Line ends
    stay.

    Examples
    --------
    >>> print(printable("a\x1b[31mb\u202e"))
    a\x1b[31mb\u202e
    """
    return "".join(
        character
        if character.isprintable() or character == "\n"
        else character.encode("unicode_escape").decode()
        for character in str(text)
    )


def plain(text: Any) -> Text:
    """Return a text to print without markup and escape sequences."""
    return Text(printable(text))


def one_line(text: Any) -> str:
    """Return a printable text with escaped line ends."""
    return printable(text).replace("\n", "\\n")


def make_table(title: str, *columns: str, rows: Iterable[Sequence[Any]] = ()) -> Table:
    """Return a table of plain texts, with a header if a column has a name."""
    table = Table(*columns, title=plain(title), title_justify="left", show_header=any(columns))
    for column in table.columns[1:]:
        column.overflow = "fold"
    for row in rows:
        table.add_row(*map(plain, row))
    return table
