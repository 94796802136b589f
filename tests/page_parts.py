"""Parts of pages that commands and scripts write."""

import re
from pathlib import Path


def read_part(page: Path, name: str) -> str:
    """Return the text of a page between the comments ``name`` and ``end of name``."""
    return _place(page, name)[0]


def with_part(page: Path, name: str, text: str) -> str:
    """Return a page with another text between the comments ``name`` and ``end of name``."""
    found = _place(page, name)
    return f"{found.string[: found.start()]}{text}{found.string[found.end() :]}"


def write_part(page: Path, name: str, text: str) -> None:
    """Replace the text of a page between the comments ``name`` and ``end of name``."""
    page.write_text(with_part(page, name, text), encoding="utf-8")


def _place(page: Path, name: str) -> re.Match[str]:
    place = re.compile(rf"(?<=<!-- {name} -->\n).*?(?=<!-- end of {name} -->)", re.DOTALL)
    found = list(place.finditer(page.read_text(encoding="utf-8")))
    if len(found) != 1:
        raise ValueError(f"{page} has {len(found)} parts between comments of the name {name!r}")
    return found[0]
