"""Pages in headless Chromium."""

import shutil
import threading
from base64 import b64decode, b64encode
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from pytensor_onnx.web.packages import Package, make_server

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)
AXE = Package("axe-core", "4.14.1", ("axe.min.js",))
SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
needs_chromium = pytest.mark.skipif(
    not CHROMIUM, reason="there is no Chromium among the system's packages"
)


@contextmanager
def opened_page(browser, folder, path="index.html", before=lambda page: None, **options):
    """Open a page of a folder, and record console messages and requests to other hosts."""
    with make_server(folder) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        opened = browser.new_page(**options)
        before(opened)
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


LOOKS = Path(__file__).parent / "looks"
SHRINK = """async ([pictures, scale]) => {
  const small = [];
  for (const picture of pictures) {
    const image = new Image();
    image.src = `data:image/png;base64,${picture}`;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [1440 / scale, image.height * (1440 / image.width) / scale];
    const pen = canvas.getContext("2d");
    pen.imageSmoothingQuality = "high";
    pen.drawImage(image, 0, 0, canvas.width, canvas.height);
    const { data } = pen.getImageData(0, 0, canvas.width, canvas.height);
    small.push({ url: canvas.toDataURL("image/png"), data: [...data] });
  }
  return small;
}"""


def assert_looks_like(opened, name):
    """Compare a screenshot with a kept picture, in blocks, as letters differ by the fonts."""
    opened.evaluate("document.querySelector('#timing').textContent = 'in some time'")
    shot = opened.screenshot()
    shrink = opened.context.browser.new_page()
    file = LOOKS / f"{name}.png"
    # Shrunk as the kept one is: from another size, thin lines have other shades.
    [small] = shrink.evaluate(SHRINK, [[b64encode(shot).decode()], 4])
    shot = b64decode(small["url"].partition(",")[2])
    if not file.exists():
        file.write_bytes(shot)
        pytest.fail(f"look at {file}, and keep it")
    pictures = [b64encode(picture).decode() for picture in (shot, file.read_bytes())]
    found, expected = (np.array(x["data"]) for x in shrink.evaluate(SHRINK, [pictures, 24]))
    shrink.close()
    assert len(found) == len(expected), "the sizes differ"
    share = (abs(found - expected).reshape(-1, 4).max(axis=1) > 32).mean()
    assert share < 0.03, f"{share:.0%} of the blocks differ from {file}"


def wav(samples, rate):
    """Return a file of sound of 16 bits."""
    wave = np.asarray(samples, "<i2")
    header = b"RIFF" + np.uint32(36 + wave.nbytes).tobytes() + b"WAVEfmt "
    header += np.uint32(16).tobytes() + np.uint16([1, 1]).tobytes()
    header += np.uint32([rate, 2 * rate]).tobytes() + np.uint16([2, 16]).tobytes()
    return header + b"data" + np.uint32(wave.nbytes).tobytes() + wave.tobytes()
