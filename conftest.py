"""Examples in docstrings and documents run in a folder of their own, where they may write files."""

import pytest
from _pytest.doctest import DoctestItem


@pytest.fixture(autouse=True)
def _own_folder_for_examples(request: pytest.FixtureRequest) -> None:
    if isinstance(request.node, DoctestItem):
        folder = request.getfixturevalue("tmp_path")
        request.getfixturevalue("monkeypatch").chdir(folder)
