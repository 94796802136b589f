"""Parts of pages that commands write."""

import re
from pathlib import Path


def write_part(page: Path, name: str, text: str) -> None:
    """Replace the text of a page between the comments ``name`` and ``end of name``."""
    place = re.compile(rf"(?<=<!-- {name} -->\n).*(?=<!-- end of {name} -->)", re.DOTALL)
    whole = page.read_text(encoding="utf-8")
    page.write_text(place.sub(lambda _: text, whole), encoding="utf-8")
