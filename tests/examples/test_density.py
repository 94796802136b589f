"""Programs in other languages compute the same density as Python."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pymc")

from pytensor_onnx import native
from tests.examples.conftest import EXAMPLES, Example

FOLDER = EXAMPLES / "density"
FILES = ("package.json", "density.mjs", "Makefile", "density.cpp")


def run(*command: str, folder: Path) -> str:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


def check(folder: Path, target: str, *command: str) -> None:
    """Compare the density, the gradient and the mode that a program prints with those in Python."""
    example = Example(FOLDER).export
    program = example.export(folder / "eight_schools.onnx", target)
    first, last = map(json.loads, run(*command, folder=folder).strip().splitlines()[-2:])
    point, rate = np.full(10, 0.5), 0.1
    logp, gradient, *_ = program(point, example.EFFECTS, example.ERRORS)
    np.testing.assert_allclose(first["logp"], logp, rtol=1e-13)
    np.testing.assert_allclose(first["gradient"], gradient, rtol=1e-12)
    for _ in range(2000):
        _, gradient, *_ = program(point, example.EFFECTS, example.ERRORS)
        point = point + rate * gradient
    logp, _, mu, tau = program(point, example.EFFECTS, example.ERRORS)
    np.testing.assert_allclose([last["logp"], last["mu"], last["tau"]], [logp, mu, tau], rtol=1e-9)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in FILES:
        shutil.copy(FOLDER / name, tmp_path)
    return tmp_path


@pytest.mark.slow
def test_node_reads_the_density_and_climbs_to_the_mode(folder: Path) -> None:
    if not shutil.which("node") or not shutil.which("npm"):
        pytest.skip("there is no Node")
    install = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund"]
    installed = subprocess.run(install, cwd=folder, capture_output=True, text=True, check=False)
    if installed.returncode:
        pytest.skip(f"npm has no onnxruntime-node: {installed.stderr[-200:]}")
    check(folder, "node", "node", "density.mjs")


@pytest.mark.slow
def test_cpp_reads_the_density_and_climbs_to_the_mode(folder: Path) -> None:
    home = os.environ.get("ONNXRUNTIME_HOME", "")
    if not (Path(home) / "include" / "onnxruntime_cxx_api.h").is_file():
        pytest.skip(
            "ONNXRUNTIME_HOME names no unpacked release of ONNX Runtime; no package has one"
        )
    run("make", "density", f"ONNXRUNTIME={home}", folder=folder)
    check(folder, "onnxruntime", "./density")
    check(folder, "onnxruntime", "./density", str(native.library()))
