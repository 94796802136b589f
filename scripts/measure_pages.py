"""Measure pages with tapes and with ONNX Runtime Web, for docs/how-to/web.md.

uv run --all-extras python -m scripts.measure_pages [--write]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytensor.tensor as pt
from playwright.sync_api import Browser, sync_playwright

from benchmarks.sampled_models import SAMPLED
from pytensor_onnx import export_onnx, nn
from pytensor_onnx.pymc import export_sampler
from pytensor_onnx.web.packages import make_server
from pytensor_onnx.web.site import build_site
from tests.page_parts import write_part
from tests.web.pages import CHROMIUM

TARGET = Path(__file__).parents[1] / "docs/how-to/web.md"
VISITS, RUNS = 3, 3000
RUN = """async ([feeds, runs]) => {
  const { Model } = await import(new URL("model.js", location.href));
  const { tensor } = await import(new URL("tensors.js", location.href));
  const page = await (await fetch("page.json")).json();
  const model = new Model();
  const { seconds } = await model.load(page.runtime, page.state);
  const named = feeds.map(([name, type, numbers, dims]) => [name, tensor(type, numbers, dims)]);
  const given = Object.fromEntries(named);
  const first = (await model.run(given, 1)).milliseconds;
  await model.run(given, runs);
  const milliseconds = (await model.run(given, runs)).milliseconds / runs;
  return [seconds, first, milliseconds];
}"""
"""Load the model once more, and run it: seconds of loading, and milliseconds of runs."""

HEAD = [
    "| page, in Chromium on this project's machine of two cores | bytes | engine and model loaded "
    "| one run |",
    "|---|---:|---:|---:|",
]


def sampler(path: Path) -> dict[str, np.ndarray]:
    model = SAMPLED["eight_schools"]()
    export_sampler(model, path, variables=[str(v.name) for v in model.free_RVs], verify=False)
    return {"seed": np.array([1]), "warmup": np.array(300), "draws": np.array(200)}


def density(path: Path) -> dict[str, np.ndarray]:
    point, y = pt.vector("point", shape=(3,)), np.array([0.5, -1.0, 2.0, 8.0])
    mu, sigma = point[0] + point[1], pt.exp(point[2])
    value = (-pt.log(sigma) - ((y - mu) / sigma) ** 2 / 2).sum() - (point**2).sum()
    outputs = {"density": value, "gradient": pt.grad(value, point)}
    export_onnx([point], outputs, path, target="web", precision="float64", verify=False)
    return {"point": np.array([0.1, 0.2, 0.3])}


def network(path: Path) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    x = pt.matrix("x", shape=(1, 784), dtype="float32")
    sizes = ((64, 784), (64,), (10, 64), (10,))
    weights = [rng.normal(size=size).astype("float32") for size in sizes]
    hidden = nn.relu(nn.linear(x, *weights[:2]))
    y = nn.softmax(nn.linear(hidden, *weights[2:]), axis=-1)
    export_onnx([x], {"y": y}, path, target="web", verify=False)
    return {"x": rng.random((1, 784)).astype("float32")}


Make = Callable[[Path], dict[str, np.ndarray]]
PAGES: list[tuple[str, Make, str]] = [
    ("sampler of the eight schools, 300 warm-up steps and 200 draws, tape", sampler, "tape"),
    ("density of three parameters with its gradient, tape", density, "tape"),
    ("the same, ONNX Runtime Web", density, "onnxruntime"),
    ("network of 784, 64 and 10 units, tape", network, "tape"),
    ("the same, ONNX Runtime Web", network, "onnxruntime"),
]


def visit(browser: Browser, folder: Path, feeds: dict[str, np.ndarray]) -> list[float]:
    """Return the bytes of a page, the seconds of loading, and milliseconds of two runs."""
    sizes = []
    with make_server(folder) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        context = browser.new_context()
        page = context.new_page()
        page.on("response", lambda x: sizes.append(int(x.headers.get("content-length", 0))))
        page.goto(f"http://127.0.0.1:{server.server_address[1]}/index.html")
        page.get_by_text("loaded in").wait_for()
        total = sum(sizes)
        given = [[k, x.dtype.name, x.ravel().tolist(), list(x.shape)] for k, x in feeds.items()]
        runs = 5 if "warmup" in feeds else RUNS
        found = page.evaluate(RUN, [given, runs])
        context.close()
        server.shutdown()
    return [total, *found]


def rows(folder: Path) -> list[str]:
    """Return the rows of the table: medians of visits in turns."""
    sites = []
    for i, (_, make, engine) in enumerate(PAGES):
        path = folder / f"{i}.onnx"
        feeds = make(path)
        site = build_site(path, folder / str(i), page={"run": "button"}, engine=engine)
        sites.append((site, feeds))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        visits = [[visit(browser, *site) for site in sites] for _ in range(VISITS)]
        browser.close()
    made = []
    for (name, *_), found in zip(PAGES, zip(*visits, strict=True), strict=True):
        size, seconds, first, run = (statistics.median(x) for x in zip(*found, strict=True))
        time = f"{run:.0f} ms, the first {first:.0f} ms" if run > 1 else f"{run:.2g} ms"
        made.append(f"| {name} | {size / 1e6:.2f} MB | {seconds:.2f} s | {time} |")
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help=f"write the table to {TARGET.name}")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        lines = [*HEAD, *rows(Path(folder))]
    print("\n".join(lines))
    if given.write:
        write_part(TARGET, "pages", "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
