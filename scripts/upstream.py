"""Run the reproductions of docs/project/upstream.md, and say which defects of PyTensor are fixed.

python -m scripts.upstream
"""

import ast
import io
import re
import warnings
from collections.abc import Iterator
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

import numpy as np

PAGE = Path(__file__).parents[1] / "docs/project/upstream.md"
CODE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
Outcome = tuple[str, str, str]
"""The text that a line prints, the text when the defect was found, and the expected text."""


def anchor_of(title: str) -> str:
    """Return the anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


INTRODUCTION, *SECTIONS = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
TEXTS = {anchor_of(text.splitlines()[0]): text for text in SECTIONS if CODE.search(text)}


def outcomes(anchor: str) -> Iterator[Outcome]:
    """Run the reproduction of a section, and yield the outcome of each line that prints."""
    names: dict[str, Any] = {}
    exec(CODE.search(INTRODUCTION)[1], names)
    code = "".join(CODE.findall(TEXTS[anchor]))
    with redirect_stderr(io.StringIO()), np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield from _outcomes_of(code, names)


def _outcomes_of(code: str, names: dict[str, Any]) -> Iterator[Outcome]:
    for statement in ast.parse(code).body:
        source = ast.get_source_segment(code, statement)
        line = code.splitlines()[statement.end_lineno - 1]
        if not (source and source.startswith("print(")):
            exec(compile(ast.Module([statement], []), PAGE.name, "exec"), names)
            continue
        seen, expected = re.fullmatch(r".*\)  # (.*), expected (.*)", line).groups()
        try:
            found = re.sub(r"\n\s*", " ", str(eval(source.removeprefix("print"), names)))
        except Exception as error:
            found = type(error).__name__
        yield found, seen, expected


def verdict(results: list[Outcome]) -> str:
    """Say whether a defect is still there."""
    fixed = sum(found == expected for found, _, expected in results)
    if fixed == len(results):
        return "fixed"
    if fixed:
        return f"fixed in {fixed} of {len(results)} lines"
    return "there" if all(found == seen for found, seen, _ in results) else "there, and different"


def main() -> None:
    """Print a line for each defect."""
    import pytensor

    print(f"PyTensor {pytensor.__version__}")
    for anchor, text in TEXTS.items():
        results = list(outcomes(anchor))
        print(f"{verdict(results):<22} {text.splitlines()[0]}", flush=True)
        for found, _, expected in results if verdict(results) != "there" else []:
            print(f"{'':<22}   {found}, expected {expected}")


if __name__ == "__main__":
    main()
