"""Examples in docstrings and documents may write files, and compile nothing."""

import pytensor
import pytest
from _pytest.doctest import DoctestItem

# Files that import the packages of servers, those of the site, and PyTorch.
collect_ignore = [
    "src/pytensor_onnx/serving/services",
    "docs/conf.py",
    "tests/importing/torch_networks.py",
]


@pytest.fixture(autouse=True)
def _surroundings_of_examples(request: pytest.FixtureRequest) -> None:
    if isinstance(request.node, DoctestItem):
        patch = request.getfixturevalue("monkeypatch")
        patch.chdir(request.getfixturevalue("tmp_path"))
        # PyTensor folds operations of constants by compiling their inner graphs in C.
        patch.setattr(pytensor.config, "cxx", "")
        # By default, Numba compiles each graph that an example evaluates, for seconds.
        patch.setattr(pytensor.config, "mode", "FAST_COMPILE")
