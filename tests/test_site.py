"""The site builds without warnings, and every example of the gallery runs."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.sweep
def test_the_site_builds_without_warnings(tmp_path):
    pytest.importorskip("sphinx_gallery", reason="uv run --all-extras --group docs")
    command = ["sphinx", "-W", "--keep-going", "-q", "-b", "html", "docs", tmp_path / "site"]
    built = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
    assert (tmp_path / "site" / "index.html").exists()
