"""The density in JavaScript is that in Python."""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pymc")

from tests.examples.conftest import EXAMPLES, Example

FOLDER = EXAMPLES / "density_in_node"


@pytest.mark.slow
def test_node_reads_the_density_and_takes_a_gradient(tmp_path: Path) -> None:
    if not shutil.which("node") or not shutil.which("npm"):
        pytest.skip("there is no Node")
    for name in ("package.json", "density.mjs"):
        shutil.copy(FOLDER / name, tmp_path)
    program = Example(FOLDER).export.export(tmp_path / "eight_schools.onnx")
    install = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund"]
    installed = subprocess.run(install, cwd=tmp_path, capture_output=True, text=True, check=False)
    if installed.returncode:
        pytest.skip(f"npm has no onnxruntime-node: {installed.stderr[-200:]}")
    run = subprocess.run(
        ["node", "density.mjs"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    first, last = map(json.loads, run.stdout.strip().splitlines())
    model = Example(FOLDER).export
    logp, gradient, *_ = program(np.full(10, 0.5), model.EFFECTS, model.ERRORS)
    np.testing.assert_allclose(first["logp"], logp, rtol=1e-13)
    np.testing.assert_allclose(first["gradient"], gradient, rtol=1e-12)
    assert last["logp"] > first["logp"]
    assert np.isfinite([last["mu"], last["tau"]]).all()
