"""Measure which operators ONNX Runtime Web runs on WebGPU, for which dtype and opset.

    python scripts/probe_webgpu.py

Every trial runs in headless Chromium on its software adapter, with the fallback to WebAssembly
forbidden. A dtype counts where a call of the operator loads, runs, and gives the numbers of the
native runtime. The adapter has no float16, so that nothing is said of it.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
from onnx import helper
from onnxruntime.capi.onnxruntime_pybind11_state import (
    Fail,
    InvalidGraph,
    NotImplemented as NoKernel,
)
from probe_kernels import OPSETS, TABLES, render
from probe_models import DTYPES, IR_VERSION, Trial, trials
from web_runtime import decode, encode

from pytensor_onnx.web.packages import WEBGPU_RUNTIME, make_server, package_files

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
ADAPTER = ("--no-sandbox", "--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader")
CHUNK = 50
STATIC = Path(__file__).parents[1] / "src" / "pytensor_onnx" / "web" / "static"
DTYPES_PROBED = tuple(dtype for dtype in DTYPES if dtype != ir.DataType.FLOAT16)
TOLERANCES = {"float16": 4e-3, "float32": 1e-4}
SCRIPT = """async (requests) => {
  const answers = [];
  for (const request of requests) answers.push(await window.answer(request));
  return answers;
}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=TABLES / "kernels_webgpu.json")
    parser.add_argument("--explain", metavar="OP", help="print why calls of this operator fail")
    arguments = parser.parse_args()
    chosen = [t for t in trials(OPSETS) if t.key != "Cast" and is_new(t)] + [*casts()]
    chosen = [t for t in chosen if t.dtype in DTYPES_PROBED]
    if arguments.explain:
        chosen = [t for t in chosen if t.key.split("[")[0] == arguments.explain]
    version, failures = run(chosen)
    if arguments.explain:
        for trial, failure in zip(chosen, failures, strict=True):
            print(trial.key, trial.dtype.name, trial.opset, failure or "runs")
        return
    for trial, failure in zip(chosen, failures, strict=True):
        if failure.startswith("wrong"):
            print(trial.key, trial.dtype.name, trial.opset, failure)
    table = tabulate_versions(chosen, failures)
    runtime = "onnxruntime-web, WebGPU"
    arguments.output.write_text(render(runtime, [version], table, DTYPES_PROBED))


def casts() -> Iterator[Trial]:
    """Yield a trial for each pair of dtypes."""
    for dtype, to in product(DTYPES_PROBED, DTYPES_PROBED):
        x = np.arange(6).reshape(2, 3).astype(dtype.numpy())
        inputs = [helper.make_tensor_value_info("x", dtype.value, x.shape)]
        outputs = [helper.make_tensor_value_info("y", to.value, x.shape)]
        node = helper.make_node("Cast", ["x"], ["y"], to=to.value)
        graph = helper.make_graph([node], "cast", inputs, outputs)
        for opset in sorted(versions("Cast")):
            imports = [helper.make_opsetid("", opset)]
            model = helper.make_model(graph, opset_imports=imports, ir_version=IR_VERSION)
            key = f"Cast[to={to.value}]"
            yield Trial(key, dtype, opset, model.SerializeToString(), {"x": x})


def tabulate_versions(chosen: list[Trial], failures: list[str]) -> dict[str, dict[int, list[str]]]:
    """Collect, by row and version of the operator, the dtypes in which a trial ran."""
    runs = {(t.key, t.opset, t.dtype) for t, f in zip(chosen, failures, strict=True) if not f}
    runs |= {(key.split("[")[0], opset, dtype) for key, opset, dtype in runs}
    keys = {key for t in chosen for key in (t.key, t.key.split("[")[0])}
    table: dict[str, dict[int, list[str]]] = {}
    for key in sorted(keys):
        row = table[key] = {}
        for opset in sorted(versions(key)):
            running = [d.numpy().name for d in DTYPES_PROBED if (key, opset, d) in runs]
            if running != next(reversed(row.values()), []):
                row[opset] = running
    return {k: row for k, row in table.items() if "[" not in k or row != table[k.split("[")[0]]}


def versions(key: str) -> set[int]:
    """Return the opsets that change an operator, the first that is probed included."""
    op_type = key.split("[", maxsplit=1)[0]
    return {opset for opset in OPSETS if opset == OPSETS.start or since(op_type, opset) == opset}


def is_new(trial: Trial) -> bool:
    """Return whether the operator has changed in the opset of a trial."""
    return trial.opset in versions(trial.key)


def since(op_type: str, opset: int) -> int | None:
    try:
        return onnx.defs.get_schema(op_type, max_inclusive_version=opset).since_version
    except onnx.defs.SchemaError:
        return None


def run(chosen: list[Trial]) -> tuple[str, list[str]]:
    """Return the version of the runtime and, for each trial, why it failed."""
    from playwright.sync_api import Error, sync_playwright

    failures: list[str] = []
    with served() as address, sync_playwright() as playwright:
        size = CHUNK
        while len(failures) < len(chosen):
            executable = next(filter(None, map(shutil.which, CHROMIUM)), None)
            browser = playwright.chromium.launch(executable_path=executable, args=ADAPTER)
            page = browser.new_page()
            page.goto(address)
            try:
                while len(failures) < len(chosen):
                    part = chosen[len(failures) : len(failures) + size]
                    requests = [encode(t.model, t.inputs) for t in part]
                    answers = page.evaluate(SCRIPT, requests)
                    failures += [judged(t, a) for t, a in zip(part, answers, strict=True)]
                    print(f"{len(failures)} of {len(chosen)}", file=sys.stderr, flush=True)
            except Error as error:
                # After the death of a page its trials run one by one, until the one at fault.
                if size == 1:
                    failures.append(str(error).splitlines()[0])
                size = 1 if size > 1 else CHUNK
            browser.close()
    return WEBGPU_RUNTIME.version, failures


@contextmanager
def served() -> Iterator[str]:
    """Serve the page of the probe with its runtime, at the address returned."""
    with tempfile.TemporaryDirectory() as folder:
        for file in package_files(WEBGPU_RUNTIME):
            shutil.copyfile(file, Path(folder, file.name))
        shutil.copyfile(Path(__file__).with_name("probe_webgpu.js"), Path(folder, "probe.js"))
        shutil.copyfile(STATIC / "tensors.js", Path(folder, "tensors.js"))
        Path(folder, "index.html").write_text('<script type="module" src="probe.js"></script>')
        with make_server(folder) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            yield f"http://127.0.0.1:{server.server_address[1]}/index.html"
            server.shutdown()


def judged(trial: Trial, answer: Any) -> str:
    """Return why a trial failed, empty if its numbers are those of the native runtime."""
    if isinstance(answer, str):
        return answer
    found = decode(answer)
    try:
        session = onnxruntime.InferenceSession(trial.model)
        names = [output.name for output in session.get_outputs()]
        expected = dict(zip(names, session.run(None, trial.inputs), strict=True))
    except (NoKernel, InvalidGraph, Fail):
        return "the native runtime cannot run it, so there is nothing to compare with"
    for name, value in expected.items():
        if not isinstance(value, np.ndarray):
            continue
        rtol = TOLERANCES.get(value.dtype.name, 0)
        if found[name].dtype != value.dtype or found[name].shape != value.shape:
            return f"wrong: {found[name].dtype}{list(found[name].shape)} for {value.dtype}"
        if not np.allclose(found[name], value, rtol=rtol, atol=rtol, equal_nan=True):
            return f"wrong: {found[name].ravel()[:4]} for {value.ravel()[:4]}"
    return ""


if __name__ == "__main__":
    main()
