"""Random graphs agree with PyTensor: a few in every run, thousands in the slow one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FEW, MANY, CHUNK = 12, 500, 250


def assert_none_fails(graphs: int, *options: str) -> None:
    """Search in a process of its own: what other tests leave behind here changes the graphs."""
    command = [sys.executable, "-m", "tests.fuzz", "--processes", "1", "--graphs", str(graphs)]
    command += options
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert f"{graphs} graphs, 0 failures" in run.stdout


def test_random_graphs_agree_with_pytensor():
    assert_none_fails(FEW, "--seed", "0")


@pytest.mark.sweep
@pytest.mark.parametrize("kernels", ["1", "0"])
@pytest.mark.parametrize("seed", range(1, 1 + MANY // CHUNK))
def test_many_random_graphs_agree_with_pytensor(seed, kernels, monkeypatch):
    monkeypatch.setenv("PYTENSOR_ONNX_KERNELS", kernels)
    first = int(os.environ.get("FUZZ_SEED", "0")) * 1000
    assert_none_fails(CHUNK, "--seed", str(first + seed))
