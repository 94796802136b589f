"""Pages in headless Chromium."""

import shutil
import threading
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from pytensor_onnx.web.server import make_server

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)
SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
needs_chromium = pytest.mark.skipif(
    not CHROMIUM, reason="there is no Chromium among the system's packages"
)


@contextmanager
def opened_page(browser, folder, path="index.html"):
    """Open a page of a folder, and record console messages and requests to other hosts."""
    with make_server(folder) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        opened = browser.new_page()
        said = []
        opened.on("console", lambda message: said.append(message.text))
        opened.on("pageerror", lambda error: said.append(str(error)))
        opened.on("request", lambda r: said.append(r.url) if "127.0.0.1" not in r.url else None)
        opened.goto(f"http://127.0.0.1:{server.server_address[1]}/{path}")
        yield opened, said
        opened.close()
        server.shutdown()


def keep_screenshot(opened, name):
    """Save a picture of a page in build/screenshots, to be looked at."""
    opened.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)


def await_results(opened):
    """Wait until the model runs no more."""
    opened.locator("#outputs[aria-busy=false]").wait_for()


def downloaded(opened, button):
    """Return the path of the file that a button saves."""
    with opened.expect_download() as download:
        opened.get_by_role("button", name=button).click()
    return download.value.path()


def results(opened):
    """Return the results that the page would save, by name."""
    header, *lines = downloaded(opened, "Download results").read_text().splitlines()
    rows = [line.split(",") for line in lines]
    if header == "output,position,value":
        names = dict.fromkeys(name for name, *_ in rows)
        return {name: np.array([float(x) for y, _, x in rows if y == name]) for name in names}
    columns = list(zip(*rows, strict=True))
    return {
        name: np.array([float(x) for x in column if x])
        for name, column in zip(header.split(","), columns, strict=True)
    }
