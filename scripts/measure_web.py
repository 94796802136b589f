"""Measure the demos of examples/web in the browser and natively, for benchmarks/NOTES.md.

    python examples/web/build.py -o site
    python scripts/measure_web.py site [--torch PYTHON] [--write]

Times are the least of many short rounds, in which all ways of running take turns. PYTHON has torch,
onnx and onnxscript, and exports the networks that it can too: see scripts/other_tools.py.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import onnxruntime
from other_tools import pairs
from web_runtime import encode

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from pytensor_onnx.web.packages import make_server  # noqa: E402
from tests.page_parts import write_part  # noqa: E402

DOCUMENT = ROOT / "benchmarks" / "NOTES.md"
ROUNDS, SECONDS = 20, 0.05
OPENINGS = 5
RUNS = 25
Arrays = dict[str, np.ndarray]
OpenPage = Callable[[str], Any]
DEMOS = ("digits", "regression", "training", "sampler", "yolo11n")
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", type=Path, help="folder that examples/web/build.py has written")
    parser.add_argument("--torch", help="Python with torch, onnx and onnxscript")
    parser.add_argument("--write", action="store_true", help=f"write the tables to {DOCUMENT.name}")
    given = parser.parse_args()
    lines = [
        "| demo | native, 1 thread | 2 threads | WebAssembly, 1 thread | 2 threads | page's own |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    with tempfile.TemporaryDirectory() as folder, served(given.site, Path(folder)) as open_page:
        runs = {name: (given.site / name / "model.onnx", FEEDS[name](given.site)) for name in DEMOS}
        if given.torch:
            load = build_module().load
            others = pairs(given.torch, given.site, Path(folder), load)
            runs |= {f"{name}{COMPARED}": run for name, run in others.items()}
        times = compare(open_page, runs)
        for name in DEMOS:
            own = f"{own_part(open_page, name):.1f} ms"
            lines.append(f"| {name} | {' | '.join(map(shown, times[name]))} | {own} |")
        if given.torch:
            lines += ["", *against_torch(times, runs)]
        print("\n".join(lines))
        print("first answers of the digits, in s:", *map("{:.2f}".format, first_answers(open_page)))
    if given.write:
        write_part(DOCUMENT, "table", "\n".join(lines) + "\n")


def against_torch(
    times: Mapping[str, Sequence[float]], runs: Mapping[str, tuple[Path, Arrays]]
) -> list[str]:
    """Return the rows of a table of our files and those of torch, with one thread."""
    lines = [
        "| network | nodes | torch's | native | torch's | ratio | WebAssembly | torch's | ratio |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    ours = [name for name in runs if name.endswith(COMPARED) and "by torch" not in name]
    for own in ours:
        label = own.removesuffix(COMPARED)
        names = (own, f"{label}, by torch{COMPARED}")
        nodes = [str(len(onnx.load(runs[name][0]).graph.node)) for name in names]
        cells = [label, *nodes]
        for way in (0, 2):
            both = [times[name][way] for name in names]
            cells += [*map(shown, both), f"{both[0] / both[1]:.2f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def shown(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms"


def build_module() -> ModuleType:
    """Return examples/web/build.py."""
    path = Path(__file__).parents[1] / "examples" / "web" / "build.py"
    spec = importlib.util.spec_from_file_location("build_demos", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def digits(site: Path) -> Arrays:
    return {"pixels": np.random.default_rng(0).random((1, 64), dtype="float32")}


def regression(site: Path) -> Arrays:
    nitrogen = np.linspace(0, 200, 50, dtype="float32")
    return {"nitrogen": nitrogen, "rain": np.array(400, "float32"), "seed": np.array(1)}


def training(site: Path) -> Arrays:
    described = json.loads((site / "training" / "page.json").read_text())
    (data,) = (x["control"]["value"] for x in described["inputs"] if x["name"] == "data")
    state = {
        x["name"]: np.fromfile(site / "training" / x["file"], x["dtype"]).reshape(x["dims"])
        for x in described["state"]["values"]
    }
    return {"data": np.float32(data), "learning_rate": np.array(0.005, "float32"), **state}


def sampler(site: Path) -> Arrays:
    effects = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
    numbers = {"seed": [1], "warmup": 100, "draws": 100}
    return {"effects": effects, **{name: np.array(n) for name, n in numbers.items()}}


def yolo11n(site: Path) -> Arrays:
    return {"images": np.random.default_rng(0).random((1, 3, 256, 256), dtype="float32")}


COMPARED = " (compared)"
FEEDS: dict[str, Callable[[Path], Arrays]] = {
    "digits": digits,
    "regression": regression,
    "training": training,
    "sampler": sampler,
    "yolo11n": yolo11n,
}


def compare(
    open_page: OpenPage, files: Mapping[str, tuple[Path, Arrays]]
) -> dict[str, list[float]]:
    """Return seconds natively and in WebAssembly, with one and two threads each."""
    pages = {threads: open_page(f"bench.html?{threads}") for threads in (1, 2)}
    runs: dict[str, list[Callable[[], float]]] = {}
    for name, (file, feeds) in files.items():
        request = encode(file.read_bytes(), feeds)
        runs[name] = [native(file, feeds, threads) for threads in (1, 2)]
        for page in pages.values():
            page.evaluate("([name, request]) => load(name, request)", [name, request])
            runs[name].append(partial(page.evaluate, "(x) => time(...x)", [name, SECONDS]))
    rounds = [{n: [run() for run in row] for n, row in runs.items()} for _ in range(ROUNDS)]
    return {n: [min(c) for c in zip(*(r[n] for r in rounds), strict=True)] for n in runs}


def native(file: Path, feeds: Arrays, threads: int) -> Callable[[], float]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(file, options)

    def run() -> float:
        least, end = np.inf, time.perf_counter() + SECONDS
        while time.perf_counter() < end or least == np.inf:
            started = time.perf_counter()
            session.run(None, feeds)
            least = min(least, time.perf_counter() - started)
        return least

    return run


BENCH = """<script type="module">
import * as ort from "./runtime/ort.wasm.min.mjs";
import { fromBytes } from "./digits/tensors.js";
const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
const known = {};
ort.env.wasm.wasmPaths = new URL("runtime/", location.href).href;
ort.env.wasm.numThreads = Number(location.search.slice(1));
window.load = async (name, { model, inputs }) => {
  const made = ([type, dims, data]) =>
    new ort.Tensor(type, fromBytes(type, bytes(data).buffer, dims).data, dims);
  const feeds = Object.fromEntries(Object.entries(inputs).map(([key, x]) => [key, made(x)]));
  known[name] = { session: await ort.InferenceSession.create(bytes(model)), feeds };
};
window.time = async (name, seconds) => {
  const { session, feeds } = known[name];
  let [least, count] = [Infinity, 1];
  const end = performance.now() + 1000 * seconds;
  do {
    const started = performance.now();
    for (let i = 0; i < count; i++) await session.run(feeds);
    const taken = performance.now() - started;
    // Clocks of browsers are coarse.
    if (taken < 2) count *= 2;
    else least = Math.min(least, taken / count);
  } while (performance.now() < end || least === Infinity);
  return least / 1000;
};
</script>"""


@contextmanager
def served(site: Path, folder: Path) -> Iterator[OpenPage]:
    """Serve a site and the page of the benchmark; the function returned opens its pages."""
    from playwright.sync_api import sync_playwright

    executable = next(filter(None, map(shutil.which, CHROMIUM)), None)
    shutil.copytree(site, folder / "site")
    (folder / "site" / "bench.html").write_text(BENCH)
    with make_server(folder / "site") as server, sync_playwright() as playwright:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])

        def open_page(path: str) -> Any:
            page = browser.new_page(viewport={"width": 1000, "height": 900})
            page.goto(f"http://127.0.0.1:{server.server_address[1]}/{path}")
            return page

        yield open_page
        browser.close()
        server.shutdown()


def own_part(open_page: OpenPage, name: str) -> float:
    """Return the median milliseconds that the page of a demo spends on a run beside the model."""
    page = open_page(f"{name}/index.html")
    page.get_by_text("loaded in").wait_for()
    if name == "digits":
        draw(page)
    found = []
    for _ in range(RUNS):
        page.get_by_role("button", name="Run", exact=True).click()
        page.locator("#outputs[aria-busy=false]").wait_for()
        (milliseconds,) = re.findall(
            r"([\d.]+) ms in the page", page.locator("#timing").inner_text()
        )
        found.append(float(milliseconds))
    page.close()
    return float(np.median(found))


def first_answers(open_page: OpenPage) -> list[float]:
    """Return the seconds from the opening of the digits' page to its first answer, in order."""
    found = []
    for _ in range(OPENINGS):
        page = open_page("digits/index.html")
        draw(page)
        page.get_by_text("Done.").wait_for()
        found.append(page.evaluate("performance.now() / 1000"))
        page.close()
    return sorted(found)


def draw(page: Any) -> None:
    """Draw a line on the pad."""
    box = page.locator("canvas").bounding_box()
    page.mouse.move(box["x"] + 80, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 150, box["y"] + 200, steps=3)
    page.mouse.up()


if __name__ == "__main__":
    main()
