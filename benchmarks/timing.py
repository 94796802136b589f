"""Interleaved timing for all benchmarks, and results with the bound that they must keep."""

import gc
import os
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from textwrap import fill


@dataclass
class Table:
    """A table of results, and for each claim whether it holds."""

    title: str
    columns: list[str]
    rows: list[list[str]] = field(default_factory=list)
    claims: list[tuple[str, bool]] = field(default_factory=list)
    note: str = ""

    def claim(self, text: str, ratio: float, bound: float) -> None:
        """Note a ratio and the bound that it must not pass."""
        self.claims.append((f"{text}: {ratio:.2f} (at most {bound:g})", ratio <= bound))

    def show(self) -> None:
        """Print the table."""
        from rich.console import Console
        from rich.table import Table as RichTable

        table = RichTable(title=self.title, title_justify="left")
        for i, column in enumerate(self.columns):
            table.add_column(column, justify="left" if i == 0 else "right")
        for row in self.rows:
            table.add_row(*row)
        console = Console()
        console.print(table)
        for text, holds in self.claims:
            console.print(f"[green]holds[/] {text}" if holds else f"[red]fails[/] {text}")
        console.print()

    def markdown(self) -> str:
        """Return the table as text for the documentation."""
        lines = [f"## {self.title}", "", *([fill(self.note, 100), ""] if self.note else [])]
        lines += [f"| {' | '.join(self.columns)} |"]
        lines += [f"|---|{'---:|' * (len(self.columns) - 1)}"]
        lines += [f"| {' | '.join(row)} |" for row in self.rows]
        lines += ["", *(f"- {'holds' if ok else '**fails**'}: {text}" for text, ok in self.claims)]
        return "\n".join(lines) + "\n"


def interleaved(
    calls: Mapping[str, Callable[[], object]],
    *,
    rounds: int = 150,
    seconds: float = 0.004,
    uncounted: int = 0,
) -> dict[str, float]:
    """Return the least time of one call of each function, in seconds.

    The functions take turns, so that all of them see the machine in the same state; the least of
    many rounds is the time without other work. Each round starts with the next function, so that no
    function always follows the same other function, whose threads may still spin. A turn is one
    call, or as many calls as take the given time, after uncounted calls: each step of a training
    run finds arrays of the step before in the cache.
    """
    numbers = dict.fromkeys(calls, 1)
    for name, call in calls.items():
        call()
        if seconds:
            fastest = min(_time(call, 20) for _ in range(20))
            numbers[name] = max(1, round(seconds / fastest))
    best = dict.fromkeys(calls, float("inf"))
    gc.collect()
    gc.disable()
    try:
        turns = list(calls.items())
        for _ in range(rounds):
            for name, call in turns:
                for _ in range(uncounted):
                    call()
                best[name] = min(best[name], _time(call, numbers[name]))
            turns.append(turns.pop(0))
    finally:
        gc.enable()
    return best


def _time(call: Callable[[], object], number: int) -> float:
    """Return the mean time of so many calls."""
    repeats = range(number)
    start = time.perf_counter()
    for _ in repeats:
        call()
    return (time.perf_counter() - start) / number


def environment() -> str:
    """Return the versions and the kind of machine that the results were measured with."""
    packages = ["pytensor-onnx", "pytensor", "pymc", "numba", "onnxruntime", "onnx-ir", "numpy"]
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    return (
        f"{time.strftime('%Y-%m-%d')}; {platform.system()} on {platform.machine()}, "
        f"{os.cpu_count()} cores; Python {platform.python_version()}, {versions}"
    )
