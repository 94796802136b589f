"""Run portable files in worker processes, one for each runtime."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pytensor_onnx.random import small_words
from tests.runtimes.portable_models import MODELS

NAMES = {
    "onnxruntime": "ONNX Runtime",
    "onnx": "onnx, reference evaluator",
    "openvino": "OpenVINO",
    "tract": "tract",
    "iree": "IREE",
    "tvm": "TVM",
    "cv2": "OpenCV",
    "tinygrad": "tinygrad",
    "MNN": "MNN",
}
OLDER = ("1.18.1", "1.20.1")
"""Versions of ONNX Runtime that the page shows besides the installed one."""
ROOT = Path(__file__).parents[2]
TIMEOUT = 60
"""Seconds after which a runtime counts as hanging on a model."""


class Results(NamedTuple):
    """Versions of runtimes, and an answer for each of their models: empty where it is right."""

    versions: dict[str, str]
    answers: dict[str, dict[str, str]]


def run_all(models: Sequence[str], runtimes: Sequence[str], folder: Path) -> Results:
    """Export models into a folder, and run them in runtimes."""
    refused = {name: _export(name, folder) for name in models}
    written = [name for name in models if not refused[name]]
    versions, answers = {}, {}
    for runtime in runtimes:
        versions[runtime], found = run_files(runtime, written, folder)
        answers[runtime] = {name: refused[name] or found[name] for name in models}
    return Results(versions, answers)


def _export(name: str, folder: Path) -> str:
    """Write the portable file of a model, its inputs and its outputs; return why it cannot be."""
    try:
        program = MODELS[name]().export("portable")
    except Exception as error:
        return f"refused: export: {' '.join(str(error).split())[:160]}"
    program.save(folder / f"{name}.onnx")
    model = MODELS[name]()
    reference = model.export("onnxruntime")
    arrays = reference.conversion.arrays(list(model.values))
    names = [str(value.name) for value in reference.inputs]
    given = dict(zip(names, arrays, strict=True))
    results = reference.session.run({**given, **reference.state})
    outputs = dict(zip(reference.conversion.output_names, results, strict=True))
    # Words of generators are numbers of 16 bits in portable files.
    outputs |= {k: small_words(v) for k, v in outputs.items() if v.dtype == "uint64"}
    np.savez(folder / f"{name}.npz", **given, **program.state)
    np.savez(folder / f"{name}.wanted.npz", **outputs)
    return ""


def run_files(runtime: str, models: Sequence[str], folder: Path) -> tuple[str, dict[str, str]]:
    """Run files in a runtime; a worker that dies or hangs fails the file that it was at.

    The name of the runtime may end with an older version, which uv installs for the run.
    """
    module, _, older = runtime.partition("==")
    python = _older_python(module, older) if older else [sys.executable]
    version, answers = "", {}
    while len(answers) < len(models):
        left = [name for name in models if name not in answers]
        call = [*python, "-m", "tests.runtimes.runtime_calls", module, str(folder), *left]
        with subprocess.Popen(
            call, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT
        ) as worker:
            version, *lines = list(_lines(worker)) or [version]
        if not version:
            raise RuntimeError(f"{runtime} does not start: {' '.join(call[: -len(left)])}")
        answers.update(zip(left, map(json.loads, lines), strict=False))
        if len(lines) < len(left):
            ended = worker.returncode
            how = f"takes above {TIMEOUT} s" if ended == -9 else f"the process ended with {ended}"
            answers[left[len(lines)]] = f"refused: {how}"
    return version, {name: answers[name] for name in models}


def _older_python(module: str, version: str) -> list[str]:
    numpy = "numpy<2" if version.startswith("1.18.") else "numpy<2.3"
    options = ["--isolated", "--no-project", "--python", "3.12"]
    return ["uv", "run", *options, "--with", f"{module}=={version}", "--with", numpy, "python"]


def _lines(worker: subprocess.Popen[str]) -> Iterator[str]:
    """Yield the lines that a worker writes, and kill it after some time without one."""
    assert worker.stdout is not None
    line = " "
    while line:
        timer = threading.Timer(TIMEOUT, worker.kill)
        timer.start()
        line = worker.stdout.readline()
        timer.cancel()
        if line:
            yield line.rstrip("\n")
