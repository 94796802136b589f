"""Examples are folders of scripts, whose modules are imported as if run from the folder."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


class Example:
    """The modules of one example as attributes."""

    def __init__(self, folder: Path) -> None:
        names = sorted(path.stem for path in folder.glob("*.py"))
        sys.path.insert(0, str(folder))
        try:
            self.modules = {name: importlib.import_module(name) for name in names}
        finally:
            sys.path.remove(str(folder))
            for name in names:
                sys.modules.pop(name, None)

    def __getattr__(self, name: str) -> ModuleType:
        return self.modules[name]


@pytest.fixture(scope="module")
def yolo11n() -> Example:
    return Example(EXAMPLES / "yolo11n")


@pytest.fixture(scope="module")
def mnist() -> Example:
    return Example(EXAMPLES / "mnist")
