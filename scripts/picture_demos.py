"""Take the pictures of demos in docs/pictures, by Chromium.

python examples/web/build.py digits regression training sampler -o site
python scripts/picture_demos.py site
"""

import argparse
import math
import shutil
import threading
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from pytensor_onnx.web.packages import make_server

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "pictures"
SECONDS = {"training": 6, "sampler": 12}
"""Time for which the demos that run repeatedly do so."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", type=Path, help="folder that examples/web/build.py has written")
    site = parser.parse_args().site
    with make_server(site) as server, sync_playwright() as started:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        chromium = started.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = chromium.new_page(viewport={"width": 1000, "height": 640})
        page.set_default_timeout(300_000)
        for name in ("digits", "regression", "training", "sampler"):
            page.goto(f"http://127.0.0.1:{server.server_address[1]}/{name}/index.html")
            page.get_by_text("loaded in").wait_for()
            take(page, name)
        server.shutdown()


def take(page: Page, name: str) -> None:
    """Use a demo as a visitor does, and save a picture of the whole page."""
    if name == "digits":
        draw_three(page)
    elif name in SECONDS:
        page.get_by_role("button", name="Run repeatedly").click()
        page.wait_for_timeout(1000 * SECONDS[name])
        page.get_by_role("button", name="Stop").click()
    page.locator("#outputs[aria-busy=false]").wait_for()
    height = page.evaluate("document.documentElement.scrollHeight")
    page.set_viewport_size({"width": 1000, "height": height})
    page.wait_for_timeout(500)
    page.screenshot(path=PICTURES / f"{name}.png")
    page.set_viewport_size({"width": 1000, "height": 640})
    print(f"took {name}")


def draw_three(page: Page) -> None:
    """Draw the digit by two arcs."""
    box = page.locator("canvas").first.bounding_box()
    assert box is not None
    arcs = [(0.33, range(-150, 91, 12)), (0.67, range(-90, 151, 12))]
    for i, (height, angles) in enumerate(arcs):
        for angle in map(math.radians, angles):
            x = box["x"] + (0.46 + 0.17 * math.cos(angle)) * box["width"]
            y = box["y"] + (height + 0.17 * math.sin(angle)) * box["height"]
            page.mouse.move(x, y, steps=3)
            if i == 0:
                page.mouse.down()
    page.mouse.up()


if __name__ == "__main__":
    main()
