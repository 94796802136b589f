"""Pages of small models, with stand-ins for what npm downloads unless a browser needs it."""

import numpy as np
import pytensor.tensor as pt
import pytest

from pytensor_onnx import export_onnx
from pytensor_onnx.web import packages, site
from tests.web.pages import CHROMIUM


@pytest.fixture(scope="session")
def launch():
    """Return a function of command-line arguments that starts Chromium without a window."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as started:
        yield lambda *arguments: started.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", *arguments]
        )


@pytest.fixture(scope="session")
def browser(launch):
    """Return Chromium without a window."""
    with launch() as chromium:
        yield chromium


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """Return the file of a model with a number, a vector and a matrix as inputs."""
    height = pt.scalar("height", dtype="float32")
    weights = pt.vector("weights", shape=(3,), dtype="float32")
    data = pt.matrix("data", shape=(None, 2))
    flag = pt.scalar("flag", dtype="bool")
    results = {
        "curve": pt.exp(-height * np.linspace(0, 1, 50).astype("float32")),
        "shares": pt.special.softmax(weights * height),
        "total": pt.switch(flag, data.sum() + weights.sum(), 0.0),
        "columns": data * 2,
        "above": data[data[:, 0] > 9, 1],
        "rounded": pt.cast(pt.round(weights), "int64"),
    }
    path = tmp_path_factory.mktemp("model") / "model.onnx"
    export_onnx([height, weights, data, flag], results, path, target="web")
    return path


@pytest.fixture
def without_npm(monkeypatch, tmp_path):
    """Replace the files of packages by empty ones."""

    def files(package):
        made = [tmp_path / "npm" / name for name in package.files]
        for file in made:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
        return made

    monkeypatch.setattr(site, "package_files", files)


@pytest.fixture
def empty_cache(monkeypatch, tmp_path):
    """Return the folder of packages of a machine that has none."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return packages.cache_folder()
