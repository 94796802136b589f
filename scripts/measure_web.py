"""Measure the demos of examples/web in the browser and natively, for docs/web.md.

    python examples/web/build.py -o site
    python scripts/measure_web.py site [--torch PYTHON] [--write]

Times are the least of several rounds, in which all ways of running take turns. PYTHON has torch,
onnx and onnxscript; the digits' network is exported by it too, with the same weights.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from web_runtime import encode

from pytensor_onnx.web.server import make_server

DOCUMENT = Path(__file__).parents[1] / "docs" / "web.md"
TABLE = re.compile(r"(?<=<!-- table -->\n).*?(?=<!-- end of table -->)", re.DOTALL)
ROUNDS, SECONDS = 5, 0.2
OpenPage = Callable[[str], Any]
DEMOS = ("digits", "regression", "training", "sampler", "yolo11n")
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
TORCH = """
import sys, numpy as np, torch
w = np.load(sys.argv[1])
layers = [torch.nn.Linear(*w["a"].shape), torch.nn.ReLU(), torch.nn.Linear(*w["c"].shape)]
for layer, (m, b) in zip(layers[::2], (("a", "b"), ("c", "d"))):
    layer.weight.data, layer.bias.data = torch.tensor(w[m].T.copy()), torch.tensor(w[b])
net = torch.nn.Sequential(*layers, torch.nn.Softmax(-1)).eval()
x = torch.zeros(2, w["a"].shape[0])
torch.onnx.export(net, (x,), sys.argv[2], input_names=["pixels"], dynamo=True,
                  dynamic_shapes=({0: torch.export.Dim("batch")},))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", type=Path, help="folder that examples/web/build.py has written")
    parser.add_argument("--torch", help="Python with torch, onnx and onnxscript")
    parser.add_argument("--write", action="store_true", help="write the table to docs/web.md")
    given = parser.parse_args()
    lines = [
        "| demo | native, 1 thread | 2 threads | WebAssembly, 1 thread | 2 threads | page's own |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    with tempfile.TemporaryDirectory() as folder, served(given.site, Path(folder)) as open_page:
        files = {name: given.site / name / "model.onnx" for name in DEMOS}
        if given.torch:
            files["digits, by torch"] = export_by_torch(given.torch, files["digits"], Path(folder))
        times = compare(open_page, files, given.site)
        for name, row in times.items():
            own = "" if "torch" in name else f"{own_part(open_page, name):.1f} ms"
            lines.append(f"| {name} | {' | '.join(f'{1e3 * t:.3g} ms' for t in row)} | {own} |")
        print("\n".join(lines))
        print(f"first answer of the digits: {first_answer(open_page):.2f} s after opening")
    if given.write:
        text = DOCUMENT.read_text(encoding="utf-8")
        DOCUMENT.write_text(TABLE.sub(lambda _: "\n".join(lines) + "\n", text), encoding="utf-8")


def digits(site: Path) -> dict[str, np.ndarray]:
    return {"pixels": np.random.default_rng(0).random((1, 64), dtype="float32")}


def regression(site: Path) -> dict[str, np.ndarray]:
    nitrogen = np.linspace(0, 200, 50, dtype="float32")
    return {"nitrogen": nitrogen, "rain": np.array(400, "float32"), "seed": np.array(1)}


def training(site: Path) -> dict[str, np.ndarray]:
    described = json.loads((site / "training" / "page.json").read_text())
    (data,) = (x["control"]["value"] for x in described["inputs"] if x["name"] == "data")
    state = {
        x["name"]: np.fromfile(site / "training" / x["file"], x["dtype"]).reshape(x["dims"])
        for x in described["state"]["values"]
    }
    return {"data": np.float32(data), "learning_rate": np.array(0.005, "float32"), **state}


def sampler(site: Path) -> dict[str, np.ndarray]:
    effects = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
    numbers = {"seed": [1], "warmup": 100, "draws": 100}
    return {"effects": effects, **{name: np.array(n) for name, n in numbers.items()}}


def yolo11n(site: Path) -> dict[str, np.ndarray]:
    return {"images": np.random.default_rng(0).random((1, 3, 256, 256), dtype="float32")}


FEEDS: dict[str, Callable[[Path], dict[str, np.ndarray]]] = {
    "digits": digits,
    "regression": regression,
    "training": training,
    "sampler": sampler,
    "yolo11n": yolo11n,
}


def compare(open_page: OpenPage, files: dict[str, Path], site: Path) -> dict[str, list[float]]:
    """Return seconds natively and in WebAssembly, with one and two threads each."""
    pages = {threads: open_page(f"bench.html?{threads}") for threads in (1, 2)}
    runs: dict[str, list[Callable[[], float]]] = {}
    for name, file in files.items():
        feeds = FEEDS[name.split(",")[0]](site)
        request = encode(file.read_bytes(), feeds)
        runs[name] = [native(file, feeds, threads) for threads in (1, 2)]
        for page in pages.values():
            page.evaluate("([name, request]) => load(name, request)", [name, request])
            runs[name].append(partial(page.evaluate, "(x) => time(...x)", [name, SECONDS]))
    rounds = [{n: [run() for run in row] for n, row in runs.items()} for _ in range(ROUNDS)]
    return {n: [min(c) for c in zip(*(r[n] for r in rounds), strict=True)] for n in runs}


def native(file: Path, feeds: dict[str, np.ndarray], threads: int) -> Callable[[], float]:
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
    """Return the least milliseconds that the page of a demo spends on a run beside the model."""
    page = open_page(f"{name}/index.html")
    page.get_by_text("loaded in").wait_for()
    if name == "digits":
        draw(page)
    least = np.inf
    for _ in range(15):
        page.get_by_role("button", name="Run", exact=True).click()
        page.locator("#outputs[aria-busy=false]").wait_for()
        (milliseconds,) = re.findall(
            r"([\d.]+) ms in the page", page.locator("#timing").inner_text()
        )
        least = min(least, float(milliseconds))
    page.close()
    return least


def first_answer(open_page: OpenPage) -> float:
    """Return the seconds from the opening of the digits' page to its first answer."""
    found = []
    for _ in range(ROUNDS):
        page = open_page("digits/index.html")
        draw(page)
        page.get_by_text("Done.").wait_for()
        found.append(page.evaluate("performance.now() / 1000"))
        page.close()
    return min(found)


def draw(page: Any) -> None:
    """Draw a line on the pad."""
    box = page.locator("canvas").bounding_box()
    page.mouse.move(box["x"] + 80, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 150, box["y"] + 200, steps=3)
    page.mouse.up()


def export_by_torch(python: str, file: Path, folder: Path) -> Path:
    """Return the file of the digits' network that torch writes, checked to give equal results."""
    arrays = [onnx.numpy_helper.to_array(x) for x in onnx.load(file).graph.initializer]
    matrices = [x for x in arrays if x.ndim == 2]
    first, last = sorted(matrices, key=lambda x: -x.shape[0])
    biases = {x.shape[-1]: x.reshape(-1) for x in arrays if x.ndim == 1 and x.dtype == first.dtype}
    weights = {"a": first, "b": biases[first.shape[1]], "c": last, "d": biases[last.shape[1]]}
    np.savez(folder / "weights.npz", **weights)
    target = folder / "torch.onnx"
    command = [python, "-c", TORCH, str(folder / "weights.npz"), str(target)]
    subprocess.run(command, check=True, capture_output=True)
    merged = onnx.load(target)
    onnx.save(merged, target)
    x = digits(folder)
    results = [onnxruntime.InferenceSession(f).run(None, x)[0] for f in (file, target)]
    np.testing.assert_allclose(*results, rtol=1e-4, atol=1e-7)
    return target


if __name__ == "__main__":
    main()
