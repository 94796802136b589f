"""Search for a random graph on which ONNX and PyTensor differ, made as small as it can be."""

from collections import Counter
from dataclasses import dataclass

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded

from pytensor_onnx import UnsupportedOpError
from tests.fuzz.comparison import Case, check, quiet
from tests.fuzz.shrink import shrink
from tests.fuzz.strategy import cases


@dataclass
class Failure:
    """A graph on which ONNX and PyTensor differ.

    Attributes
    ----------
    code
        Script that reproduces it.
    error
        What went wrong.
    """

    code: str
    error: Exception

    def __str__(self) -> str:
        return f"{type(self.error).__name__}: {self.error}\n\n{self.code}\n"


def find_failure(
    graphs: int, seed: int, *, unsupported: Counter[str] | None = None
) -> Failure | None:
    """Return a failing graph, made small, the first among random ones; None where all agree.

    Parameters
    ----------
    graphs
        Number of graphs to try.
    seed
        What the graphs depend on.
    unsupported
        Counts what cannot be converted, which is then no failure.
    """
    failures: list[Failure] = []

    @seeded(seed)
    @settings(
        max_examples=graphs,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(cases())
    def search(case: Case) -> None:
        error = error_of(case) if case.outputs and not failures else None
        if isinstance(error, UnsupportedOpError) and unsupported is not None:
            unsupported[str(error)] += 1
        elif error is not None:
            small = shrink(case, lambda c: type(error_of(c)) is type(error))
            failures.append(Failure(small.code, error_of(small) or error))

    with quiet():
        search()
    return failures[0] if failures else None


def error_of(case: Case) -> Exception | None:
    """Return what is raised in comparing a case, None where ONNX and PyTensor agree."""
    try:
        check(case)
    except Exception as error:
        return error
    return None


def try_chunk(graphs: int, seed: int) -> tuple[str | None, Counter[str]]:
    """Return the description of a failure among some graphs, and what is not supported."""
    unsupported: Counter[str] = Counter()
    failure = find_failure(graphs, seed, unsupported=unsupported)
    return (None if failure is None else str(failure)), unsupported
