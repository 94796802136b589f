"""Make pages of models that nobody described, open them from the disk, and take their pictures.

python -m scripts.picture_pages [NAME ...]

Pictures go to docs/pictures. For each page the command prints its size, the milliseconds from
opening to the first result, and the messages of its console.
"""

import argparse
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from playwright.sync_api import Page, sync_playwright

import pytensor_onnx.pymc as po
from pytensor_onnx import ONNXProgram, export_onnx

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
RNG = np.random.default_rng(0)
COUNTIES = ["Aitkin", "Anoka", "Becker", "Beltrami", "Benton", "Big Stone"]
SCHOOLS = ["Choate", "Deerfield", "Andover", "Exeter", "Hotchkiss", "Lawrenceville", "St. Paul's"]
EFFECTS = [28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0]
ERRORS = [15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0]


def radon() -> pm.Model:
    """Return radon in houses by county, floor and uranium."""
    county, floor = RNG.integers(0, len(COUNTIES), 300), RNG.integers(0, 2, 300)
    uranium = RNG.normal(size=300) * 0.3
    levels = RNG.normal(1.3, 0.3, len(COUNTIES))
    measured = levels[county] - 0.6 * floor + 0.5 * uranium + RNG.normal(0, 0.6, 300)
    with pm.Model(coords={"county": COUNTIES}) as model:
        counties, floors = pm.Data("county_index", county), pm.Data("floor", floor)
        grown = pm.Data("uranium", uranium)
        center, spread = pm.Normal("center", 0, 2), pm.HalfNormal("spread", 1)
        level = pm.Normal("level", center, spread, dims="county")
        slopes = [pm.Normal("floor_effect"), pm.Normal("uranium_effect")]
        mean = level[counties] + slopes[0] * floors + slopes[1] * grown
        noise = pm.HalfNormal("noise", 1)
        pm.Normal("log_radon", mean, noise, observed=measured, shape=mean.shape)
    return model


def predictor() -> ONNXProgram:
    model = radon()
    with model:
        draws = po.sample(300, tune=300, chains=2, random_seed=1, progressbar=False)
    return po.export_predictor(model, draws, draws=300, target="web")


def schools() -> pm.Model:
    """Return the effects of coaching in eight schools."""
    with pm.Model(coords={"school": [*SCHOOLS, "Mt. Hermon"]}) as model:
        effects = pm.Data("effects", EFFECTS, dims="school")
        mu, tau = pm.Normal("mu", 0, 10), pm.HalfCauchy("tau", 5)
        offset = pm.Normal("offset", dims="school")
        theta = pm.Deterministic("theta", mu + tau * offset, dims="school")
        pm.Normal("measured", theta, ERRORS, observed=effects, dims="school")
    return model


def sampler() -> ONNXProgram:
    return po.export_sampler(schools(), variables=["mu", "tau", "theta"], target="web")


def density() -> ONNXProgram:
    with pm.Model() as model:
        mu, sigma = pm.Normal("mu", 0, 10), pm.HalfNormal("sigma", 5)
        pm.Normal("y", mu, sigma, observed=EFFECTS)
    return po.export_logp(model, target="web")


def array() -> ONNXProgram:
    window = pt.tensor("window", shape=(None, None, 40), dtype="float32")
    weights = RNG.normal(size=(40, 30)).astype("float32") / 6
    words = pt.special.softmax(window.mean(axis=1) @ weights * 9, axis=1)
    return export_onnx([window], {"word": words}, target="web", verify=False)


def image() -> ONNXProgram:
    picture = pt.tensor("picture", shape=(1, 3, 64, 64), dtype="float32")
    return export_onnx([picture], {"negative": 1 - picture}, target="web", verify=False)


MAKERS: dict[str, Callable[[], ONNXProgram]] = {
    "predictor": predictor,
    "sampler": sampler,
    "density": density,
    "array": array,
    "image": image,
}


def take(browser: Any, name: str, folder: Path) -> str:
    """Take the picture of a page that is opened from the disk, and return a line on its time."""
    file = MAKERS[name]().page().save(folder / f"{name}.html")
    page: Page = browser.new_page(viewport={"width": 1000, "height": 640})
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(file.as_uri())
    if name == "image":
        page.get_by_label("picture, file").set_input_files(PICTURES / "digits.png")
    page.get_by_text("Done.").wait_for()
    first = page.evaluate('performance.getEntriesByName("first result")[0].startTime')
    height = page.evaluate("document.documentElement.scrollHeight")
    page.set_viewport_size({"width": 1000, "height": height})
    page.wait_for_timeout(500)
    page.screenshot(path=PICTURES / f"{name}-page.png")
    page.close()
    size = file.stat().st_size / 1e6
    return f"{name}: {size:.2f} MB, first result after {first:.0f} ms, console: {said or 'nothing'}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(MAKERS)}; all unless given")
    names = parser.parse_args().names or list(MAKERS)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for name in names:
            print(take(browser, name, Path(folder)))


if __name__ == "__main__":
    main()
