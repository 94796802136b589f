"""The graphs of a seed are the same ones wherever it runs."""

import hashlib
import os
import subprocess
import sys

import pytest

from tests.fuzz import run
from tests.fuzz.strategy import cases


def digest() -> str:
    codes: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "error_of", lambda case: codes.append(case.code))
        run.find_failures(10, 1, cases())
    return hashlib.sha256("".join(codes).encode()).hexdigest()


@pytest.mark.slow
def test_a_seed_gives_the_same_graphs_in_every_process():
    command = [
        sys.executable,
        "-c",
        "from tests.fuzz.test_run import digest; print(digest())",
    ]
    env = os.environ | {"PYTHONHASHSEED": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    output = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
    assert output.strip() == digest()
