"""Search for random graphs on which ONNX and PyTensor differ, made small."""

import faulthandler
import itertools
import multiprocessing
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from hashlib import shake_256
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import SearchStrategy

from tests.fuzz.cases import Case
from tests.fuzz.comparison import check
from tests.fuzz.quietness import quiet
from tests.fuzz.shrink import shrink
from tests.fuzz.strategy import cases, cases_with_loops

MEMORY = 8 * 2**30
LENGTH = 4096
"""Bytes that a graph is drawn from; none needs more."""
SECONDS = 600
"""Time after which a graph ends its process; most take a tenth of a second."""


@dataclass
class Failure:
    """A graph on which ONNX and PyTensor differ.

    Attributes
    ----------
    error
        What went wrong.
    code
        Script that reproduces it.
    """

    error: str
    code: str

    def __str__(self) -> str:
        return f"{self.error}\n\n{self.code}\n"


@dataclass
class Found:
    """What a search finds.

    Attributes
    ----------
    failures
        Failing graphs, one for each kind of failure.
    rewritten
        Number of graphs that give what PyTensor's own rewrites make of infinities and NaN, and not
        what is written: no failures.
    """

    failures: list[Failure]
    rewritten: int = 0


def find_failures(
    graphs: int,
    seed: int,
    strategy: SearchStrategy[Case],
    last: Path | None = None,
    seconds: float | None = None,
) -> Found:
    """Return failing graphs among random ones, made small.

    Hypothesis reads what it draws from bytes that depend on the seed and on nothing else. Its own
    generator would also draw constants that it finds in the modules loaded at the moment: other
    graphs in another test run, and after any change to the code.

    Parameters
    ----------
    graphs
        Number of graphs to try.
    seed
        Seed of the random graphs.
    strategy
        Draws them.
    last
        File for the script of the graph that is tried, which stays if it ends the process.
    seconds
        Time after which a graph ends the process, as one with a loop that never ends.
    """
    failures: dict[str, Failure] = {}
    tried = rewritten = 0

    @settings(database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(strategy)
    def search(case: Case) -> None:
        nonlocal tried, rewritten
        if not case.outputs:
            return
        tried += 1
        if last is not None:
            last.write_text(case.code)
        if seconds is not None:
            faulthandler.dump_traceback_later(seconds, exit=True)
        error = error_of(case)
        rewritten += case.is_rewritten
        if error is None or (kind := repr(error)[:60]) in failures:
            return
        small = shrink(case, lambda c: type(error_of(c)) is type(error))
        shown = error_of(small)
        if shown is None:  # It does not fail every time.
            small, shown = case, error
        failures[kind] = Failure(f"{type(shown).__name__}: {shown}", small.code)

    with quiet():
        for number in itertools.count():
            search.hypothesis.fuzz_one_input(shake_256(f"{seed} {number}".encode()).digest(LENGTH))
            if tried == graphs:
                faulthandler.cancel_dump_traceback_later()
                return Found(list(failures.values()), rewritten)
    raise AssertionError("unreachable")


def error_of(case: Case) -> Exception | None:
    """Return the error raised by comparing a case, None where ONNX and PyTensor agree."""
    try:
        check(case)
    except Exception as error:
        return error
    return None


def limit_memory() -> None:
    """Let a graph that needs too much memory fail, and not the machine."""
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


@dataclass(frozen=True)
class Chunk:
    """Graphs of one seed, with loops or without."""

    graphs: int
    seed: int
    loops: bool = False

    def search(self, last: Path | None = None) -> Found:
        """Search the graphs."""
        strategy = cases_with_loops() if self.loops else cases()
        return find_failures(self.graphs, self.seed, strategy, last, SECONDS)


def search(chunks: Sequence[Chunk], processes: int) -> Iterator[tuple[Chunk, Found]]:
    """Yield chunks and their findings, searched in several processes.

    A graph that ends its process fails. It takes the other processes with it, so what was being
    searched is searched again, each chunk in a process of its own.
    """
    waiting = list(chunks)
    while waiting:
        with _pool(processes) as pool:
            running = {pool.submit(chunk.search): chunk for chunk in waiting}
            for future in as_completed(running):
                if isinstance(future.exception(), BrokenProcessPool):
                    break
                waiting.remove(running[future])
                yield running[future], future.result()
        # A pool hands out one chunk more than it has processes.
        begun, waiting = waiting[: processes + 1], waiting[processes + 1 :]
        for chunk in begun:
            yield chunk, _search_alone(chunk)


def _search_alone(chunk: Chunk) -> Found:
    with tempfile.TemporaryDirectory() as directory, _pool(1) as pool:
        last = Path(directory) / "last.py"
        future: Future[Found] = pool.submit(chunk.search, last)
        try:
            return future.result()
        except BrokenProcessPool:
            return Found([Failure("the process ended", last.read_text())])


def _pool(processes: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(
        processes, mp_context=multiprocessing.get_context("spawn"), initializer=limit_memory
    )
