"""Search for random graphs on which ONNX and PyTensor differ, made small."""

import itertools
from dataclasses import dataclass
from hashlib import shake_256

from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import SearchStrategy

from tests.fuzz.comparison import Case, check, quiet
from tests.fuzz.shrink import shrink
from tests.fuzz.strategy import cases, cases_with_loops

MEMORY = 8 * 2**30
LENGTH = 4096
"""Bytes that a graph is drawn from; none needs more."""


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


def find_failures(graphs: int, seed: int, strategy: SearchStrategy[Case]) -> list[Failure]:
    """Return failing graphs among random ones, made small, one for each kind of failure.

    Hypothesis reads what it draws from bytes that depend on the seed and on nothing else. Its own
    generator would also draw constants that it finds in the modules loaded at the moment: other
    graphs in another test run, and after any change to the code.

    Parameters
    ----------
    graphs
        Number of graphs to try.
    seed
        What the graphs depend on.
    strategy
        Draws them.
    """
    failures: dict[str, Failure] = {}
    tried = 0

    @settings(database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(strategy)
    def search(case: Case) -> None:
        nonlocal tried
        if not case.outputs:
            return
        tried += 1
        error = error_of(case)
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
                return list(failures.values())
    raise AssertionError("unreachable")


def error_of(case: Case) -> Exception | None:
    """Return what is raised in comparing a case, None where ONNX and PyTensor agree."""
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


def search_seed(graphs: int, seed: int, loops: bool) -> list[Failure]:
    """Return what fails among the graphs of a seed, with loops or without."""
    return find_failures(graphs, seed, cases_with_loops() if loops else cases())
