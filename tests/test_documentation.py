"""The pages agree with each other."""

import re
from pathlib import Path

import pytest

import pytensor_onnx.pipeline  # noqa: F401  (declares the passes)
from pytensor_onnx.rules import ledger

ROOT = Path(__file__).parent.parent
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*/README.md")]
SOURCES = [ROOT / "src/pytensor_onnx" / name for name in ("cli/demo.py", "web/description.py")]
# The package is on no index: it is installed from a clone.
KNOWN = {
    ".",
    "'.[ml]'",
    "'.[web]'",
    "'.[pymc]'",
    "'.[nutpie]'",
    "uv && uv run",
    "numpy onnxruntime",
}


@pytest.mark.parametrize("page", [*PAGES, *SOURCES], ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_install_the_package_alike(page):
    lines = re.findall(r"pip install ([^\n`#]*)", page.read_text(encoding="utf-8"))
    installed = {re.sub(r"(&& uv run).*", r"\1", line).strip() for line in lines}
    assert installed <= KNOWN


def test_the_index_lists_every_page():
    listed = re.findall(r"^\| \[.*?\]\((.*?)\)", (ROOT / "docs/index.md").read_text("utf-8"), re.M)
    docs = ROOT / "docs"
    pages = {page.relative_to(docs).as_posix() for page in docs.glob("*/*.md")}
    assert sorted(listed) == sorted(pages)


def test_the_page_of_the_design_is_short():
    words = re.findall(r"\S*\w\S*", (ROOT / "docs/understanding/design.md").read_text("utf-8"))
    assert len(words) <= 2500


NOTES = ROOT / "benchmarks" / "NOTES.md"
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", [*PAGES, NOTES], ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_pages_and_headings(page):
    for link in re.findall(r"\]\((?!http|mailto)([^)\s]+)\)", text_of(page)):
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors_of(target), link


def text_of(page: Path) -> str:
    return FENCED.sub("", page.read_text(encoding="utf-8"))


def anchors_of(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", text_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}


def test_rules_name_headings_where_they_were_measured():
    for rule in ledger().values():
        page, anchor, heading = re.fullmatch(r"([^#,]*)(#|, |)(.*)", rule.measured).groups()
        if anchor:
            assert heading in {"#": anchors_of, ", ": headings_of}[anchor](ROOT / page), rule.name


def headings_of(page: Path) -> set[str]:
    """Return headings; a heading of third order also behind the heading that it is below."""
    found, above = set(), ""
    for marks, heading in re.findall(r"^(#+) (.*)$", text_of(page), re.MULTILINE):
        found |= {heading, f"{above}: {heading}"}
        above = heading if marks == "##" else above
    return found
