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
    paths = {"PYTHONPATH": os.pathsep.join(sys.path)}
    digests = {
        subprocess.run(
            command,
            env=os.environ | paths | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in "12"
    }
    assert len(digests) == 1
