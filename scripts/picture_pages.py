"""Make pages of models that nobody described, open them from the disk, and take their pictures.

python -m scripts.picture_pages [NAME ...] [-o FOLDER]

Pictures go to docs/pictures, and the pages to a folder if one is given. For each page the command
prints its size, the milliseconds from opening to the first result, and what its console says.
"""

import argparse
import io
import json
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from pytensor_onnx.cli.exported_pages import program_of
from pytensor_onnx.web.site import make_page
from scripts.page_models import MODELS, RealPage
from scripts.picture_demos import draw_three

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
WIDTH, HIGHEST = 1000, 1100
COLOURS = 160
"""Colours of a picture: pages have few, and files are a third as large."""
LEARNING = 4000


def write_page(name: str, folder: Path) -> Path:
    """Write the page of a model to a folder, as `pytensor-onnx web` makes it."""
    value, target = MODELS[name](), folder / f"{name}.html"
    if not isinstance(value, RealPage):
        return program_of(value).page().save(target)
    beside = folder / f"{name}.json"
    beside.write_text(json.dumps(value.configuration), encoding="utf-8")
    return make_page(value.file, page={"configuration": str(beside)}).save(target)


def use(page: Page, name: str) -> None:
    """Use a page as a visitor does, as far as it needs one."""
    if name == "digits":
        draw_three(page)
    if name == "training":
        page.get_by_role("button", name="Run repeatedly").click()
        page.wait_for_timeout(LEARNING)
        page.get_by_role("button", name="Stop").click()
    page.locator("#status", has_text=re.compile("Done|Stopped")).wait_for()


def take(browser: Any, name: str, folder: Path) -> str:
    """Take the picture of a page that is opened from the disk, and return a line on its time."""
    file = write_page(name, folder)
    page: Page = browser.new_page(viewport={"width": WIDTH, "height": 640})
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(file.as_uri())
    page.get_by_text("loaded in").wait_for()
    use(page, name)
    first = page.evaluate('performance.getEntriesByName("first result")[0].startTime')
    height = min(HIGHEST, page.evaluate("document.documentElement.scrollHeight"))
    page.set_viewport_size({"width": WIDTH, "height": height})
    page.wait_for_timeout(500)
    shot = Image.open(io.BytesIO(page.screenshot())).convert("RGB").quantize(COLOURS, kmeans=2)
    shot.save(PICTURES / f"{name}-page.png", optimize=True)
    page.close()
    size = file.stat().st_size / 1e6
    return f"{name}: {size:.2f} MB, first result after {first:.0f} ms, console: {said or 'nothing'}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(MODELS)}; all unless given")
    parser.add_argument("--output", "-o", type=Path, help="folder for the pages")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as started:
        folder = given.output or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        browser = started.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for name in given.names or MODELS:
            print(take(browser, name, folder), flush=True)


if __name__ == "__main__":
    main()
