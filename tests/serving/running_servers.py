"""Run a server of models in a process of its own."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SECONDS_TO_START = 90


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def running(command: list[str], folder: Path, ready: str, **variables: Any) -> Iterator[None]:
    """Run a server until it answers, and end it afterwards."""
    environment = {**os.environ, **{name: str(value) for name, value in variables.items()}}
    with (folder.parent / "log").open("w") as log:
        server = subprocess.Popen(
            [sys.executable, *command],
            cwd=folder,
            env=environment,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            end = time.monotonic() + SECONDS_TO_START
            while not answers(ready):
                assert server.poll() is None, (folder.parent / "log").read_text()
                assert time.monotonic() < end, (folder.parent / "log").read_text()
                time.sleep(0.1)
            yield
        finally:
            if server.poll() is None:
                os.killpg(server.pid, signal.SIGTERM)
            server.wait(30)


def answers(url: str) -> bool:
    try:
        return urllib.request.urlopen(url, timeout=5).status == 200
    except OSError:
        return False
