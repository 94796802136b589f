"""The graphs of a seed are the same ones wherever it runs, and all of them are tried."""

import hashlib
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fuzz import run
from tests.fuzz.strategy import cases


def digest() -> str:
    codes: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "error_of", lambda case: codes.append(case.code))
        run.find_failures(4, 1, cases())
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


@dataclass(frozen=True)
class FakeChunk(run.Chunk):
    """Graphs of seeds: seed 3 ends the process, and seed 5 never ends."""

    def search(self, last: Path | None = None) -> run.Found:
        if self.seed == 3:
            if last is not None:
                last.write_text("the graph")
            os._exit(1)
        if self.seed == 5:
            run.error_of = lambda case: time.sleep(1000)
            return run.find_failures(1, 1, cases(), last, seconds=1)
        return run.Found([])


@pytest.mark.slow
def test_a_graph_that_ends_the_process_or_never_ends_is_a_failure():
    # Under the name by which other processes find it.
    from tests.fuzz.test_run import FakeChunk

    chunks = [FakeChunk(1, seed) for seed in range(8)]
    found = dict(run.search(chunks, 2))
    assert set(found) == set(chunks)
    codes = {chunk.seed: [f.code for f in each.failures] for chunk, each in found.items()}
    assert [seed for seed, failing in codes.items() if failing] == [3, 5]
    assert codes[3] == ["the graph"]
    assert "compare_onnx_and_py" in codes[5][0]
