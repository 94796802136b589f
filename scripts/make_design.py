"""Make the tables of rooms and families in docs/project/design.md, from `tests/rooms.py`.

python scripts/make_design.py
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT)]

from tests.page_parts import with_part, write_part  # noqa: E402
from tests.rooms import ANYWHERE, FAMILIES, LAYERS, ROOMS  # noqa: E402

PAGE = ROOT / "docs" / "project" / "design.md"


def tables() -> str:
    """Return the tables of rooms and families."""
    rooms = "".join(
        f"| {_named(name)} | {room.holds} | {', '.join(map(_named, sorted(room.knows)))} |\n"
        for name, room in ROOMS.items()
    )
    families = "".join(
        f"| `{family}` | {about} | {', '.join(_places(family))} |\n"
        for family, about in FAMILIES.items()
    )
    others = ", ".join(f"`{layer}/{child}`" for layer, names in LAYERS.items() for child in names)
    return (
        f"| room | holds | may import |\n|---|---|---|\n{rooms}\n"
        f"All may import {', '.join(f'`{name}`' for name in sorted(ANYWHERE))}.\n\n"
        f"| family | about | layers that have it |\n|---|---|---|\n{families}\n"
        f"What belongs to no family is in {others}.\n"
    )


def _named(room: str) -> str:
    return f"`{room or 'pytensor_onnx'}`"


def _places(family: str) -> list[str]:
    source = ROOT / "src" / "pytensor_onnx"
    return [
        f"`{layer}`"
        for layer in LAYERS
        if (source / layer / family).is_dir() or (source / layer / f"{family}.py").is_file()
    ]


def page() -> str:
    """Return the page with new tables."""
    return with_part(PAGE, "rooms", tables())


if __name__ == "__main__":
    write_part(PAGE, "rooms", tables())
