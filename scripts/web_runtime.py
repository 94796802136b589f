"""Run models in ONNX Runtime Web, in its WebAssembly and by node."""

import base64
import json
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

WORKER = Path(__file__).with_name("probe_worker.mjs")

Arrays = Mapping[str, np.ndarray]


def encode(model: bytes, inputs: Arrays) -> dict[str, object]:
    """Write a model and its inputs in plain JSON, which a worker can read."""
    return {
        "model": base64.b64encode(model).decode(),
        "inputs": {
            name: [array.dtype.name, list(array.shape), base64.b64encode(array.tobytes()).decode()]
            for name, array in inputs.items()
        },
    }


def run_in_web(node_modules: str, runs: Iterable[tuple[bytes, Arrays]]) -> tuple[str, list[Arrays]]:
    """Run models in onnxruntime-web and return its version and the outputs of each run.

    Parameters
    ----------
    node_modules
        The directory that has the package onnxruntime-web.
    runs
        Serialised models with their inputs by name.
    """
    with tempfile.TemporaryDirectory() as folder:
        requests = Path(folder, "requests.jsonl")
        lines = [json.dumps(encode(*run) | {"values": True}) + "\n" for run in runs]
        requests.write_text("".join(lines))
        command = ["node", str(WORKER), node_modules, str(requests), "0"]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    version, *answers = result.stdout.splitlines() or [""]
    if result.returncode or len(answers) != len(lines):
        raise RuntimeError(f"the worker ended after {len(answers)} runs: {result.stderr}")
    return version, [decode(json.loads(answer)) for answer in answers]


def decode(answer: str | dict) -> Arrays:
    """Read the outputs of a run, or raise if it failed."""
    if isinstance(answer, str):
        raise RuntimeError(answer)
    return {
        name: np.frombuffer(base64.b64decode(data), dtype).reshape(shape)
        for name, (dtype, shape, data) in answer.items()
    }
