"""Texts and tables for a terminal, with the control characters of names from files escaped."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text


def printable(text: Any) -> str:
    r"""Escape the characters of a text that a terminal does not print.

    These include escape sequences and characters that change the direction of a line. Line ends
    stay, and tabs become spaces.

    Examples
    --------
    >>> print(printable("a\x1b[31mb\u202e"))
    a\x1b[31mb\u202e
    """
    return _escaped(str(text).replace("\t", "    "), kept="\n")


def _escaped(text: str, kept: str = "") -> str:
    return "".join(
        character
        if character.isprintable() or character in kept
        else character.encode("unicode_escape").decode()
        for character in text
    )


def plain(text: Any) -> Text:
    """Return a text to print without markup and escape sequences."""
    from rich.text import Text

    return Text(printable(text))


def one_line(text: Any) -> str:
    """Return a printable text with escaped line ends and tabs."""
    return _escaped(str(text))


def duration(seconds: float) -> str:
    """Return a time with three digits, in seconds or in a smaller unit.

    Examples
    --------
    >>> duration(4.2e-6), duration(0.0234), duration(61.0)
    ('4.2 µs', '23.4 ms', '61 s')
    """
    factor, unit = (1.0, "s") if seconds >= 1 else (1e3, "ms") if seconds >= 1e-3 else (1e6, "µs")
    value = seconds * factor
    return f"{value:.3g} {unit}" if value < 100 else f"{value:,.0f} {unit}"


def make_table(title: str, *columns: str, rows: Iterable[Sequence[Any]] = ()) -> Table:
    """Return a table of plain texts, with a header if a column has a name."""
    from rich.table import Table

    table = Table(*columns, title=plain(title), title_justify="left", show_header=any(columns))
    for column in table.columns[1:]:
        column.overflow = "fold"
    for row in rows:
        table.add_row(*map(plain, row))
    return table


def terminal_width() -> int | None:
    """Return the width of the terminal, None if the output goes to a file or to a program."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def show(*parts: Any) -> None:
    """Print tables, and texts without markup and escape sequences."""
    for part in parts:
        if isinstance(part, str):
            print(printable(part))
        else:
            from rich.console import Console

            Console().print(part)


def print_json(data: Any) -> None:
    """Print data as JSON."""
    print(json.dumps(data, indent=2))
