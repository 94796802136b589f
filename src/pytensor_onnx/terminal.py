"""Text for terminals: names in a file may hold what a terminal would obey."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text


def printable(text: Any) -> str:
    r"""Return a text with escapes in place of what a terminal does not show as a character.

    Escape codes are among it, and characters that turn the direction of a line. Line ends stay.

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
    """Return a text that is printed as it is, without markup and escape codes."""
    return Text(printable(text))


def one_line(text: Any) -> str:
    """Return a printable text whose line ends are escaped too."""
    return printable(text).replace("\n", "\\n")


def make_table(title: str, *columns: str, rows: Iterable[Sequence[Any]] = ()) -> Table:
    """Return a table of plain texts, without a header where no column has a name."""
    table = Table(*columns, title=plain(title), title_justify="left", show_header=any(columns))
    for column in table.columns[1:]:
        column.overflow = "fold"
    for row in rows:
        table.add_row(*map(plain, row))
    return table
