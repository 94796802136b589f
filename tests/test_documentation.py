"""The pages agree with each other."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*/README.md")]
SOURCES = [ROOT / "src/pytensor_onnx/cli/demo.py"]
# The package is on no index: it is installed from a clone.
KNOWN = {".", "'.[ml]'", "'.[web]'", "'.[pymc]'", "uv && uv run", "numpy onnxruntime"}


@pytest.mark.parametrize("page", [*PAGES, *SOURCES], ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_install_the_package_alike(page):
    lines = re.findall(r"pip install ([^\n`#]*)", page.read_text(encoding="utf-8"))
    installed = {re.sub(r"(&& uv run).*", r"\1", line).strip() for line in lines}
    assert installed <= KNOWN
