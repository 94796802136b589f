"""Defects of PyTensor: their reproductions, and the rules and names that wait for a repair."""

import ast
import io
import re
from collections.abc import Iterator
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytensor_onnx.compat import pytensor as compat
from pytensor_onnx.rules import Rule, ledger

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/project/upstream.md").read_text(encoding="utf-8")
REFERENCE = re.compile(r"docs/project/upstream\.md#([\w-]+)")


def anchor_of(title: str) -> str:
    """Return the anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


INTRODUCTION, *SECTIONS = re.split(r"^## ", PAGE, flags=re.MULTILINE)
TEXTS = {anchor_of(text.splitlines()[0]): text for text in SECTIONS}
CODE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def printed(result: Any) -> str:
    return re.sub(r"\n\s*", " ", str(result))


def outcomes(code: str, names: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Run code; yield the printed, the seen and the expected text of each line that prints."""
    for statement in ast.parse(code).body:
        source = ast.get_source_segment(code, statement)
        line = code.splitlines()[statement.end_lineno - 1]
        if not (source and source.startswith("print(")):
            exec(compile(ast.Module([statement], []), "upstream.md", "exec"), names)
            continue
        seen, expected = re.fullmatch(r".*\)  # (.*), expected (.*)", line).groups()
        try:
            found = printed(eval(source.removeprefix("print"), names))
        except Exception as error:
            found = type(error).__name__
        yield found, seen, expected


@pytest.mark.parametrize("anchor", TEXTS)
@pytest.mark.filterwarnings("ignore")
def test_a_defect_of_pytensor_is_still_there(anchor):
    names: dict[str, Any] = {}
    exec(CODE.search(INTRODUCTION)[1], names)
    blocks = CODE.findall(TEXTS[anchor])
    assert blocks
    with redirect_stderr(io.StringIO()), np.errstate(all="ignore"):
        for found, seen, expected in outcomes("".join(blocks), names):
            assert found != expected, f"PyTensor is right now: drop what waits for {anchor}"
            assert found == seen


def needs_an_issue(rule: Rule) -> bool:
    return rule.kind in ("guard", "exclusion") and rule.purpose == "correctness"


@pytest.mark.parametrize("name", [name for name, rule in ledger().items() if needs_an_issue(rule)])
def test_a_rule_for_correctness_names_the_defect_of_pytensor(name):
    found = REFERENCE.search(ledger()[name].measured)
    assert found
    assert f"`{name.removeprefix('guarded_')}`" in TEXTS[found[1]]


def test_a_private_name_of_pytensor_has_an_issue():
    assert compat.PRIVATE
    for name, anchor in compat.PRIVATE.items():
        assert f"`{name.rpartition('.')[2]}`" in TEXTS[anchor].replace(".", "`"), name


def test_each_section_has_a_rule_or_a_name_that_waits_for_it():
    of_rules = {anchor for rule in ledger().values() for anchor in REFERENCE.findall(rule.measured)}
    assert of_rules | set(compat.PRIVATE.values()) == set(TEXTS)
