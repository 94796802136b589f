"""Numba compiles a step of thousands of operations sooner if it leaves their calls as they are."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from numba.core import config, event

sys.path.append(str(Path(__file__).parents[1]))
import numba_networks  # noqa: F401  (functions for convolutions and pools)

CALLER = "native_lowering [numba_funcified_fgraph]"


class _Lowering(event.Listener):
    """Switches LLVM's optimisation off while the function is made that calls all others."""

    def __init__(self) -> None:
        self.level = config.OPT

    def on_start(self, event: event.Event) -> None:
        if event.data["name"] == CALLER:
            config.OPT = 0

    def on_end(self, event: event.Event) -> None:
        if event.data["name"] == CALLER:
            config.OPT = self.level


@contextmanager
def unoptimized_calls() -> Iterator[None]:
    """Let Numba optimise the functions of single operations only, while this context is active.

    PyTensor makes of a graph a function that calls another for each node. LLVM takes a time to
    optimise it that grows faster than its length, and there is little to gain in calls.
    """
    flags, config.LLVM_REFPRUNE_FLAGS = config.LLVM_REFPRUNE_FLAGS, "per_bb"
    try:
        with event.install_listener("numba:run_pass", _Lowering()):
            yield
    finally:
        config.LLVM_REFPRUNE_FLAGS = flags
