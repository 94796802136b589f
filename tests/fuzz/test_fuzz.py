"""Random graphs agree with PyTensor: a few in every run, thousands in the slow one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis.strategies import SearchStrategy

from tests.fuzz.comparison import Case
from tests.fuzz.run import find_failures
from tests.fuzz.strategy import cases

ROOT = Path(__file__).parents[2]
FEW, MANY, CHUNK = 50, 2000, 250


def assert_no_failure(graphs: int, seed: int, strategy: SearchStrategy[Case]) -> None:
    failures = find_failures(graphs, seed, strategy)
    assert not failures, "\n".join(map(str, failures))


def test_random_graphs_agree_with_pytensor():
    assert_no_failure(FEW, 0, cases())


def assert_none_fails_in_a_process_of_its_own(graphs: int, *options: str) -> None:
    """Search in a new process: what tests leave behind in this one changes the graphs."""
    command = [sys.executable, "-m", "tests.fuzz", "--processes", "1", "--graphs", str(graphs)]
    run = subprocess.run(
        [*command, *options], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert f"{graphs} graphs, 0 failures" in run.stdout


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 1 + MANY // CHUNK))
def test_many_random_graphs_agree_with_pytensor(seed):
    first = int(os.environ.get("FUZZ_SEED", "0")) * 1000
    assert_none_fails_in_a_process_of_its_own(CHUNK, "--seed", str(first + seed))
