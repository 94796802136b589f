"""The pages agree with each other."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*/README.md")]
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
    pages = {page.name for page in ROOT.glob("docs/*.md")} - {"index.md"}
    assert sorted(listed) == sorted(pages)
